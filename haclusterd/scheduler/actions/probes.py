"""Phase: ask where nothing is known, and ask again where what is known may be wrong.

A resource starts nowhere before every online node has answered that it does not run there (Pacemaker Explained,
"Monitoring Resources for Failure": probes). What is `unverified`, because its daemon restarted or an outcome was lost,
is probed before any other action on it, wherever that is (safety.md §1, §6). Which action waits for which probe is
settled later (`probe_ordering`).
"""

from __future__ import annotations

from haclusterd.model.ids import NodeName
from haclusterd.model.ocf import ExitCode, Role
from haclusterd.model.records import dataclass, field
from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.ordering import OrderingTemplate
from haclusterd.scheduler.actions.remote_states import RemoteState, remote_state
from haclusterd.scheduler.model.definition import Discovery, Variant
from haclusterd.scheduler.model.entities import Action, Node, NodeKind, Replica, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.relation_flags import IF_ON_SAME_NODE, NESTED_REMOTE_PROBE, ORDERED
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.model.tasks import MONITOR, START, STOP
from haclusterd.scheduler.unpack.fencing_demands import demand_fencing

_DOUBTED = "what is recorded of it must be verified"
_UNKNOWN = "it is not known whether it runs there"


@dataclass(slots=True)
class Probes:
    """The probes of one plan, and what is to come before or after some of them."""

    by_resource: dict[Resource, list[Action]] = field(default_factory=dict)
    templates: list[OrderingTemplate] = field(default_factory=list)


def create_probes(inventory: Inventory, table: ActionTable, settings: Settings) -> Probes:
    """Create the probes of all nodes."""
    prober = _Prober(table, settings, any(_lived_on(node) for node in inventory.nodes))
    names = {node.name for node in inventory.nodes if node.is_online and not node.is_unclean}
    tops = [top for top in inventory.tops if not prober.is_settled(top, names)]
    for node in inventory.nodes:
        if not node.is_online:
            if node.kind is NodeKind.REMOTE and remote_state(node) is RemoteState.FAILED:
                demand_fencing(node, "the connection is unrecoverable")
            continue
        if node.is_unclean or not node.are_probes_allowed:
            continue
        if node.is_pending and not settings.options.is_pacemaker_compatible:
            continue
        for top in tops:
            if not node.is_bundle_node or top.variant is Variant.BUNDLE:
                prober.probe(top, node)
    return prober.made


def _lived_on(node: Node) -> bool:
    """Tell whether a node continues in the boot that is recorded as dead: whatever ran there may run there still.

    Then it is asked although `enable-startup-probes` is false: its history ended with the record (safety.md §5).
    """
    dead, alive = node.status.fenced_incarnation, node.status.incarnation
    return dead is not None and alive is not None and dead.boot_id == alive.boot_id


