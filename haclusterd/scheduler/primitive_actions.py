"""Phase: for each primitive the actions between where it is and where it is to be.

Source: Pacemaker Development, "Scheduler". First the way down from the present role (the restart), then up again, then
from the present to the next role; what is not needed stays optional, because what others do may force it.
"""

from collections.abc import Mapping

from haclusterd.model.ocf import Role
from haclusterd.scheduler.actions import ActionTable
from haclusterd.scheduler.entities import DEMOTE, PROMOTE, START, STOP, Action, MultipleActive, Needs, Resource
from haclusterd.scheduler.nodes import Node

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


def create_actions(resource: Resource, table: ActionTable) -> None:
    """Create all role-changing actions of one primitive."""
    if resource.next_role is Role.UNKNOWN:
        resource.next_role = Role.STARTED if resource.assigned is not None else Role.STOPPED
    steps = _Steps(resource, table)
    must_stop = _must_stop(resource, steps)
    if resource.is_start_pending and resource.current_node() is not None:
        start = table.make(resource, START, resource.current_node(), required=False)
        start.is_always = True
    resource.is_restarting = True
    role = steps.down(resource.original_role, required=must_stop)
    if not resource.is_blocked:
        steps.up_again(role, required=must_stop)
    resource.is_restarting = False
    steps.transition()


def _must_stop(resource: Resource, steps: "_Steps") -> bool:
    current = resource.current_node()
    is_moving = (
        current is not None
        and resource.assigned is not None
        and current is not resource.assigned
        and resource.next_role.value >= Role.STARTED.value
    )
    must_stop = is_moving or resource.definition_changed or bool(resource.pending_stops)
    active = resource.active_nodes
    if resource.needs is not Needs.FENCING:
        active = [node for node in active if node.is_online and not node.is_unclean]
    if len(active) > 1:
        steps.is_multiply_active = True
        if resource.multiple_active is MultipleActive.STOP_START:
            must_stop = True
        elif resource.multiple_active is MultipleActive.STOP_UNEXPECTED:
            must_stop = True
            resource.stops_unexpected_only = True
    if not is_moving and ((resource.is_failed and resource.must_stop_when_failed) or resource.is_blocked):
        must_stop = True
    return must_stop


class _Steps:
    """Walks from role to role."""

    def __init__(self, resource: Resource, table: ActionTable) -> None:
        self._resource = resource
        self._table = table
        self.is_multiply_active = False

    def down(self, role: Role, *, required: bool) -> Role:
        """Create what leads from a role to stopped."""
        while role is not Role.STOPPED:
            following = _DOWN_TO_STOPPED[role]
            self._act(role, following, self._resource.current_node(), required=required)
            role = following
        return role

    def up_again(self, role: Role, *, required: bool) -> None:
        """Create what leads back to the present role, if that is still wanted."""
        resource = self._resource
        target = resource.original_role
        if target.value > resource.next_role.value:
            return
        while role is not target and target is not Role.UNKNOWN:
            following = _STEPS[(role, target)]
            self._act(role, following, resource.assigned, required=required)
            role = following

    def transition(self) -> None:
        """Create what leads from the present role to the next one."""
        resource = self._resource
        role, target = resource.original_role, resource.next_role
        while role is not target:
            following = _DOWN_TO_STOPPED[role] if target in (Role.STOPPED, Role.UNKNOWN) else _STEPS[(role, target)]
            self._act(role, following, resource.assigned, required=True)
            role = following

    def _act(self, role: Role, following: Role, node: Node | None, *, required: bool) -> None:
        if following is Role.STOPPED:
            self._stop(required=required)
        elif role is Role.STOPPED:
            self._start(self._resource.assigned, required=required)
        elif following is Role.PROMOTED:
            if node is not None:
                self._table.make(self._resource, PROMOTE, node, required=required)
        elif role is Role.PROMOTED:
            for active in self._resource.active_nodes:
                self._table.make(self._resource, DEMOTE, active, required=required)

    def _stop(self, *, required: bool) -> None:
        resource = self._resource
        for node in resource.active_nodes:
            if self._is_expected(node):
                continue
            is_required = required or node.name in resource.required_stops
            stop = self._table.make(resource, STOP, node, required=is_required)
            if resource.assigned is None:
                stop.reason = "node availability"
            if not resource.is_managed:
                stop.is_runnable = False

    def _is_expected(self, node: Node) -> bool:
        """With `stop_unexpected` the copy where it belongs is left alone."""
        resource = self._resource
        return (
            resource.stops_unexpected_only
            and resource.is_restarting
            and resource.next_role.value > Role.STOPPED.value
            and node is resource.assigned
        )

    def _start(self, node: Node | None, *, required: bool) -> Action:
        resource = self._resource
        start = self._table.make(resource, START, node, required=False)
        if required and start.is_runnable and resource.is_managed:
            start.is_optional = False
        if resource.stops_unexpected_only and node is not None and node in resource.active_nodes:
            start.is_pseudo = True
        return start
