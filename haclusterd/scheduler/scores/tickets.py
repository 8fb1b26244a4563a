"""Phase: what tickets forbid: a site without a ticket does not run what needs it.

Source: Pacemaker Explained, "Multi-Site Clusters and Tickets". What happens to what already runs when the ticket is
lost is the constraint's `loss-policy`; a ticket in standby lets nothing new come. That a resource may not be promoted
without a ticket for its promoted role is enforced when roles are chosen (`promotion`). Where fencing would be in vain,
or would end the quorum, what has lost its ticket is stopped instead (safety.md §4); Pacemaker has no such limit.
"""

from collections.abc import Iterable, Iterator, Mapping

from haclusterd.model.cluster import TicketState
from haclusterd.model.configuration import Configuration, TicketConstraint
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import Role
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Node, Resource, TicketUse
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.references import cut_at_missing, expanded_sets, named_group
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.unpack.fencing_demands import demand_fencing
from haclusterd.scheduler.unpack.fencing_limits import FencingLimits

_ROLES = {
    "started": Role.STARTED,
    "stopped": Role.STOPPED,
    "unpromoted": Role.UNPROMOTED,
    "slave": Role.UNPROMOTED,
    "promoted": Role.PROMOTED,
    "master": Role.PROMOTED,
}


def apply_tickets(
    inventory: Inventory,
    configuration: Configuration,
    tickets: Mapping[str, TicketState],
    settings: Settings,
    limits: FencingLimits | None,
) -> None:
    """Obey all ticket constraints: forbid, block, or demand that nodes are fenced.

    `limits`: what may keep a node from being fenced; None: nothing.
    """
    for constraint in configuration.constraints.values():
        if isinstance(constraint, TicketConstraint):
            state = tickets.get(constraint.ticket) or TicketState(constraint.ticket)
            for name, role in _bound(constraint, inventory, configuration):
                resource = inventory.find(name)
                if resource is not None:
                    use = _use(constraint, role, state, settings)
                    resource.scores.ticket_uses.append(use)
                    if not use.is_held:
                        for leaf in list(resource.leaves()):
                            _obey(leaf, use, state, _places(leaf, inventory, settings), limits)


def _bound(
    constraint: TicketConstraint, inventory: Inventory, configuration: Configuration
) -> Iterator[tuple[ResourceId, str | None]]:
    expanded = expanded_sets(constraint.sets, inventory, configuration)
    for each in cut_at_missing(expanded, lambda name: inventory.find(name) is not None, keeps_members=True):
        for name in each.members:
            yield name, each.role or constraint.role
    if not constraint.sets:
        group = named_group(constraint.resource, inventory, configuration)
        for name in (constraint.resource,) if group is None else group:
            yield name, constraint.role


def _use(constraint: TicketConstraint, role: str | None, state: TicketState, settings: Settings) -> TicketUse:
    found = _ROLES.get((role or "").lower(), Role.UNKNOWN)
    policy = constraint.loss_policy or ("demote" if found is Role.PROMOTED else "stop")
    if policy == "fence" and not settings.is_fencing_enabled:
        policy = "stop"
    return TicketUse(constraint.id, state.id, found, policy, state.is_granted and not state.is_standby)


def _places(leaf: Resource, inventory: Inventory, settings: Settings) -> list[NodeName]:
    """Return the nodes that a resource is kept away from while its ticket is not held.

    The ticket of a bundle keeps its containers away: what does not run inside them yet has no other place, so that its
    start is blocked. In Pacemaker (2.1.5 and 3.0.0) it has no start where the name of another node comes before those
    of the containers, since of nodes that cannot be used the first name is taken.
    """
    places = list({**leaf.scores.allowed, **inventory.nodes_by_name})
    if leaf.found.active_nodes or not _is_bundled(leaf):
        return places
    if not settings.options.is_pacemaker_compatible:
        return []
    inside = {replica.node.name for replica in leaf.outermost.replicas if replica.node is not None}
    return [name for name in places if name not in inside]


def _obey(
    resource: Resource, use: TicketUse, state: TicketState, places: Iterable[NodeName], limits: FencingLimits | None
) -> None:
    if state.is_granted:
        _keep_away(resource, use, f"{use.id}: ticket {use.ticket} is in standby", places)
    elif not resource.found.active_nodes:
        _keep_away(resource, use, f"{use.id}: ticket {use.ticket} is not granted", places)
    else:
        _lose(resource, use, places, limits)


def _is_bundled(resource: Resource) -> bool:
    """Tell whether it runs inside a container: that is kept away, and what is in it has no other place."""
    return resource.top.variant is Variant.CLONE and resource.top.parent is not None


def _keep_away(resource: Resource, use: TicketUse, source: str, places: Iterable[NodeName]) -> None:
    if use.role is not Role.PROMOTED or use.loss_policy == "stop":
        _ban(resource, source, places)


def _ban(resource: Resource, source: str, places: Iterable[NodeName]) -> None:
    for place in places:
        resource.scores.add(place, -INFINITY, source)


def _lose(resource: Resource, use: TicketUse, places: Iterable[NodeName], limits: FencingLimits | None) -> None:
    """A resource is active and its ticket is not granted (any more)."""
    source = f"{use.id}: ticket {use.ticket} is not granted"
    is_its_role = use.role in (Role.UNKNOWN, resource.found.original_role)
    if use.loss_policy == "stop" or (use.loss_policy == "demote" and use.role is not Role.PROMOTED):
        _ban(resource, source, places)
    elif use.loss_policy == "fence" and is_its_role:
        for node in resource.found.active_nodes:
            held = _held(node, limits)
            if held:
                source += f"; {node.name} is not fenced for it: {held}"
            else:
                demand_fencing(node, "deadman ticket was lost")
        _ban(resource, source, places)
    elif use.loss_policy == "freeze" and is_its_role:
        resource.scores.frozen_by = source


def _held(node: Node, limits: FencingLimits | None) -> str:
    """Say why a node is not fenced, that can be ordered to stop something; empty: it is, or has to be anyway."""
    if limits is None or node.is_unclean or node.is_remote or not node.is_online:
        return ""
    held = limits.objection_to_ticket(node.name)
    if not held:
        limits.wanted.setdefault(node.name, [])
    return held
