"""Phase: what waits for probes, because it depends on their answers.

Source: Pacemaker Development, "Scheduler". The start of a resource waits for all of its probes; what would restart
because it starts does not stop before they have answered; and what waits for its stop waits for them.
"""

from __future__ import annotations

from collections.abc import Iterable

from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.ordering import OrderingTemplate
from haclusterd.scheduler.actions.probes import Probes
from haclusterd.scheduler.actions.unfencing import UNFENCE
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Action, Node, Resource
from haclusterd.scheduler.model.relation_flags import (
    FIRST_IMPLIES_THEN,
    IF_FIRST_UNMIGRATABLE,
    IF_ON_SAME_NODE,
    IF_ON_SAME_NODE_OR_TARGET,
    IF_REQUIRED_ON_SAME_NODE,
    ORDERED,
    UNRUNNABLE_FIRST_BLOCKS,
)
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.model.tasks import DEMOTE, DO_SHUTDOWN, MONITOR, PROMOTE, START, STOP

_UNDOING = {START: STOP, PROMOTE: DEMOTE}
_KEPT = IF_FIRST_UNMIGRATABLE | IF_ON_SAME_NODE


def order_own_after_probes(probes: Probes, table: ActionTable) -> None:
    """Order a resource's own start after its probes; what is unverified is left wholly alone until then."""
    for resource, asked in probes.by_resource.items():
        top = resource.top
        starting = top if top.variant is Variant.CLONE else resource
        starts = starting.actions.get((START, 0), ())
        for probe in asked:
            flags = ORDERED
            if not probe.is_runnable and not starting.found.active_nodes:
                flags |= UNRUNNABLE_FIRST_BLOCKS
            for start in starts:
                table.relate(probe, start, flags)
            assert probe.node is not None
            if probe.node.name in resource.found.unverified_on:
                _order_all(probe, resource, table)
                if top.definition.is_promotable:
                    _order_promotions(probe, top, table)


def _order_all(probe: Action, resource: Resource, table: ActionTable) -> None:
    for (task, interval_ms), actions in resource.actions.items():
        if task != MONITOR or interval_ms:
            for action in actions:
                table.relate(probe, action, ORDERED)


def _order_promotions(probe: Action, clone: Resource, table: ActionTable) -> None:
    """Promote no instance before it is known whether an unverified one is promoted."""
    for leaf in clone.leaves():
        for promote in leaf.actions.get((PROMOTE, 0), ()):
            table.relate(probe, promote, ORDERED)


def order_others_after_probes(
    probes: Probes, templates: Iterable[OrderingTemplate], table: ActionTable, settings: Settings
) -> None:
    """Order what others do after the probes, once all orders among resources are known."""
    by_resource = probes.by_resource
    if not by_resource:
        return
    for resource, asked in by_resource.items():
        _order_instances(resource, asked, table)
        _order_dependents(resource, asked, table, settings)
    for template in templates:
        if template.first_task == STOP and template.first in by_resource and template.first is not template.then:
            _order_as_stop(template, by_resource[template.first], table)


def _order_instances(resource: Resource, asked: list[Action], table: ActionTable) -> None:
    """While a node cannot answer, no instance that is inactive starts in a clone that is active on another node."""
    top = resource.top
    if top.variant is not Variant.CLONE or not top.found.active_nodes:
        return
    for probe in asked:
        if probe.is_runnable:
            continue
        for instance in top.children:
            if not instance.found.active_nodes:
                for start in instance.actions.get((START, 0), ()):
                    table.relate(probe, start, ORDERED | UNRUNNABLE_FIRST_BLOCKS)


def _order_as_stop(template: OrderingTemplate, asked: list[Action], table: ActionTable) -> None:
    first, then = template.first, template.then
    assert first is not None
    if then is not None and first.launcher is then and template.then_task == STOP:
        return
    flags = ORDERED | (template.flags & _KEPT)
    for replacing in (IF_ON_SAME_NODE_OR_TARGET, IF_REQUIRED_ON_SAME_NODE):
        if template.flags & replacing:
            flags = replacing
    if template.then_action is not None:
        thens: Iterable[Action] = (template.then_action,)
    else:
        thens = then.actions.get((template.then_task, 0), ()) if then is not None else ()
    for action in thens:
        for probe in asked:
            is_here = action.node is probe.node
            if not (action.is_fence and is_here) and not (action.task == DO_SHUTDOWN and not is_here):
                table.relate(probe, action, flags)


