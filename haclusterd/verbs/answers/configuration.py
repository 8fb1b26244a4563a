"""Answers about the configuration: its text, what a change does to it, what verification and agents say of it."""

from collections.abc import Mapping
from typing import ClassVar

from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass
from haclusterd.verbs.answers.answer import Answer, absent


@dataclass(frozen=True, slots=True)
class Change(Answer):
    """What a change does to the configuration."""

    SCHEMA: ClassVar[str] = "haclusterd.change/1"
    from_version: int
    to_version: int
    """The same where nothing changes."""
    edits: tuple[str, ...]
    """`+` added, `~` changed, `-` removed."""
    changed: bool | None = absent()
    """Of `configure.apply`: whether anything did."""
    difference: str | None = absent()
    """The unified difference of the two versions: of `configure.rollback`, and of `configure.apply` on request."""


@dataclass(frozen=True, slots=True)
class ExpectedAction:
    """What the cluster would do."""

    text: str
    reason: str
    is_probe: bool
    node: str | None


@dataclass(frozen=True, slots=True)
class Interruption:
    """A resource that is stopped or demoted."""

    resource: str
    node: str
    """Where it runs."""
    role: str
    """`Promoted`: only this role ends; empty: the resource is stopped."""
    to: str | None
    """Where it is begun again; null: nowhere."""
    at_most_ms: int | None
    """How long until then at most, where every action takes its whole timeout."""
    expected_ms: int | None = None
    """How long until then, where every action takes as long as when it was executed last; null: one never was."""


@dataclass(frozen=True, slots=True)
class Preview(Answer):
    """What a change would do, and what the cluster would do then (`--dry-run`)."""

    SCHEMA: ClassVar[str] = "haclusterd.preview/1"
    change: Mapping[str, Json] | None
    """The answer that the verb would give, one of these, as its `schema` says; null: none."""
    actions: tuple[ExpectedAction, ...]
    interruptions: tuple[Interruption, ...] | None
    """Null: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationText(Answer):
    """The configuration, or a part of it, in one of its languages."""

    SCHEMA: ClassVar[str] = "haclusterd.configuration/1"
    version: int
    author: str
    at: int
    """When this version was made; epoch ms."""
    reason: str | None = absent()
    """Of an earlier version."""
    format: str
    """`crm`, `yaml`, `xml`."""
    text: str
    configuration: Mapping[str, Json] | None = absent()
    """As data, where it was asked for (`structured`): in the spelling of the log."""


@dataclass(frozen=True, slots=True)
class PlaceInText:
    """Where in a text something stands."""

    file: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class JudgementReport:
    """What is wrong, or worth knowing. `crm -o json` and REST show it as they show every report."""

    code: str
    severity: str
    message: str
    parameters: Mapping[str, str]
    """What is filled into the message."""
    place: PlaceInText | None = absent()
    remedy: str | None = absent()


@dataclass(frozen=True, slots=True)
class Judgement(Answer):
    """What verification says of a configuration."""

    SCHEMA: ClassVar[str] = "haclusterd.verify/1"
    is_valid: bool
    reports: tuple[JudgementReport, ...]


@dataclass(frozen=True, slots=True)
class PropertyInForce:
    """A cluster property with the value in force."""

    name: str
    value: str
    is_default: bool
    meaning: str


@dataclass(frozen=True, slots=True)
class Properties(Answer):
    """Cluster properties with their values in force."""

    SCHEMA: ClassVar[str] = "haclusterd.properties/1"
    properties: tuple[PropertyInForce, ...]


@dataclass(frozen=True, slots=True)
class AgentVerdict:
    """What an agent says of a resource's parameters."""

    resource: str
    agent: str
    verdict: str
    """`fine`, `objects`, `not answered`."""
    exit_code: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class AgentVerdicts(Answer):
    """What the agents of a node say of their resources' parameters."""

    SCHEMA: ClassVar[str] = "haclusterd.validate-all/1"
    node: str
    validations: tuple[AgentVerdict, ...]


@dataclass(frozen=True, slots=True)
class Graph(Answer):
    """The configuration as a graph, for Graphviz."""

    SCHEMA: ClassVar[str] = "haclusterd.graph/1"
    text: str


@dataclass(frozen=True, slots=True)
class Schema(Answer):
    """The schemas of Pacemaker that are known."""

    SCHEMA: ClassVar[str] = "haclusterd.schema/1"
    written: str
    read_up_to: str


@dataclass(frozen=True, slots=True)
class State(Answer):
    """The whole state, as `--cib-file` reads it."""

    SCHEMA: ClassVar[str] = "haclusterd.state/1"
    text: str


@dataclass(frozen=True, slots=True)
class BackupText(Answer):
    """What another cluster can be made of."""

    SCHEMA: ClassVar[str] = "haclusterd.backup/1"
    cluster: str
    """Its name."""
    uuid: str
    version: int
    """Of the configuration."""
    text: str


@dataclass(frozen=True, slots=True)
class Names(Answer):
    """What can be typed, for completion."""

    SCHEMA: ClassVar[str] = "haclusterd.names/1"
    version: tuple[str, ...]
    transition: tuple[str, ...]
    node: tuple[str, ...]
    resource: tuple[str, ...]
    object: tuple[str, ...]
    agent: tuple[str, ...]
    ticket: tuple[str, ...]
    device: tuple[str, ...]
