"""Phase: from what is said about resources and tasks to relations between the actions that exist.

A first action that does not exist is made, so that it can be found impossible; what has been stopped or demoted need
not be waited for.
"""

from collections.abc import Iterable, Sequence

from haclusterd.model.ocf import Role
from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.ordering import OrderingTemplate
from haclusterd.scheduler.model.entities import Action, Resource
from haclusterd.scheduler.model.relation_flags import FIRST_IMPLIES_THEN
from haclusterd.scheduler.model.tasks import DEMOTE, STOP


def relate_templates(templates: Iterable[OrderingTemplate], table: ActionTable) -> None:
    """Turn templates into relations, one after the other: what one makes, the next ones find."""
    for template in templates:
        firsts = _firsts(template, table)
        thens = _ends(template.then_action, template.then, template.then_task)
        for first in firsts:
            for then in thens:
                table.relate(first, then, _flags(template, first, then))


def _ends(action: Action | None, resource: Resource | None, task: str) -> Sequence[Action]:
    if action is not None:
        return (action,)
    return resource.actions.get((task, 0), ()) if resource is not None else ()


def _firsts(template: OrderingTemplate, table: ActionTable) -> Sequence[Action]:
    found = _ends(template.first_action, template.first, template.first_task)
    if found or template.first is None or _is_done(template, template.first):
        return found
    return (table.make(template.first, template.first_task, None, required=False),)


def _is_done(template: OrderingTemplate, first: Resource) -> bool:
    """Tell whether there is nothing to wait for."""
    if first is template.then:
        return True
    if template.first_task == STOP:
        return first.present_role.value <= Role.STOPPED.value
    return template.first_task == DEMOTE and first.present_role is Role.UNPROMOTED


def _flags(template: OrderingTemplate, first: Action, then: Action) -> int:
    if first.is_migration_abort and first.resource is then.resource:
        return template.flags & ~FIRST_IMPLIES_THEN
    return template.flags