class _Prober:
    """Finds what has to be probed on a node."""

    def __init__(self, table: ActionTable, settings: Settings, has_lived_on: bool) -> None:
        self.made = Probes()
        self._has_lived_on = has_lived_on
        self._exclusive: dict[Resource, bool] = {}
        self._table = table
        self._is_asking = settings.is_probing_at_startup

    def is_settled(self, top: Resource, names: set[NodeName]) -> bool:
        """Tell at once, without going from node to node, that nobody has to be asked about a resource."""
        if top.variant is Variant.BUNDLE or top.scores.has_exclusive_discovery:
            return False
        leaves = list(top.leaves())
        if not self._is_asking and not self._has_lived_on:
            return not any(leaf.found.unverified_on for leaf in leaves)
        if top.is_anonymous_clone:
            is_simple = all(child.variant is Variant.PRIMITIVE for child in top.children)
            return is_simple and names <= set().union(*(leaf.found.known_on for leaf in leaves))
        return all(names <= leaf.found.known_on for leaf in leaves)

    def probe(self, resource: Resource, node: Node) -> None:
        """Create the probes of a resource, and of what it contains, on a node."""
        if resource.variant is Variant.PRIMITIVE:
            self._probe_primitive(resource, node)
        elif resource.variant is Variant.GROUP:
            for member in resource.children:
                self.probe(member, node)
        elif resource.variant is Variant.CLONE:
            self._probe_clone(resource, node)
        else:
            for replica in resource.replicas:
                self._probe_replica(resource, replica, node)

    def _probe_clone(self, clone: Resource, node: Node) -> None:
        name = node.name
        if clone.scores.has_exclusive_discovery and clone.scores.discovery.get(name) is not Discovery.EXCLUSIVE:
            return
        if clone.definition.is_unique:
            for child in clone.children:
                self.probe(child, node)
            return
        if not clone.children:
            return
        # The instance that has the node's history is the one to ask for: the doubt is noted there alone.
        there = (
            next((child for child in clone.children if _is_doubted_on(child, node)), None)
            or next((child for child in clone.children if _is_known_on(child, node)), None)
            or next((child for child in clone.children if child.assignment.node is node), None)
        )
        self.probe(there or min(clone.children, key=lambda child: child.number or 0), node)

    def _probe_replica(self, bundle: Resource, replica: Replica, node: Node) -> None:
        if node.is_bundle_node:
            if replica.child is not None and replica.node is node:
                self.probe(replica.child, node)
            return
        if replica.ip is not None:
            self._probe_primitive(replica.ip, node)
        if self._probe_primitive(replica.container, node) and bundle.definition.clone_node_max == 1:
            probe = self.made.by_resource[replica.container][-1]
            for other in bundle.replicas:
                if other is not replica:
                    self.made.templates.append(
                        OrderingTemplate(
                            None, "", other.container, START, ORDERED | IF_ON_SAME_NODE, first_action=probe
                        )
                    )
        if replica.connection is not None and self._probe_primitive(replica.connection, node):
            probe = self.made.by_resource[replica.connection][-1]
            self.made.templates.append(
                OrderingTemplate(replica.container, START, None, "", NESTED_REMOTE_PROBE, then_action=probe)
            )

    def _probe_primitive(self, resource: Resource, node: Node) -> bool:
        if node.name in resource.found.known_on or not self._is_to_be_asked(resource, node):
            return False
        if node.is_remote and not self._is_asked_on_remote(resource, node):
            return False
        probe = self._table.make_probe(resource, node)
        if node not in resource.found.active_nodes:
            probe.expected = ExitCode.NOT_RUNNING
        elif resource.found.original_role is Role.PROMOTED:
            probe.expected = ExitCode.PROMOTED
        probe.why = _DOUBTED if node.name in resource.found.unverified_on else _UNKNOWN
        self.made.by_resource.setdefault(resource, []).append(probe)
        return True

    def _is_to_be_asked(self, resource: Resource, node: Node) -> bool:
        if node.name in resource.found.unverified_on:
            return True
        if resource.found.is_removed or not (self._is_asking or _lived_on(node)):
            return False
        if resource.launcher is not None and not resource.definition.is_remote_connection:
            return False
        if node.is_bundle_node or self._is_exclusive(resource):
            return resource.scores.discovery.get(node.name) is Discovery.EXCLUSIVE
        return not resource.scores.discovery or resource.scores.discovery.get(node.name) is not Discovery.NEVER

    def _is_exclusive(self, resource: Resource) -> bool:
        """Whether it, or what contains it, is probed only where a constraint says so.

        What is said of a bundle holds for its containers and addresses, and not for the connections to them; a rule
        that is true nowhere says nothing of them, and they are looked for on each node.
        """
        found = self._exclusive.get(resource)
        if found is None:
            found = any(each.scores.has_exclusive_discovery for each in (resource, resource.top))
            if not found and not resource.definition.is_remote_connection:
                around = resource.outermost.scores
                found = around.has_exclusive_discovery and Discovery.EXCLUSIVE in around.discovery.values()
            self._exclusive[resource] = found
        return found

    def _is_asked_on_remote(self, resource: Resource, node: Node) -> bool:
        """Fence devices and connections never run on remote nodes; a guest is asked only while its launcher stays."""
        if resource.definition.is_fence_device or resource.definition.is_remote_connection:
            return False
        if not node.is_guest:
            return True
        if any(launched.definition.is_remote_connection for launched in resource.launched):
            return False
        launcher = node.connection.launcher if node.connection is not None else None
        if launcher is None:
            return True
        if launcher.found.original_role.value <= Role.STOPPED.value:
            if launcher.assignment.node is not None and launcher.assignment.node.name not in launcher.found.known_on:
                self.made.templates.append(OrderingTemplate(launcher, MONITOR, resource.top, START, ORDERED))
            return False
        if _is_about_to_stop(launcher, node):
            self.made.templates.append(OrderingTemplate(launcher, STOP, resource.top, START, ORDERED))
            return False
        return True


def _is_doubted_on(instance: Resource, node: Node) -> bool:
    if not instance.children:
        return node.name in instance.found.unverified_on
    return any(node.name in leaf.found.unverified_on for leaf in instance.leaves())


def _is_known_on(instance: Resource, node: Node) -> bool:
    return node.name in instance.found.known_on or any(_is_known_on(child, node) for child in instance.children)


def _is_about_to_stop(launcher: Resource, guest: Node) -> bool:
    is_stopped = launcher.assignment.next_role is Role.STOPPED
    if guest.must_be_reset or guest.is_unclean or launcher.found.is_failed or is_stopped:
        return True
    current = launcher.current_node()
    return current is not None and launcher.assignment.node is not None and current is not launcher.assignment.node
