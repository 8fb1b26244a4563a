"""What the own action of a group, clone or bundle is worth: recomputed from its members' actions whenever it is asked.

Source: Pacemaker Development, "Scheduler". A collective's action has to be done when one member's has. A group has
started only if all members can start, a clone or bundle if one instance can. Nothing here makes an action needless or
possible again; it only finds that it is needed or impossible.
"""

from __future__ import annotations

from collections.abc import Iterable

from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Action, Node, Resource
from haclusterd.scheduler.model.tasks import DEMOTE, DEMOTED, PROMOTE, PROMOTED, RUNNING, START, STOP, STOPPED

BEGUN = {RUNNING: START, STOPPED: STOP, PROMOTED: PROMOTE, DEMOTED: DEMOTE}
"""The action of a primitive that ends with each of the marks of a collective."""
_ENDED = {task: mark for mark, task in BEGUN.items()}
_ROLE_CHANGING = frozenset({*BEGUN, *BEGUN.values()})
_OF_THE_INSIDE = frozenset({PROMOTE, PROMOTED, DEMOTE, DEMOTED})


def collective_flags(action: Action, node: Node | None) -> tuple[bool, bool]:
    """Return whether an action is optional, and whether it can be done, as seen from a node (None: from anywhere).

    Of a collective's role-changing action both are worked out from its members, and it is marked as required, or
    impossible, when it is; of any other action they are as they stand.
    """
    owner = action.resource
    task = _announced_by(action.notification) if action.notification else action.task
    if owner is None or owner.variant is Variant.PRIMITIVE or task not in _ROLE_CHANGING:
        return action.is_optional, action.is_runnable
    if owner.variant is Variant.GROUP:
        return _of_group(action, owner, node)
    return _of_instances(action, task, owner, node)


def _announced_by(notification: str) -> str:
    """Return the action whose worth a mark of a notification has: before it the action itself, afterwards its end."""
    when, _, task = notification.partition("-")
    return _ENDED[task] if when == "post" else task


def refresh_clones(tops: Iterable[Resource]) -> None:
    """Work out the actions of all clones once more, when everything else is settled: what they contain has changed."""
    for top in tops:
        for clone in (top, *top.children) if top.variant is Variant.BUNDLE else (top,):
            if clone.variant is Variant.CLONE:
                for known in clone.actions.values():
                    for action in known:
                        collective_flags(action, None)


def instances_of(owner: Resource, task: str) -> list[Resource]:
    """Return the instances of a clone, or of a bundle: its containers, or for roles what runs inside them."""
    if owner.variant is not Variant.BUNDLE:
        return owner.children
    if task in _OF_THE_INSIDE:
        return [replica.child for replica in owner.replicas if replica.child is not None]
    return [replica.container for replica in owner.replicas]


def action_of(resource: Resource, task: str, node: Node | None) -> Action | None:
    """Return the newest action of that name on a node (None: on any, or on none yet)."""
    known = resource.actions.get((task, 0))
    if not known:
        return None
    if node is None:
        return known[-1]
    return next((action for action in reversed(known) if action.node is node), None)


def _of_group(action: Action, group: Resource, node: Node | None) -> tuple[bool, bool]:
    begun = BEGUN.get(action.task, action.task)
    is_mark = begun != action.task
    is_optional = is_runnable = True
    for member in group.children:
        found = action_of(member, begun, node)
        if found is None:
            if begun not in (STOP, DEMOTE):
                is_runnable = False
            continue
        if not found.is_optional:
            is_optional = action.is_optional = False
        if is_mark and not found.is_runnable:
            is_runnable = action.is_runnable = False
    return is_optional, is_runnable


def _of_instances(action: Action, task: str, owner: Resource, node: Node | None) -> tuple[bool, bool]:
    is_optional, is_runnable = True, False
    for instance in instances_of(owner, task):
        is_leaf = instance.variant is Variant.PRIMITIVE
        found = action_of(instance, BEGUN.get(task, task) if is_leaf else task, node if is_leaf else None)
        if found is None:
            continue
        is_optional_here, is_runnable_here = collective_flags(found, node)
        if not is_optional_here:
            is_optional = action.is_optional = False
        is_runnable = is_runnable or is_runnable_here
    if not is_runnable and node is None:
        action.is_runnable = False
    return is_optional, is_runnable
