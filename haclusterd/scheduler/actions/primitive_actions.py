"""Phase: for each primitive the actions between where it is and where it is to be.

Source: Pacemaker Development, "Scheduler". First the way down from the present role (the restart), then up again, then
from the present to the next role; what is not needed stays optional, because what others do may force it.
"""

from __future__ import annotations

from collections.abc import Mapping

from haclusterd.model.ocf import Role
from haclusterd.model.records import dataclass
from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.migration import can_migrate, create_migration
from haclusterd.scheduler.assign.later import settle_role
from haclusterd.scheduler.model.definition import MultipleActive, Needs
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.model.tasks import DEMOTE, PROMOTE, START, STOP

_DOWN_TO_STOPPED: Mapping[Role, Role] = {
    Role.UNKNOWN: Role.STOPPED,
    Role.STARTED: Role.STOPPED,
    Role.UNPROMOTED: Role.STOPPED,
    Role.PROMOTED: Role.UNPROMOTED,
}
_STEPS: Mapping[tuple[Role, Role], Role] = {
    **{(Role.UNKNOWN, to): Role.STOPPED for to in (Role.STARTED, Role.UNPROMOTED, Role.PROMOTED)},
    (Role.STOPPED, Role.STARTED): Role.STARTED,
    (Role.STOPPED, Role.UNPROMOTED): Role.UNPROMOTED,
    (Role.STOPPED, Role.PROMOTED): Role.UNPROMOTED,
    (Role.STARTED, Role.UNPROMOTED): Role.UNPROMOTED,
    (Role.STARTED, Role.PROMOTED): Role.PROMOTED,
    (Role.UNPROMOTED, Role.STARTED): Role.STOPPED,
    (Role.UNPROMOTED, Role.PROMOTED): Role.PROMOTED,
    (Role.PROMOTED, Role.STARTED): Role.UNPROMOTED,
    (Role.PROMOTED, Role.UNPROMOTED): Role.UNPROMOTED,
}


@dataclass(slots=True)
class Course:
    """What has been found about the way of one primitive."""

    is_moving: bool = False
    must_stop: bool = False
    must_promote: bool = False
    is_migrating: bool = False


def create_actions(resource: Resource, table: ActionTable, settings: Settings) -> Course:
    """Create all role-changing actions of one primitive."""
    settle_role(resource)
    for source in resource.found.dangling_sources:
        table.make(resource, STOP, source, required=True).is_migration_abort = True
    course = _course(resource)
    if resource.found.is_start_pending and resource.assignment.node is not None:
        start = table.make(resource, START, resource.assignment.node, required=False)
        start.is_always = True
    _judge_recovery(resource, course, table)
    steps = _Steps(resource, table, settings)
    resource.is_restarting = True
    role = steps.down(resource.found.original_role, required=course.must_stop)
    if not resource.is_blocked:
        steps.up_again(role, course)
    resource.is_restarting = False
    steps.transition()
    return course


def finish_migration(resource: Resource, course: Course, table: ActionTable) -> None:
    """Turn a move into a live migration, where that is possible; after the recurring actions were made."""
    if course.is_migrating:
        create_migration(resource, table)


def _course(resource: Resource) -> Course:
    """Find out whether it moves, migrates, or has to stop because it is active too often."""
    course = Course(must_stop=bool(resource.found.pending_stops))
    current, assigned = resource.current_node(), resource.assignment.node
    if current is not None and assigned is not None and current is not assigned:
        course.is_moving = resource.assignment.next_role.value >= Role.STARTED.value
    if course.is_moving:
        course.must_stop = True
        course.is_migrating = can_migrate(resource)
    _judge_partial_migration(resource, course)
    active = resource.found.active_nodes
    if resource.definition.needs is not Needs.FENCING:
        active = [node for node in active if node.is_online and not node.is_unclean]
    resource.stops_unexpected_only = False
    if len(active) > 1:
        if resource.definition.multiple_active is MultipleActive.STOP_START:
            course.must_stop = True
        elif resource.definition.multiple_active is MultipleActive.STOP_UNEXPECTED:
            course.must_stop = True
            resource.stops_unexpected_only = True
    return course


def _judge_partial_migration(resource: Resource, course: Course) -> None:
    """A migration that began continues only between the same two nodes; otherwise both copies stop."""
    source, target = resource.partial_source, resource.partial_target
    if source is None and target is None:
        return
    is_the_same = resource.current_node() is source and resource.assignment.node is target
    if course.is_migrating and len(resource.found.active_nodes) == 2 and is_the_same:
        return
    resource.has_given_up_migration = True
    course.must_stop, course.is_migrating = True, False


