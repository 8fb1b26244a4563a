"""What agents of this node say of parameters (validate-all), for verbs: asked as it is looked at.

As with meta-data a verb is first run without the answers; what it looked at is asked, and the verb is run again.
Invariant: a request asks so few, and waits so briefly for each, that it is answered in time whatever agents do.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from haclusterd.model.agents import Validation, ValidationQuestion
from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.model.json_value import Json
from haclusterd.ports.agents import AgentRunner

ASKED_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Limits:
    """How many agents one request asks, and how long each may take."""

    most: int
    timeout_ms: int


THOROUGH: Final = Limits(24, 6_000)
"""Of the verb that is there to ask."""
BESIDE_A_CHANGE: Final = Limits(ASKED_AT_ONCE, 2_000)
"""Of a verb that changes the configuration: somebody waits for the change itself."""


class AgentValidations:
    """The answers as one request sees them; see `commands.context.Validations`."""

    def __init__(self, agents: AgentRunner, limits: Limits = THOROUGH) -> None:
        self._agents = agents
        self._limits = limits
        self._known: dict[ValidationQuestion, Validation] = {}
        self._wanted: dict[ValidationQuestion, None] = {}

    def answer(self, question: ValidationQuestion) -> Validation | None:
        """Return what the agent said; None: it must be asked first."""
        known = self._known.get(question)
        most = self._limits.most
        if known is None and len(self._known) + len(self._wanted) >= most and question not in self._wanted:
            return Validation(None, f"not asked: {most} resources are as many as one request asks about")
        if known is None:
            self._wanted[question] = None
        return known

    @property
    def is_complete(self) -> bool:
        """Whether nothing was looked at that is not known."""
        return not self._wanted

    def noted(self) -> Json:
        """Return what was looked at and is not known."""
        return [
            [each.resource, str(each.agent), [[name, value] for name, value in each.parameters]]
            for each in self._wanted
        ]

    def note(self, noted: Any) -> None:
        """Take what `noted` returned in an image of this process."""
        self._wanted = {
            ValidationQuestion(
                ResourceId(resource), AgentReference.parse(agent), tuple((name, value) for name, value in parameters)
            ): None
            for resource, agent, parameters in noted
        }

    def read(self, done: Callable[[], None]) -> None:
        """Ask what was looked at, a few at a time; call `done` when all have answered, or had their time."""
        waiting, self._wanted = set(self._wanted), {}
        not_begun = iter(sorted(waiting, key=lambda each: each.resource))

        def known(question: ValidationQuestion, validation: Validation) -> None:
            self._known[question] = validation
            waiting.discard(question)
            begin_next()
            if not waiting:
                done()

        def begin_next() -> None:
            question = next(not_begun, None)
            if question is not None:
                self._agents.validate(question, self._limits.timeout_ms, partial(known, question))

        for _ in range(ASKED_AT_ONCE):
            begin_next()