def _order_dependents(resource: Resource, asked: list[Action], table: ActionTable, settings: Settings) -> None:
    """What would restart because of what waits for a probe does not stop before it is known where this one is.

    What stops so that its node can be let in does not wait for a probe that waits for such an unfencing: that of the
    same node, or, by way of further probes, that of another one.
    """
    is_compatible = settings.options.is_pacemaker_compatible
    known: dict[tuple[int, ...], list[Action]] = {}
    for probe in asked:
        waiting = [relation.then for relation in probe.after]
        key = tuple(map(id, waiting))
        undone = known.get(key)
        if undone is None:
            undone = known[key] = _undone_with(resource, waiting)
        for undoing in undone:
            is_near = undoing.node is probe.node or not is_compatible
            if not (is_near and _waits_for_unfencing(probe, table) and _is_before_unfencing(undoing, table)):
                table.relate(probe, undoing, ORDERED)


def _waits_for_unfencing(probe: Action, table: ActionTable) -> bool:
    unfence = _required_unfencing(probe.node, table)
    return unfence is not None and any(relation.first is unfence for relation in probe.before)


def _is_before_unfencing(undoing: Action, table: ActionTable) -> bool:
    owner = undoing.resource
    is_needed = owner is not None and owner.definition.needs_unfencing
    return is_needed and _required_unfencing(undoing.node, table) is not None


def _required_unfencing(node: Node | None, table: ActionTable) -> Action | None:
    unfence = table.fences.get((node.name, UNFENCE)) if node is not None else None
    return unfence if unfence is not None and unfence.is_required else None


def _undone_with(resource: Resource, waiting: list[Action]) -> list[Action]:
    """Return the stops and demotes of other resources that follow from what waits for a probe of this one.

    Instances beside it in its own clone start with it, and need not restart because of that; nor need the other members
    of its own instance.
    """
    top = resource.top
    starting, instance = top if top.variant is Variant.CLONE else resource, _instance(resource)
    found: dict[int, Action] = {}
    _note_undone(resource, (action for action in waiting if action.resource is not None), found)
    seen = {action.id for action in waiting}
    while waiting:
        action = waiting.pop()
        if starting is not resource and _instance(action.resource) is instance:
            continue
        inside, after = _following(action, resource)
        for then in (*inside, *after):
            if then.id not in seen:
                seen.add(then.id)
                waiting.append(then)
        is_own = starting is not resource and action.resource is top
        _note_undone(resource, after if is_own else [*inside, *after], found)
    return list(found.values())


def _instance(resource: Resource | None) -> Resource | None:
    """Return the instance of a clone that a resource is, or is a member of."""
    while resource is not None and (resource.parent is None or resource.parent.variant is not Variant.CLONE):
        resource = resource.parent
    return resource


def _note_undone(resource: Resource, following: Iterable[Action], found: dict[int, Action]) -> None:
    for then in following:
        owner = then.resource
        is_other = owner is not None and owner is not resource
        if owner is not None and is_other and owner.variant is Variant.PRIMITIVE and not _stops_anyway(owner, resource):
            undone = owner.actions.get((_UNDOING.get(then.task, ""), 0), ())
            found.update((item.id, item) for item in undone if not item.is_pseudo)


def _stops_anyway(owner: Resource, resource: Resource) -> bool:
    """Tell whether something gets no node, so that it stops whatever a probe of another resource finds out.

    Members of a group that is not cloned wait for those of the same group, and containers for those of the same bundle,
    all the same, as in Pacemaker.
    """
    outermost = owner.outermost
    is_beside = outermost is resource.outermost and outermost.variant is not Variant.CLONE
    return owner.assignment.node is None and not is_beside


def _following(action: Action, resource: Resource) -> tuple[list[Action], list[Action]]:
    """Return what a required action makes required: inside a collective what is alike, and what is so related.

    Of an interleaved clone that is only the instance that belongs together with the probed resource.
    """
    after = [relation.then for relation in action.after if relation.flags & FIRST_IMPLIES_THEN]
    owner = action.resource
    if owner is None or owner.variant is Variant.PRIMITIVE:
        return [], after
    inside = [then for child in owner.children for then in child.actions.get((action.task, 0), ())]
    if not owner.definition.is_interleaved or resource.assignment.node is None:
        return inside, after
    companion = _companion(resource, owner)
    return (
        [then for then in inside if then.resource is companion],
        [then for then in after if not _is_instance(then, owner) or then.resource is companion],
    )


def _is_instance(action: Action, owner: Resource) -> bool:
    return action.resource is not None and action.resource.parent is owner


def _companion(resource: Resource, clone: Resource) -> Resource | None:
    """Return the instance of a clone where a resource is assigned; none restarts where there is none."""
    return next((child for child in clone.children if child.assignment.node is resource.assignment.node), None)