def _judge_recovery(resource: Resource, course: Course, table: ActionTable) -> None:
    """Find out whether what stays where it is has to stop or to be promoted again."""
    if course.is_moving:
        return
    assigned, found = resource.assignment.node, resource.found
    if resource.assignment.device_change and found.active_nodes and resource.is_managed:
        course.must_stop = True
    if found.is_failed:
        if found.must_stop_when_failed:
            course.must_stop = True
        elif resource.assignment.next_role is Role.PROMOTED:
            course.must_promote = True
    elif resource.is_blocked:
        course.must_stop = True
    elif found.original_role.value > Role.STARTED.value and found.active_nodes and assigned is not None:
        start = table.make(resource, START, assigned, required=False)
        if start.is_required:
            course.must_stop = True


class _Steps:
    """Walks from role to role."""

    def __init__(self, resource: Resource, table: ActionTable, settings: Settings) -> None:
        self._resource = resource
        self._table = table
        self._is_pacemaker_compatible = settings.options.is_pacemaker_compatible

    def down(self, role: Role, *, required: bool) -> Role:
        """Create what leads from a role to stopped."""
        while role is not Role.STOPPED:
            following = _DOWN_TO_STOPPED[role]
            self._act(role, following, self._resource.current_node(), required=required)
            role = following
        return role

    def up_again(self, role: Role, course: Course) -> None:
        """Create what leads back to the present role, if that is still wanted."""
        resource = self._resource
        target = resource.found.original_role
        if target.value > resource.assignment.next_role.value:
            return
        while role is not target and target is not Role.UNKNOWN:
            following = _STEPS[(role, target)]
            is_required = course.must_stop or (following is Role.PROMOTED and course.must_promote)
            self._act(role, following, resource.assignment.node, required=is_required)
            role = following

    def transition(self) -> None:
        """Create what leads from the present role to the next one."""
        resource = self._resource
        role, target = resource.found.original_role, resource.assignment.next_role
        while role is not target:
            following = _DOWN_TO_STOPPED[role] if target in (Role.STOPPED, Role.UNKNOWN) else _STEPS[(role, target)]
            self._act(role, following, resource.assignment.node, required=True)
            role = following

    def _act(self, role: Role, following: Role, node: Node | None, *, required: bool) -> None:
        if following is Role.STOPPED:
            self._stop(required=required)
        elif role is Role.STOPPED:
            self._start(self._resource.assignment.node, required=required)
        elif following is Role.PROMOTED:
            self._promote(node, required=required)
        elif role is Role.PROMOTED:
            for active in self._resource.found.active_nodes:
                if not self._is_expected(active) and not self._is_demoted(active):
                    self._table.make(self._resource, DEMOTE, active, required=required)

    def _is_demoted(self, node: Node) -> bool:
        """Pacemaker demotes what is active too often on every node, also where it is not promoted.

        Agents that write attributes as they demote would end every plan there, before its stop.
        """
        found = self._resource.found
        is_known = node.name in found.unpromoted_on and node.name not in found.unverified_on
        return is_known and not self._is_pacemaker_compatible

    def _stop(self, *, required: bool) -> None:
        resource = self._resource
        for node in resource.found.active_nodes:
            if self._is_expected(node):
                continue
            is_migrating = resource.partial_target is not None
            if is_migrating and node is resource.partial_target is resource.assignment.node:
                continue
            stop = self._table.make(resource, STOP, node, required=required or is_migrating)
            if resource.assignment.node is None:
                stop.reason = "node availability"
            elif resource.is_restarting and resource.stops_unexpected_only:
                stop.reason = "being multiply active"
            if not resource.is_managed:
                stop.is_runnable = False

    def _is_expected(self, node: Node | None) -> bool:
        """With `stop_unexpected` the copy where it belongs is left alone."""
        resource = self._resource
        return (
            resource.stops_unexpected_only
            and resource.is_restarting
            and resource.assignment.next_role.value > Role.STOPPED.value
            and node is resource.assignment.node
        )

    def _start(self, node: Node | None, *, required: bool) -> None:
        start = self._table.make(self._resource, START, node, required=False)
        if required and start.is_runnable and self._resource.is_managed:
            start.is_optional = False
        if self._is_expected(node) and (self._is_pacemaker_compatible or node in self._resource.found.active_nodes):
            start.is_pseudo = True

    def _promote(self, node: Node | None, *, required: bool) -> None:
        """A promotion follows a start; where that cannot be done, neither can this."""
        resource = self._resource
        starts = [start for start in resource.actions.get((START, 0), ()) if start.node is node]
        if all(start.is_runnable for start in starts):
            if node is not None:
                self._table.make(resource, PROMOTE, node, required=required)
            return
        for promote in resource.actions.get((PROMOTE, 0), ()):
            if promote.node is node:
                promote.is_runnable = False
