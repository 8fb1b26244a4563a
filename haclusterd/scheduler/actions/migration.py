"""Phase: live migration: a resource that moves without a stop in between.

Source: Pacemaker Explained, "Migrating Resources"; Pacemaker Development, "Scheduler". It is moved to the target
(`migrate_to` on the source, `migrate_from` on the target), then stopped on the source; its start is then a
pseudo-action. Propagation takes all this back where something it depends on stands in the way.
"""

from __future__ import annotations

from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.model.entities import Resource
from haclusterd.scheduler.model.relation_flags import FIRST_ELSE_THEN, ORDERED, UNMIGRATABLE_THEN_BLOCKS
from haclusterd.scheduler.model.tasks import MIGRATE_FROM, MIGRATE_TO, MONITOR, START, STOP


def can_migrate(resource: Resource) -> bool:
    """Tell whether a resource that is to move can be migrated live."""
    found, current, assigned = resource.found, resource.current_node(), resource.assignment.node
    if resource.assignment.devices:
        return False  # The devices of one node are not those of another.
    if not found.is_migratable or not resource.is_managed or found.is_failed or found.is_start_pending:
        return False
    return current is not None and assigned is not None and not current.is_unclean and not assigned.is_unclean


def create_migration(resource: Resource, table: ActionTable) -> None:
    """Create the actions of a live migration from where a resource runs to where it is assigned."""
    source, target = resource.current_node(), resource.assignment.node
    assert source is not None
    assert target is not None
    start = table.make(resource, START, target, required=False)
    start.is_pseudo = True
    start.is_migratable = True
    stop = table.find(resource, STOP, source) or table.make(resource, STOP, source, required=False)
    stop.is_migratable = True
    is_partial = resource.partial_target is not None
    first = receive = table.make(resource, MIGRATE_FROM, target, required=False)
    if not is_partial:
        first = table.make(resource, MIGRATE_TO, source, required=False)
        table.relate(first, receive, ORDERED | UNMIGRATABLE_THEN_BLOCKS)
    first.needs = start.needs
    for action in {id(first): first, id(receive): receive}.values():
        action.is_migratable = True
        action.meta = {"migrate_source": source.name, "migrate_target": target.name}
    for probe in resource.actions.get((MONITOR, 0), ()):
        table.relate(probe, first, ORDERED)
    for each in resource.actions[STOP, 0]:
        table.relate(receive, each, ORDERED | UNMIGRATABLE_THEN_BLOCKS)
    table.relate(receive, start, ORDERED | UNMIGRATABLE_THEN_BLOCKS | FIRST_ELSE_THEN)
