"""State machines as tables: which state follows which event, and nothing else follows.

A machine's decisions (what it does when an event comes, and which event it is) are code; that it can come from one
state to another is a line of its table. An event for which the table has no line is a programmer's error, and ends the
process. docs/reference/state-machines.md is made from the tables.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Generic, TypeVar

from haclusterd.model.records import dataclass

S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Transition(Generic[S, E]):
    """From any of some states, by an event, to a state."""

    sources: tuple[S, ...]
    event: E
    target: S


class TransitionTable(Generic[S, E]):
    """All transitions of one kind of machine."""

    def __init__(self, name: str, meaning: str, initial: Sequence[S], transitions: Sequence[Transition[S, E]]) -> None:
        """`name` and `meaning` are for people; two transitions for one state and event are an error."""
        self.name = name
        self.meaning = meaning
        self.initial = tuple(initial)
        """In which of them a machine begins, the machine decides."""
        self.transitions = tuple(transitions)
        self._targets: dict[tuple[S, E], S] = {}
        for each in transitions:
            for source in each.sources:
                assert (source, each.event) not in self._targets, f"{name}: two targets for {source}, {each.event}"
                self._targets[source, each.event] = each.target

    def after(self, state: S, event: E) -> S:
        """Return the state that follows."""
        target = self._targets.get((state, event))
        assert target is not None, f"{self.name}: {event} cannot happen in state {state}"
        return target
