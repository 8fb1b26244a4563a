"""Phase: what is done on Pacemaker Remote and guest nodes waits for the connection, and goes before its end.

Source: Pacemaker Remote; Pacemaker Development, "Scheduler". What cannot be reached any more and may be active there
demands that the node is fenced.
"""

from __future__ import annotations

from collections.abc import Iterator

from haclusterd.model.ocf import Role
from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.ordering import OrderingTemplate
from haclusterd.scheduler.actions.remote_states import RemoteState, remote_state
from haclusterd.scheduler.model.entities import Action, Node, Resource
from haclusterd.scheduler.model.relation_flags import (
    FIRST_IMPLIES_THEN,
    GUEST_ALLOWED,
    ORDERED,
    THEN_IMPLIES_FIRST,
    UNRUNNABLE_FIRST_BLOCKS,
)
from haclusterd.scheduler.model.tasks import (
    CANCEL,
    CLEAR_FAILCOUNT,
    DEMOTE,
    MIGRATE_FROM,
    MIGRATE_TO,
    PROMOTE,
    START,
    STOP,
)
from haclusterd.scheduler.unpack.fencing_demands import demand_fencing

_UP = frozenset({START, PROMOTE})
_DOWN = frozenset({STOP, MIGRATE_TO, MIGRATE_FROM})
_BY_THE_OLD_HOST = frozenset({CANCEL, STOP, DEMOTE, MIGRATE_TO, MIGRATE_FROM})
_ACTIVE_BUT_LOST = "resources are active but connection is unrecoverable"
_UNKNOWN_AND_LOST = "resources are in unknown state and connection is unrecoverable"


def remote_templates(table: ActionTable) -> list[OrderingTemplate]:
    """Return the orders between what is done on remote and guest nodes and their connections and launchers."""
    found: list[OrderingTemplate] = []
    for action in reversed(table.actions):
        resource, node = action.resource, action.node
        if resource is None:
            continue
        if action.task == CLEAR_FAILCOUNT and resource.definition.is_remote_connection:
            found.append(OrderingTemplate(resource, CLEAR_FAILCOUNT, resource, START, ORDERED, first_action=action))
        elif node is not None and node.is_remote and node.connection is not None and not action.is_pseudo:
            found.extend(_of_action(action, node, node.connection))
    return found


def _of_action(action: Action, node: Node, connection: Resource) -> Iterator[OrderingTemplate]:
    resource = action.resource
    assert resource is not None
    if action.task == START:
        for stop in resource.actions.get((STOP, 0), ()):
            if stop.node is not node:
                yield OrderingTemplate(
                    connection, START, stop.resource, STOP, ORDERED | GUEST_ALLOWED, then_action=stop
                )
    if connection.launcher is not None and node.is_guest:
        yield from _on_guest(action, connection, connection.launcher)
    else:
        yield from _on_remote(action, node, connection)


def _on_remote(action: Action, node: Node, connection: Resource) -> Iterator[OrderingTemplate]:
    state = remote_state(node)
    if action.task in _UP:
        yield _after_start(connection, action, FIRST_IMPLIES_THEN if state is RemoteState.FAILED else 0)
    elif action.task in _DOWN:
        if state is RemoteState.FAILED:
            demand_fencing(node, _ACTIVE_BUT_LOST)
        elif state is RemoteState.ALIVE or connection.assignment.next_role is Role.STOPPED:
            yield _before_stop(action, connection, THEN_IMPLIES_FIRST)
        else:
            yield _after_start(connection, action, 0)
    elif action.task == DEMOTE:
        if state in (RemoteState.RESTING, RemoteState.UNKNOWN):
            yield _after_start(connection, action, 0)
    elif action.interval_ms:
        yield _after_start(connection, action, FIRST_IMPLIES_THEN)
    else:
        yield from _other_on_remote(action, node, connection, state)


def _other_on_remote(
    action: Action, node: Node, connection: Resource, state: RemoteState
) -> Iterator[OrderingTemplate]:
    if action.is_probe and state is RemoteState.FAILED:
        demand_fencing(node, _UNKNOWN_AND_LOST)
    elif connection.current_node() is not None and state is RemoteState.STOPPED:
        yield _before_stop(action, connection, UNRUNNABLE_FIRST_BLOCKS)
    else:
        yield _after_start(connection, action, 0)


def _on_guest(action: Action, connection: Resource, launcher: Resource) -> Iterator[OrderingTemplate]:
    if action.task in _UP:
        yield OrderingTemplate(
            launcher,
            START,
            action.resource,
            action.task,
            FIRST_IMPLIES_THEN | UNRUNNABLE_FIRST_BLOCKS | GUEST_ALLOWED,
            then_action=action,
        )
        yield _after_start(connection, action, 0)
    elif action.task in _DOWN or action.task == DEMOTE:
        if not launcher.found.is_failed:
            yield _before_stop(action, connection, 0)
    elif not action.is_cancel:
        yield _after_start(connection, action, FIRST_IMPLIES_THEN if action.interval_ms else 0)


def _after_start(connection: Resource, action: Action, flags: int) -> OrderingTemplate:
    flags |= GUEST_ALLOWED | UNRUNNABLE_FIRST_BLOCKS
    return OrderingTemplate(connection, START, action.resource, action.task, flags, then_action=action)


def _before_stop(action: Action, connection: Resource, flags: int) -> OrderingTemplate:
    return OrderingTemplate(action.resource, action.task, connection, STOP, flags | GUEST_ALLOWED, first_action=action)


def set_routers(table: ActionTable) -> None:
    """Say of what is done on remote and guest nodes which member carries it out."""
    for action in table.actions:
        node = action.node
        if node is not None and node.is_remote and node.connection is not None:
            action.router_node = _router(action, node.connection)


def _router(action: Action, connection: Resource) -> Node | None:
    """While the connection moves, what ends something still goes the old way."""
    current, following = connection.current_node(), connection.assignment.node
    if current is None or following is None or current is following:
        return following if current is None else current
    is_by_old = action.task in _BY_THE_OLD_HOST and connection.partial_target is None
    return current if is_by_old else following
