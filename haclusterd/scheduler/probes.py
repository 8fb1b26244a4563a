"""Phase: ask where nothing is known, and ask again where what is known may be wrong.

A resource starts nowhere before every online node has answered that it does not run there (Pacemaker Explained,
"Monitoring Resources for Failure": probes). What is `unverified`, because its daemon restarted or an outcome was lost,
is probed before any other action on it, wherever that is (safety.md §1, §6).
"""

from collections.abc import Iterable

from haclusterd.model.ids import ResourceId
from haclusterd.model.ocf import ExitCode, Role
from haclusterd.scheduler.actions import ActionTable
from haclusterd.scheduler.entities import (
    CANCEL,
    FIRST_IMPLIES_THEN,
    IF_REQUIRED_ON_SAME_NODE,
    MONITOR,
    ORDERED,
    PROMOTE,
    START,
    STOP,
    Action,
    Inventory,
    Resource,
)
from haclusterd.scheduler.nodes import Node
from haclusterd.scheduler.ordering import Template


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


def order_after_probes(probes: list[Action], templates: Iterable[Template], table: ActionTable) -> None:
    """Put behind the probes what depends on their answers: the starts; for unverified resources all actions."""
    by_resource: dict[ResourceId, list[Action]] = {}
    for probe in probes:
        resource = probe.resource
        assert resource is not None
        by_resource.setdefault(resource.id, []).append(probe)
        _order_own_actions(probe, resource, table)
    if not probes:
        return
    for template in templates:
        if template.first_task != STOP or template.first is template.then:
            continue
        flags = template.flags & IF_REQUIRED_ON_SAME_NODE or ORDERED
        for probe in by_resource.get(template.first.id, ()):
            for action in template.then.actions.get((template.then_task, 0), ()):
                table.relate(probe, action, flags)
    for resource_probes in by_resource.values():
        _order_dependents(resource_probes, table)


def _order_own_actions(probe: Action, resource: Resource, table: ActionTable) -> None:
    assert probe.node is not None
    is_unverified = probe.node.name in resource.unverified_on
    for (task, interval_ms), actions in resource.actions.items():
        if task == MONITOR and not interval_ms:
            continue
        for action in actions:
            is_here = action.node is probe.node and task in (STOP, CANCEL)
            if is_unverified or is_here or task in (START, PROMOTE):
                table.relate(probe, action, ORDERED)


def _order_dependents(probes: list[Action], table: ActionTable) -> None:
    """What would restart because this resource starts does not stop before it is known where this one is."""
    resource = probes[0].resource
    assert resource is not None
    for owner in _restarting_with(resource):
        for stop in owner.actions.get((STOP, 0), ()):
            if not stop.is_pseudo:
                for probe in probes:
                    table.relate(probe, stop, ORDERED)


def _restarting_with(resource: Resource) -> list[Resource]:
    """Return the other resources that a start of this one makes start anew."""
    found: dict[ResourceId, Resource] = {}
    waiting = list(resource.actions.get((START, 0), ()))
    seen = {action.id for action in waiting}
    while waiting:
        action = waiting.pop()
        thens = [relation.then for relation in action.after if relation.flags & FIRST_IMPLIES_THEN]
        if action.resource is not None:
            thens += [start for child in action.resource.children for start in child.actions.get((START, 0), ())]
        for then in thens:
            if then.id not in seen and then.resource is not None:
                seen.add(then.id)
                waiting.append(then)
                if then.task == START and then.resource is not resource:
                    found[then.resource.id] = then.resource
    return list(found.values())
