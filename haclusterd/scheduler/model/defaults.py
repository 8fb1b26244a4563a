"""What holds for all resources and all operations that do not say otherwise (Pacemaker Explained, "Defaults").

Defaults may have rules on the time, the agent and the operation; each different answer is worked out once per plan.
"""

from collections.abc import Mapping

from haclusterd.model.configuration import AttributeSet
from haclusterd.model.ids import AgentReference
from haclusterd.scheduler.model.dates import EffectiveTime
from haclusterd.scheduler.model.rules import RuleContext, by_strength, merge


class ResourceDefaults:
    """Meta-attributes by default."""

    def __init__(self, blocks: tuple[AttributeSet, ...], time: EffectiveTime) -> None:
        self._blocks = by_strength(blocks)
        self._time = time
        self._has_rules = any(block.rule is not None for block in blocks)
        self._found: dict[AgentReference | None, Mapping[str, str]] = {}

    def of(self, agent: AgentReference | None) -> Mapping[str, str]:
        """Return what holds for resources of an agent; None: for groups and the like."""
        key = agent if self._has_rules else None
        if key not in self._found:
            self._found[key] = merge(self._blocks, RuleContext(self._time, agent=key))
        return self._found[key]


class OperationDefaults:
    """Settings of operations by default."""

    def __init__(self, blocks: tuple[AttributeSet, ...], time: EffectiveTime) -> None:
        self._blocks = by_strength(blocks)
        self._time = time
        self._has_rules = any(block.rule is not None for block in blocks)
        self._found: dict[tuple[AgentReference | None, str, int] | None, Mapping[str, str]] = {}

    def of(self, agent: AgentReference | None, operation: str, interval_ms: int) -> Mapping[str, str]:
        """Return what holds for an operation of an agent."""
        key = (agent, operation, interval_ms) if self._has_rules else None
        if key not in self._found:
            context = RuleContext(self._time, agent=agent, operation=operation, interval_ms=interval_ms)
            self._found[key] = merge(self._blocks, context)
        return self._found[key]
