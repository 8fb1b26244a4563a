"""Phase: a group's own actions, which nobody executes: they stand for all of its members."""

from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.model.entities import (
    DEMOTE,
    DEMOTED,
    PROMOTE,
    PROMOTED,
    RUNNING,
    START,
    STOP,
    STOPPED,
    Resource,
)


def create_group_actions(group: Resource, table: ActionTable) -> None:
    """Create start, running, stop and stopped of a group; of one whose instances can be promoted the others too."""
    for task in (START, RUNNING, STOP, STOPPED):
        table.make_pseudo(group, task)
    if group.top.definition.is_promotable:
        for task in (DEMOTE, DEMOTED, PROMOTE, PROMOTED):
            table.make_pseudo(group, task)
