"""What successive plans for one configuration have in common, kept from one to the next.

A plan that follows an event reads the same configuration again; what was worked out from that alone need not be worked
out again. That depends on nothing but the configuration and the options: a configuration with rules, which depend on
time and nodes, keeps nothing, and another configuration (as an object) starts with an empty cache. The plan itself is
kept too: it holds until a time comes that it asked for, as long as nothing changes but node attributes that it has not
looked at. A plan with the cache is the plan without it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from operator import attrgetter
from typing import Any

from haclusterd.model.cluster import Cib, NodeStatus, Status
from haclusterd.model.configuration import AttributeSet, Configuration, Primitive, Template
from haclusterd.model.graph import Plan
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass, fields
from haclusterd.scheduler.model.dates import EffectiveTime
from haclusterd.scheduler.model.definition import Definition
from haclusterd.scheduler.model.looks import Looks
from haclusterd.scheduler.model.options import ScheduleOptions


@dataclass(frozen=True, slots=True)
class KeptDefinition:
    """What is the same for all instances of one primitive."""

    configured: Primitive
    definition: Definition


@dataclass(frozen=True, slots=True)
class _KeptPlan:
    cib: Cib
    options: ScheduleOptions
    names: Collection[str]
    """Of the node attributes that it depends on."""
    holds_from: WallTime
    holds_until: WallTime
    plan: Plan

    def is_for(self, cib: Cib, now: WallTime, options: ScheduleOptions) -> bool:
        return (
            self.holds_from <= now < self.holds_until
            and options == self.options
            and cib.configuration is self.cib.configuration
            and _read_of_cib(cib) == _read_of_cib(self.cib)
            and _read_of_status(cib.status) == _read_of_status(self.cib.status)
            and list(cib.status.nodes) == list(self.cib.status.nodes)
            and all(map(self._is_alike, cib.status.nodes.values(), self.cib.status.nodes.values()))
        )

    def _is_alike(self, one: NodeStatus, other: NodeStatus) -> bool:
        return one is other or (
            _read_of_node(one) == _read_of_node(other)
            and all(one.attributes.get(name) == other.attributes.get(name) for name in self.names)
        )


class PlanCache:
    """Kept by a caller that plans again and again; used by one plan at a time."""

    __slots__ = (
        "_configuration", "_is_kept", "_newest", "_options", "definitions", "devices", "digests", "foreign_digests",
    )  # fmt: skip

    def __init__(self) -> None:
        self._newest: _KeptPlan | None = None
        self._configuration: Configuration | None = None
        self._options: ScheduleOptions | None = None
        self._is_kept = False
        self.definitions: dict[ResourceId, KeptDefinition] = {}
        """What each primitive was defined as when it was last read."""
        self.digests: dict[tuple[str, str, int], str] = {}
        self.foreign_digests: dict[tuple[str, str, int], str] = {}
        self.devices: dict[NodeName, tuple[ResourceId, ...]] = {}
        """What may fence each node."""

    def plan_for(self, cib: Cib, now: WallTime, options: ScheduleOptions) -> Plan | None:
        """Return the newest plan if it is that of this CIB and this time too."""
        newest = self._newest
        return newest.plan if newest is not None and newest.is_for(cib, now, options) else None

    def keep(self, cib: Cib, options: ScheduleOptions, plan: Plan, looks: Looks, time: EffectiveTime) -> None:
        """Keep a plan for those that follow, unless it went through all that nodes have."""
        names, holds = frozenset(looks.names), (time.holds_from, time.holds_until)
        self._newest = None if looks.are_all else _KeptPlan(cib, options, names, *holds, plan)

    def fit(self, configuration: Configuration, options: ScheduleOptions) -> PlanCache:
        """Forget what was kept for anything else, and return what the next plan may use."""
        is_same = self._configuration is configuration and self._options == options
        if is_same and self._is_kept:
            return self
        if not is_same:
            self._configuration, self._options = configuration, options
            self._is_kept = not any(block.rule is not None for block in _blocks(configuration))
        self.definitions, self.digests, self.foreign_digests, self.devices = {}, {}, {}, {}
        return self


def _all_but(kind: type, *left_out: str) -> Callable[[Any], tuple[object, ...]]:
    return attrgetter(*(entry.name for entry in fields(kind) if entry.name not in left_out))


_read_of_cib = _all_but(
    Cib, "configuration", "status", "index", "requests", "refused", "staged", "history", "api_tokens"
)
"""Beside configuration and status: all but the log and what was asked, at which no plan looks."""
_read_of_status = _all_but(Status, "nodes", "alerts", "availability")
_read_of_node = _all_but(NodeStatus, "attributes", "private_attributes")


def _blocks(configuration: Configuration) -> Iterator[AttributeSet]:
    yield from configuration.properties
    yield from configuration.resource_defaults
    yield from configuration.operation_defaults
    for node in configuration.nodes.values():
        yield from (*node.attributes, *node.utilization)
    for resource in (*configuration.resources.values(), *configuration.templates.values()):
        yield from (*resource.meta, *resource.parameters)
        if isinstance(resource, Primitive | Template):
            yield from resource.utilization
            for operation in resource.operations:
                yield from (*operation.parameters, *operation.meta)
