"""What successive plans for one configuration have in common, kept from one to the next.

A plan that follows an event reads the same configuration again; what was worked out from that alone need not be worked
out again. Everything here depends on nothing but the configuration and the options: a configuration with rules, which
depend on time and nodes, keeps nothing, and another configuration (as an object) starts with an empty cache. A plan
with the cache is the plan without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from haclusterd.model.configuration import AttributeSet, Configuration, Primitive, Template
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.scheduler.model.entities import Definition
from haclusterd.scheduler.model.options import ScheduleOptions


@dataclass(frozen=True, slots=True)
class KeptDefinition:
    """What is the same for all instances of one primitive."""

    configured: Primitive
    definition: Definition


class PlanCache:
    """Kept by a caller that plans again and again; used by one plan at a time."""

    __slots__ = ("_configuration", "_is_kept", "_options", "definitions", "devices", "digests", "foreign_digests")

    def __init__(self) -> None:
        self._configuration: Configuration | None = None
        self._options: ScheduleOptions | None = None
        self._is_kept = False
        self.definitions: dict[ResourceId, KeptDefinition] = {}
        """What each primitive was defined as when it was last read."""
        self.digests: dict[tuple[str, str, int], str] = {}
        self.foreign_digests: dict[tuple[str, str, int], str] = {}
        self.devices: dict[NodeName, tuple[ResourceId, ...]] = {}
        """What may fence each node."""

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
