"""The installed agents, for verbs: all names at once, facts as they are asked for.

Reading meta-data runs the agent, and there may be hundreds. So a verb is first run with the names alone; the catalogue
notes whose facts it looked at, they are read, and the verb is run again.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from haclusterd.model.agents import AgentFacts
from haclusterd.model.ids import AgentReference
from haclusterd.model.json_value import Json
from haclusterd.ports.agents import AgentMetadata, AgentRunner

READ_AT_ONCE = 8
"""Agents that are asked for their meta-data at a time: each is a process."""


class AgentCatalogue(Mapping[str, AgentFacts]):
    """Agents by `str(AgentReference)`, as one request sees them."""

    def __init__(self, agents: AgentRunner) -> None:
        self._agents = agents
        self._names: dict[str, AgentReference] | None = None
        self._facts: dict[str, AgentFacts] = {}
        self._wanted: set[str] = set()

    def _by_name(self) -> dict[str, AgentReference]:
        if self._names is None:
            self._names = {str(agent): agent for agent in self._agents.installed()}
        return self._names

    def _is_here(self, name: str) -> bool:
        """Tell whether an agent is installed, under this name: a unit has several, and instances that no list has."""
        known = self._by_name()
        if name not in known and name.count(":") == 1:
            agent = AgentReference.parse(name)
            if self._agents.exists(agent):
                known[name] = agent
        return name in known

    def __getitem__(self, name: str) -> AgentFacts:
        if not self._is_here(name):
            raise KeyError(name)
        if name not in self._facts:
            self._wanted.add(name)
        return self._facts.get(name, AgentFacts())

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name())

    def __len__(self) -> int:
        return len(self._by_name())

    @property
    def is_complete(self) -> bool:
        """Whether nothing was looked at that is not known."""
        return not self._wanted

    def noted(self) -> Json:
        """Return what was looked at and is not known."""
        return sorted(self._wanted)

    def note(self, noted: Any) -> None:
        """Take what `noted` returned in an image of this process."""
        self._wanted = {name for name in noted if self._is_here(name)}

    def read(self, done: Callable[[], None]) -> None:
        """Read the facts that were looked at, a few at a time; call `done` when all are known."""
        wanted, self._wanted = sorted(self._wanted), set()
        waiting = set(wanted)
        not_begun = iter(wanted)

        def known(name: str, metadata: AgentMetadata | None) -> None:
            if metadata is None:
                self._by_name().pop(name, None)
            else:
                self._facts[name] = metadata.facts()
            waiting.discard(name)
            begin_next()
            if not waiting:
                done()

        def begin_next() -> None:
            name = next(not_begun, None)
            if name is not None:
                self._agents.metadata(self._by_name()[name], partial(known, name))

        for _ in range(READ_AT_ONCE):
            begin_next()
