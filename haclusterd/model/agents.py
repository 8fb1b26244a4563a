"""What is known of an agent without running it: the part of its meta-data that a configuration can be judged by."""

from collections.abc import Mapping

from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.model.records import dataclass, field


@dataclass(frozen=True, slots=True)
class ParameterFacts:
    """One parameter that an agent declares."""

    is_required: bool = False
    is_unique: bool = False
    is_reloadable: bool = False
    is_private: bool = False
    """Its value is never shown."""
    content_type: str = "string"
    default: str | None = None
    shortdesc: str = ""
    options: tuple[str, ...] = ()
    """The values it may have; empty: any."""
    obsoletes: str = ""
    """The older name of the same thing, which the agent declares as well."""


@dataclass(frozen=True, slots=True)
class ValidationQuestion:
    """Whether an agent could work with some parameters on one node (OCF 1.1, action validate-all)."""

    resource: ResourceId
    agent: AgentReference
    parameters: tuple[tuple[str, str], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Validation:
    """What an agent answered."""

    exit_code: int | None
    """None: it could not be asked, or has not answered in time."""
    reason: str
    """In its own words, or why there is no answer; empty when it had nothing to say."""


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What an installed agent says of itself."""

    version: str = ""
    shortdesc: str = ""
    parameters: Mapping[str, ParameterFacts] = field(default_factory=dict)
    action_timeouts_ms: Mapping[str, int | None] = field(default_factory=dict)
    """By action's name; None: no advice."""
    unfences: bool = False
    """Of a fence agent: whether it must let each node in when that joins (`on` is automatic)."""
    missing_tools: tuple[str, ...] = ()
    """Tools of Pacemaker that its program calls and that are not here."""
    is_unreadable: bool = False
    """Its program is here, and what it prints as meta-data is none: nothing else is known of it."""
