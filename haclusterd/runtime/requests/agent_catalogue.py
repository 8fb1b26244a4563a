"""The installed agents, for verbs: all names at once, further facts only when they are asked for.

Reading meta-data runs the agent, and there may be hundreds. So a verb is first run with the names alone; the catalogue
notes whose facts it looked up, they are read, and the verb is run again. An agent's own check of its parameters
(validate-all) is obtained in the same way.

Invariant: a request asks so few agents, and waits so briefly for each, that it is answered in time whatever they do.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from haclusterd.model.agents import AgentFacts, Validation, ValidationQuestion
from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass
from haclusterd.ports.agents import AgentMetadata, AgentRunner

READ_AT_ONCE = 8
"""Number of agents that are asked for their meta-data at a time: each is a process."""


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
        """Return whether an agent is installed by this name: units have aliases, and unlisted instances."""
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
        """Whether everything that was looked up is known."""
        return not self._wanted

    def noted(self) -> Json:
        """Return, as JSON, what was looked up and is not known."""
        return sorted(self._wanted)

    def note(self, noted: Any) -> None:
        """Take what `noted` returned in a forked image of this process."""
        self._wanted = {name for name in noted if self._is_here(name)}

    def read(self, done: Callable[[], None]) -> None:
        """Read the facts that were looked up, a few at a time; call `done` when all are known."""
        wanted, self._wanted = sorted(self._wanted), set()
        waiting = set(wanted)
        not_begun = iter(wanted)

        def known(name: str, metadata: AgentMetadata | None) -> None:
            if metadata is not None:
                self._facts[name] = metadata.facts()
            elif self._agents.exists(self._by_name()[name]):
                self._facts[name] = AgentFacts(is_unreadable=True)
            else:
                self._by_name().pop(name)
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


ASKED_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Limits:
    """How many agents one request asks, and how long each may take."""

    most: int
    timeout_ms: int


THOROUGH: Final = Limits(24, 6_000)
"""For the verb whose purpose is to ask."""
BESIDE_A_CHANGE: Final = Limits(ASKED_AT_ONCE, 2_000)
"""For a verb that changes the configuration: its user waits for the change itself."""


class AgentValidations:
    """The agents' answers as one request sees them; see `commands.context.Validations`."""

    def __init__(self, agents: AgentRunner, limits: Limits = THOROUGH) -> None:
        self._agents = agents
        self._limits = limits
        self._known: dict[ValidationQuestion, Validation] = {}
        self._wanted: dict[ValidationQuestion, None] = {}

    def answer(self, question: ValidationQuestion) -> Validation | None:
        """Return the agent's answer; None: it has not been asked yet."""
        known = self._known.get(question)
        most = self._limits.most
        if known is None and len(self._known) + len(self._wanted) >= most and question not in self._wanted:
            return Validation(None, f"not asked: {most} resources are as many as one request asks about")
        if known is None:
            self._wanted[question] = None
        return known

    @property
    def is_complete(self) -> bool:
        """Whether everything that was looked up is known."""
        return not self._wanted

    def noted(self) -> Json:
        """Return, as JSON, what was looked up and is not known."""
        return [
            [each.resource, str(each.agent), [[name, value] for name, value in each.parameters]]
            for each in self._wanted
        ]

    def note(self, noted: Any) -> None:
        """Take what `noted` returned in a forked image of this process."""
        self._wanted = {
            ValidationQuestion(
                ResourceId(resource), AgentReference.parse(agent), tuple((name, value) for name, value in parameters)
            ): None
            for resource, agent, parameters in noted
        }

    def read(self, done: Callable[[], None]) -> None:
        """Ask the agents that were looked up, a few at a time; call `done` when all have answered or timed out."""
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
