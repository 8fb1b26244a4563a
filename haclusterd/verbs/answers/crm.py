"""Answers of `crm` itself: of new clusters' files, shadow CIBs, settings, suppositions, scripts, the past."""

from typing import ClassVar

from haclusterd.model.records import dataclass
from haclusterd.verbs.answers.answer import Answer, absent


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup(Answer):
    """Files were made with which nodes start."""

    SCHEMA: ClassVar[str] = "haclusterd.setup/1"
    name: str
    """Of the cluster."""
    nodes: tuple[str, ...]
    directory: str
    is_started: bool | None = absent()
    """Of `init` and `join`."""
    index: int | None = absent()
    """Of `recover`: the newest entry of the log that is in it."""
    version: int | None = absent()
    """Of `recover` and `restore`: of the configuration."""
    uncommitted: int | None = absent()
    """Of `recover`: entries that were kept and may never have been acknowledged."""
    files: tuple[str, ...]
    """In words."""
    next_steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shadow:
    """A copy of the state, to try changes on."""

    name: str
    version: int
    """Of which it is a copy; 0: of no cluster's."""
    is_used: bool


@dataclass(frozen=True, slots=True)
class ShownShadows(Answer):
    """The shadow CIBs of this machine."""

    SCHEMA: ClassVar[str] = "haclusterd.shadows/1"
    shadows: tuple[Shadow, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of `crm`."""

    name: str
    value: str
    is_changed: bool


@dataclass(frozen=True, slots=True)
class ShownSettings(Answer):
    """The settings of the person who asks."""

    SCHEMA: ClassVar[str] = "haclusterd.crm_options/1"
    options: tuple[Setting, ...]


@dataclass(frozen=True, slots=True)
class ShownSuppositions(Answer):
    """What is supposed of the state."""

    SCHEMA: ClassVar[str] = "haclusterd.crm_cibstatus/1"
    origin: str
    """`live`, `shadow:NAME` or a file."""
    supposed: tuple[str, ...]
    """Each as it was typed."""


@dataclass(frozen=True, slots=True)
class ScriptParameter:
    """What a script is given."""

    name: str
    help: str
    is_required: bool
    default: str
    example: str


@dataclass(frozen=True, slots=True)
class Script:
    """A well-known service, and what it is made of."""

    name: str
    category: str
    help: str
    parameters: tuple[ScriptParameter, ...]
    statements: str
    """The crm statements, with `{PARAMETER}`."""


@dataclass(frozen=True, slots=True)
class Scripts(Answer):
    """The scripts, or one of them."""

    SCHEMA: ClassVar[str] = "haclusterd.crm_scripts/1"
    scripts: tuple[Script, ...]


@dataclass(frozen=True, slots=True)
class ShownTemplates(Answer):
    """Configurations in preparation, and scripts they can be made of."""

    SCHEMA: ClassVar[str] = "haclusterd.crm_templates/1"
    configs: tuple[str, ...]
    templates: tuple[str, ...]
    loaded: str
    """Empty: none."""


@dataclass(frozen=True, slots=True)
class PastView(Answer):
    """Which part of the past is looked at."""

    SCHEMA: ClassVar[str] = "haclusterd.crm_past/1"
    source: str
    """`live` or a file."""
    since: str
    until: str
    nodes: tuple[str, ...]
    excluded: tuple[str, ...]
    detail: int
    sessions: tuple[str, ...]
    """The names of those that were kept."""


@dataclass(frozen=True, slots=True)
class NodeOutput:
    """What a command said on one node."""

    node: str
    status: int
    output: str
    error: str


@dataclass(frozen=True, slots=True)
class NodeOutputs(Answer):
    """What a command said on each node."""

    SCHEMA: ClassVar[str] = "haclusterd.crm_outputs/1"
    outputs: tuple[NodeOutput, ...]


@dataclass(frozen=True, slots=True)
class TransitionTags(Answer):
    """What kinds of things happened during a transition."""

    SCHEMA: ClassVar[str] = "haclusterd.crm_transition_tags/1"
    transition: str
    """TERM.NUMBER."""
    tags: tuple[str, ...]
    """Kinds of events, in alphabetical order; `error` among them: an action failed."""
