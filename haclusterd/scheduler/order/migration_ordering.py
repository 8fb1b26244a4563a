"""Phase: what an ordering means for resources that migrate live: the migration stands for start and stop.

Source: Pacemaker Explained, "Migrating Resources". What must start before it must have started, or have arrived,
before the migration begins.
"""

from collections.abc import Iterable, Iterator

from haclusterd.scheduler.actions.ordering import OrderingTemplate
from haclusterd.scheduler.model.entities import Resource
from haclusterd.scheduler.model.relation_flags import IF_FIRST_UNMIGRATABLE, ORDERED
from haclusterd.scheduler.model.tasks import DEMOTE, MIGRATE_FROM, MIGRATE_TO, PROMOTE, START, STOP


def with_migrations(templates: Iterable[OrderingTemplate]) -> Iterator[OrderingTemplate]:
    """Yield each template, and after it what it means for migrations."""
    for template in templates:
        yield template
        first, then = template.first, template.then
        if first is None or then is None or template.then_action is not None:
            continue
        if template.first_action is not None and not then.definition.is_remote_connection:
            continue
        if then.found.is_migratable and first is not then and not first.is_inside(then) and not then.is_inside(first):
            yield from _equivalents(template, first, then)


def _equivalents(template: OrderingTemplate, first: Resource, then: Resource) -> Iterator[OrderingTemplate]:
    tasks = template.first_task, template.then_task
    waits = ORDERED | (IF_FIRST_UNMIGRATABLE if first.found.is_migratable else 0)
    is_partial = then.partial_target is not None
    if tasks == (START, START):
        if first.found.is_migratable:
            yield OrderingTemplate(first, MIGRATE_FROM, then, MIGRATE_TO, ORDERED, template.id)
        yield OrderingTemplate(first, START, then, MIGRATE_TO, waits, template.id)
    elif tasks == (STOP, STOP):
        # What stops on a remote node stops before its connection moves.
        stop = template.first_action
        yield OrderingTemplate(first, STOP, then, MIGRATE_TO, waits, template.id, first_action=stop)
        if is_partial:
            yield OrderingTemplate(first, STOP, then, MIGRATE_FROM, waits, template.id, first_action=stop)
    elif tasks == (PROMOTE, START):
        yield OrderingTemplate(first, PROMOTE, then, MIGRATE_TO, ORDERED, template.id)
    elif tasks == (DEMOTE, STOP):
        yield OrderingTemplate(first, DEMOTE, then, MIGRATE_TO, ORDERED, template.id)
        if is_partial:
            yield OrderingTemplate(first, DEMOTE, then, MIGRATE_FROM, ORDERED, template.id)
