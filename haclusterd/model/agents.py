"""What is known of an agent without running it: the part of its meta-data that a configuration can be judged by."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ParameterFacts:
    """One parameter that an agent declares."""

    is_required: bool = False
    is_private: bool = False
    """Its value is never shown."""
    options: tuple[str, ...] = ()
    """The values it may have; empty: any."""


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What one agent declares. Advised timeouts are in ms, by action."""

    parameters: Mapping[str, ParameterFacts] = field(default_factory=dict)
    timeouts_ms: Mapping[str, int] = field(default_factory=dict)
    actions: frozenset[str] = frozenset()
