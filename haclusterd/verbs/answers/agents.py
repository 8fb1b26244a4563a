"""Answers about the agents of this machine: which there are, what they say of themselves, how they do under trial."""

from collections.abc import Mapping
from typing import ClassVar

from haclusterd.model.records import dataclass
from haclusterd.verbs.answers.answer import Answer


@dataclass(frozen=True, slots=True)
class AgentClasses(Answer):
    """The classes of agents, and who provides those of class ocf."""

    SCHEMA: ClassVar[str] = "haclusterd.agent_classes/1"
    classes: tuple[str, ...]
    providers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AgentTypes(Answer):
    """The agents of a class, or the providers of a type."""

    SCHEMA: ClassVar[str] = "haclusterd.agents/1"
    class_: str
    types: tuple[str, ...]
    """Of `crm ra providers`: the providers."""


@dataclass(frozen=True, slots=True)
class AgentParameter:
    """A parameter, as the agent's meta-data has it."""

    name: str
    type: str
    default: str | None
    is_required: bool
    is_unique: bool
    options: tuple[str, ...]
    """The values that it may have; none: any."""
    shortdesc: str
    longdesc: str


@dataclass(frozen=True, slots=True)
class AgentDescription(Answer):
    """What an agent tells people of itself."""

    SCHEMA: ClassVar[str] = "haclusterd.agent/1"
    agent: str
    file: str
    shortdesc: str
    longdesc: str
    parameters: tuple[AgentParameter, ...]
    actions: tuple[Mapping[str, str], ...]
    """Each with its attributes in the meta-data: `name`, `timeout`, `interval`, ...; times as they are written."""


@dataclass(frozen=True, slots=True)
class NewAgent(Answer):
    """The text of a new agent was written to a file."""

    SCHEMA: ClassVar[str] = "haclusterd.agent_new/1"
    file: str
    language: str
    next_steps: tuple[str, ...]
    """What to type."""


@dataclass(frozen=True, slots=True)
class AgentEnvironment(Answer):
    """With what environment an action of an agent is run."""

    SCHEMA: ClassVar[str] = "haclusterd.agent_environment/1"
    agent: str
    action: str
    command: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AgentRun(Answer):
    """How one action of an agent ended."""

    SCHEMA: ClassVar[str] = "haclusterd.agent_run/1"
    agent: str
    action: str
    code: int | None
    """The exit code; null: it was ended at its timeout, or by a signal."""
    name: str
    """The exit code's name, or how it ended, in words."""
    reason: str
    """The agent's own words for a failure."""
    stdout: str
    stderr: str
    wall_ms: int
    """How long it took."""


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One thing that is wrong with an agent."""

    severity: str
    """`error`, `warning`, `note`."""
    code: str
    line: int
    """Of the program; 0: it is about all of it, or about its meta-data."""
    message: str


@dataclass(frozen=True, slots=True)
class LintedAgent:
    """An agent with what is wrong with it."""

    agent: str
    file: str
    findings: tuple[LintFinding, ...]


@dataclass(frozen=True, slots=True)
class LintCounts:
    """How many findings there are of each severity."""

    error: int
    warning: int
    note: int


@dataclass(frozen=True, slots=True)
class AgentLint(Answer):
    """What is wrong with agents."""

    SCHEMA: ClassVar[str] = "haclusterd.agent_lint/1"
    agents: tuple[LintedAgent, ...]
    counts: LintCounts


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One trial of an agent, and how it ended."""

    name: str
    what: str
    """What is tried."""
    verdict: str
    """`passed`, `failed`, `skipped`."""
    detail: str
    """What was found; empty: nothing but what was expected."""
    wall_ms: int


@dataclass(frozen=True, slots=True)
class TrialCounts:
    """How many trials ended how."""

    passed: int
    failed: int
    skipped: int


@dataclass(frozen=True, slots=True)
class AgentTrials(Answer):
    """How an agent does under trial."""

    SCHEMA: ClassVar[str] = "haclusterd.agent_test/1"
    agent: str
    file: str
    trials: tuple[TrialRow, ...]
    counts: TrialCounts
    wall_ms: int
    """How long all of them took."""
