"""Phase: the resources, with their meta-attributes resolved (Pacemaker Explained, "Resource Meta-Attributes").

What is invalid counts as unset; what a group says holds for its members unless they say otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

from haclusterd.model.configuration import Configuration, Group, Primitive, effective
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import Role
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.entities import Inventory, MultipleActive, Needs, Resource, Variant
from haclusterd.scheduler.nodes import Node
from haclusterd.scheduler.readings import boolean, duration_ms, score
from haclusterd.scheduler.settings import Settings


def unpack_resources(configuration: Configuration, nodes: tuple[Node, ...], settings: Settings) -> Inventory:
    """Make the inventory: resources in document order, those of higher priority first."""
    inventory = Inventory(nodes)
    reader = _Reader(settings)
    base: dict[NodeName, int] = {node.name: 0 for node in nodes} if settings.is_symmetric else {}
    parents = configuration.parents()
    for item in configuration.resources.values():
        if isinstance(item, Group):
            _add_group(inventory, configuration, item, reader, base)
        elif not _is_member(configuration, item, parents):
            inventory.add_top(_primitive(inventory, item, reader, base))
    inventory.sort()
    return inventory


def _is_member(configuration: Configuration, item: Primitive, parents: Mapping[ResourceId, ResourceId]) -> bool:
    return item.id in parents and configuration.resources.get(item.id) is item


def _add_group(
    inventory: Inventory, configuration: Configuration, item: Group, reader: _Reader, base: dict[NodeName, int]
) -> None:
    group = Resource(item.id, Variant.GROUP)
    meta = effective(item.meta)
    reader.read(group, {**reader.settings.resource_defaults, **meta})
    group.stickiness = 0
    inherited = effective(item.parameters) if item.parameters else {}
    for member in item.members:
        primitive = configuration.resources.get(member)
        if isinstance(primitive, Primitive) and member not in inventory.by_id:
            child = _primitive(inventory, primitive, reader, base, parent_meta=meta, inherited=inherited)
            child.parent = group
            group.children.append(child)
    if not group.children or item.id in inventory.by_id:
        return
    group.allowed = dict(base)
    group.addends = {} if reader.settings.options.is_explaining else None
    inventory.add_top(group)


def _primitive(
    inventory: Inventory,
    item: Primitive,
    reader: _Reader,
    base: dict[NodeName, int],
    *,
    parent_meta: Mapping[str, str] | None = None,
    inherited: Mapping[str, str] | None = None,
) -> Resource:
    resource = Resource(item.id, Variant.PRIMITIVE)
    resource.agent = item.agent
    resource.operations = item.operations
    resource.is_fence_device = item.agent.standard == "stonith"
    own = effective(item.parameters) if item.parameters else {}
    resource.parameters = {**inherited, **own} if inherited else own
    meta = reader.settings.resource_defaults
    if item.meta or parent_meta:
        meta = {**meta, **(parent_meta or {}), **effective(item.meta)}
    reader.read(resource, meta)
    resource.allowed = dict(base)
    resource.addends = {} if reader.settings.options.is_explaining else None
    inventory.by_id[item.id] = resource
    return resource


class _Reader:
    """Reads meta-attributes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def read(self, resource: Resource, meta: Mapping[str, str]) -> None:
        """Fill in what the meta-attributes say."""
        resource.needs = self._needs(resource, meta.get("requires"))
        if self.settings.is_maintenance:
            resource.is_managed, resource.is_maintenance = False, True
        if not meta:
            return
        resource.priority = score(meta.get("priority"), 0)
        resource.stickiness = score(meta.get("resource-stickiness"), 0)
        threshold = score(meta.get("migration-threshold"), INFINITY)
        resource.migration_threshold = threshold if threshold >= 0 else INFINITY
        resource.failure_timeout_ms = duration_ms(meta.get("failure-timeout"), 0)
        resource.is_critical = boolean(meta.get("critical"), default=True)
        if meta.get("multiple-active") in {choice.value for choice in MultipleActive}:
            resource.multiple_active = MultipleActive(meta["multiple-active"])
        if boolean(meta.get("maintenance"), default=False):
            resource.is_managed, resource.is_maintenance = False, True
        elif not self.settings.is_maintenance:
            resource.is_managed = boolean(meta.get("is-managed"), default=True)
        resource.target_role_stopped = meta.get("target-role", "").strip().lower() == "stopped"
        if resource.target_role_stopped:
            resource.next_role = Role.STOPPED

    def _needs(self, resource: Resource, text: str | None) -> Needs:
        if text == "nothing":
            return Needs.NOTHING
        if text == "quorum" or resource.is_fence_device or not self.settings.is_fencing_enabled:
            return Needs.QUORUM
        return Needs.FENCING
