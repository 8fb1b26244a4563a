"""Phase: ask where nothing is known, and ask again where what is known may be wrong.

A resource starts nowhere before every online node has answered that it does not run there (Pacemaker Explained,
"Monitoring Resources for Failure": probes). What is `unverified`, because its daemon restarted or an outcome was lost,
is probed before any other action on it, wherever that is (safety.md §1, §6).
"""

from haclusterd.model.ids import ResourceId
from haclusterd.model.ocf import ExitCode, Role
from haclusterd.scheduler.actions import ActionTable
from haclusterd.scheduler.entities import CANCEL, MONITOR, ORDERED, PROMOTE, START, STOP, Action, Inventory, Resource
from haclusterd.scheduler.nodes import Node


def create_probes(inventory: Inventory, table: ActionTable) -> list[Action]:
    """Create the probes of all nodes."""
    probes: list[Action] = []
    order = {resource.id: index for index, resource in enumerate(inventory.primitives())}
    for node in inventory.nodes:
        if not node.is_online or node.is_unclean or node.is_pending:
            continue
        for identifier in sorted(_unknown_on(inventory, node, order), key=lambda item: order[item]):
            resource = inventory.by_id[identifier]
            if resource.is_removed and node.name not in resource.unverified_on:
                continue
            probes.append(_probe(resource, node, table))
    return probes


def _unknown_on(inventory: Inventory, node: Node, order: dict[ResourceId, int]) -> list[ResourceId]:
    """Return the resources to be probed there; the common case, that all are known, costs no more than a difference."""
    recorded = order.keys() - node.status.probed if not node.status.unverified else order.keys()
    return [name for name in recorded if node.name not in inventory.by_id[name].known_on]


def _probe(resource: Resource, node: Node, table: ActionTable) -> Action:
    probe = table.make(resource, MONITOR, node, required=True)
    probe.is_optional = False
    probe.is_probe = True
    is_active = node in resource.active_nodes
    if not is_active:
        probe.expected = ExitCode.NOT_RUNNING
    else:
        probe.expected = ExitCode.PROMOTED if resource.original_role is Role.PROMOTED else ExitCode.OK
    if node.name in resource.unverified_on:
        probe.why = "what is recorded of it must be verified"
    else:
        probe.why = "it is not known whether it runs there"
    return probe


def order_after_probes(probes: list[Action], table: ActionTable) -> None:
    """Put the starts, and for unverified resources all other actions, behind the probes."""
    for probe in probes:
        resource = probe.resource
        assert resource is not None
        assert probe.node is not None
        is_unverified = probe.node.name in resource.unverified_on
        for (task, interval_ms), actions in resource.actions.items():
            if task == MONITOR and not interval_ms:
                continue
            if is_unverified or task in (START, PROMOTE):
                for action in actions:
                    table.relate(probe, action, ORDERED)
        if not is_unverified:
            _order_stops_and_cancels(probe, resource, table)


def _order_stops_and_cancels(probe: Action, resource: Resource, table: ActionTable) -> None:
    """On one node the probe comes first: one action of a resource after the other."""
    for (task, _), actions in resource.actions.items():
        if task in (STOP, CANCEL):
            for action in actions:
                if action.node is probe.node:
                    table.relate(probe, action, ORDERED)
