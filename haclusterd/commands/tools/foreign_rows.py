"""Nodes and resources of a CIB of Pacemaker, as Pacemaker's tools show them.

Such a CIB may hold what this cluster does not have of itself: remote and guest nodes, bundles, instances of unique
clones, results that mean something only beside their definition. Therefore the scheduler is asked what it finds in it.

Source: measured with crm_simulate and crm_mon 2.1.5.
"""

from collections.abc import Iterator

from haclusterd.commands.context import Context
from haclusterd.commands.tools.rows import (
    PENDING,
    BundleRow,
    CloneRow,
    GroupRow,
    NodeRow,
    PrimitiveRow,
    ReplicaRow,
    Row,
    Rows,
    is_disabling,
)
from haclusterd.model.configuration import Bundle
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import ActionName, Role
from haclusterd.model.records import replace
from haclusterd.scheduler.graph.found_rows import is_away_with_host, is_out_of_sight
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Node, Replica, Resource

_NO_FEATURE_SET = "<3.15.1"
"""What Pacemaker's tools say of a node that does not tell its feature set."""


class ForeignRows(Rows):
    """The nodes and resources of one CIB of Pacemaker."""

    def __init__(self, context: Context, *, has_pending: bool = True) -> None:
        """`has_pending`: whether what is under way is shown as such, as `Starting`."""
        from haclusterd.scheduler.schedule import find_state

        self._has_pending = has_pending
        self._inventory = find_state(context.cib, context.now, context.schedule_options)
        super().__init__(context)

    def nodes(self) -> tuple[NodeRow, ...]:
        """Return every node in order of names."""
        return tuple(map(self._node, self._inventory.nodes))

    def node(self, name: NodeName) -> NodeRow:
        """Return one node."""
        return self._node(self._inventory.nodes_by_name[name])

    def _node(self, node: Node) -> NodeRow:
        connection = node.connection
        launcher = None if connection is None else connection.launcher
        feature_set = node.attributes.get("#feature-set") or _NO_FEATURE_SET
        return NodeRow(
            node.name,
            self.numbers.get(node.name, str(node.name)),
            node.is_online,
            is_standby=node.is_standby,
            is_maintenance=node.is_maintenance,
            is_pending=node.is_pending,
            is_unclean=node.is_unclean,
            is_leaving=node.is_shutting_down,
            is_expected=not node.is_remote and (node.is_online or node.is_unclean),
            is_dc=node.is_controller,
            health=self.health(node.name),
            running=len(node.running),
            kind="guest" if node.is_guest else "remote" if node.is_remote else "member",
            launcher="" if launcher is None else launcher.id,
            host="" if launcher is None else next((each.name for each in launcher.found.active_nodes), ""),
            feature_set=feature_set,
            is_failed_standby=node.is_fail_standby,
            is_of_bundle=node.is_bundle_node,
        )

    def places_on(self, name: NodeName) -> dict[ResourceId, int]:
        """Return in which order the primitives on a node were found."""
        return {self._one(each).id: at for at, each in enumerate(self._inventory.nodes_by_name[name].running)}

    def _all(self) -> Iterator[Row]:
        for top in self._inventory.tops:
            if not is_out_of_sight(top) and not _is_gone(top):
                yield self._of_top(top)

    def _of_top(self, top: Resource) -> Row:
        if top.variant is Variant.PRIMITIVE:
            return self._one(top)
        if top.variant is Variant.GROUP:
            return self._group(top)
        if top.variant is Variant.BUNDLE:
            return self._bundle(top)
        instances = tuple(self._instance(each, top) for each in top.children if not _is_gone(each))
        child = top.children[0].base_id if top.children else self._child_of(top.id)
        is_promotable = top.definition.is_promotable
        role = top.definition.meta.get("target-role", "")
        return CloneRow(
            top.id, child, instances, is_promotable, top.definition.is_unique, top.definition.is_managed,
            is_disabling(role, is_promotable=is_promotable), role or self._role_of(child),
            tuple(self._instance(each, top) for each in top.children if _is_gone(each)), self._looked_for_on(top),
        )  # fmt: skip

    def _looked_for_on(self, clone: Resource) -> frozenset[NodeName] | None:
        """Return where a clone is known, which Pacemaker's tools take for where it may run in an opt-in cluster."""
        if self.overview.properties.boolean("symmetric-cluster"):
            return None
        return frozenset(name for leaf in clone.leaves() for name in leaf.found.known_on)

    def _child_of(self, clone: ResourceId) -> ResourceId:
        return next(child for child, parent in self.cib.configuration.parents().items() if parent == clone)

    def _bundle(self, bundle: Resource) -> BundleRow:
        configured = self.cib.configuration.resources.get(bundle.id)
        engine, image = (configured.engine, configured.image) if isinstance(configured, Bundle) else ("", "")
        replicas = tuple(self._replica(bundle, each) for each in bundle.replicas)
        return BundleRow(
            bundle.id, engine, image, replicas, bundle.definition.is_unique, bundle.definition.is_managed
        )

    def _instance(self, instance: Resource, clone: Resource) -> PrimitiveRow | GroupRow:
        is_away = is_away_with_host(clone, instance)
        if instance.variant is Variant.PRIMITIVE:
            return replace(self._one(instance), is_away=is_away)
        group = self._group(instance)
        return replace(group, members=tuple(replace(each, is_away=is_away) for each in group.members))

    def _group(self, group: Resource) -> GroupRow:
        members = tuple(map(self._one, group.children))
        is_disabled = is_disabling(group.definition.meta.get("target-role", ""), is_promotable=False)
        return GroupRow(group.id, members, group.definition.is_managed, is_disabled, len(members))

    def _replica(self, bundle: Resource, replica: Replica) -> ReplicaRow:
        container, child = self._one(replica.container), replica.child
        parts = [replica.ip, child, replica.container, replica.connection]
        inside = container if child is None else self._one(child)
        name = container.id if child is None else ResourceId(f"{bundle.id}-{replica.number}")
        address = f" ({replica.address})" if replica.address else ""
        shown = replace(inside, id=ResourceId(f"{name}{address}"), nodes=container.nodes)
        return ReplicaRow(replica.number, shown, tuple(self._one(each) for each in parts if each is not None))

    def _one(self, resource: Resource) -> PrimitiveRow:
        found, definition = resource.found, resource.definition
        pending = found.pending_action
        is_shown = self._has_pending and pending in PENDING
        role = PENDING[ActionName(pending)] if is_shown else ""
        is_unique = definition.is_unique or resource.top.definition.is_unique
        return PrimitiveRow(
            resource.id if is_unique else resource.base_id,
            str(definition.agent),
            role or _role(resource),
            tuple(node.name for node in found.active_nodes),
            definition.meta.get("target-role", ""),
            resource.is_managed,
            is_failed=found.is_failed,
            is_blocked=found.is_blocked,
            is_orphaned=found.is_removed,
            is_locked="" if found.lock_node is None or found.active_nodes else found.lock_node.name,
            is_promotable=resource.top.definition.is_promotable,
            pending_on="" if found.pending_node is None or pending not in PENDING else found.pending_node.name,
            is_being_monitored=self._has_pending and pending == ActionName.MONITOR,
            is_failure_ignored=found.ignores_failure,
            is_connection=resource.remote_node is not None and resource.launcher is not None,
        )


def rows_of(context: Context, *, has_pending: bool = True) -> Rows:
    """Return the nodes and resources of this cluster, or of the CIB of Pacemaker that is asked about."""
    if context.schedule_options.is_pacemaker_compatible:
        return ForeignRows(context, has_pending=has_pending)
    return Rows(context)


def _is_gone(resource: Resource) -> bool:
    """Tell whether something is merely remembered: removed, or an instance too many, and active nowhere."""
    return resource.found.is_removed and not any(leaf.found.active_nodes for leaf in resource.leaves())


def _role(resource: Resource) -> str:
    role = resource.found.original_role
    if role in (Role.UNKNOWN, Role.STOPPED):
        return str(Role.STOPPED)
    if role is Role.PROMOTED:
        return str(role)
    return str(Role.UNPROMOTED if resource.top.definition.is_promotable else Role.STARTED)
