"""The state of a Pacemaker Remote or guest node from the resource that connects to it.

Source: Pacemaker Remote, "Pacemaker Remote nodes"; Pacemaker Development, "Scheduler".
"""

from __future__ import annotations

from enum import Enum

from haclusterd.model.ocf import Role
from haclusterd.scheduler.model.entities import Node, Resource


class RemoteState(Enum):
    """How the connection to a remote node stands."""

    UNKNOWN = "unknown"
    ALIVE = "alive"
    RESTING = "resting"
    """The connection will be there again before it is needed: it moves, or its host is gone."""
    FAILED = "failed"
    STOPPED = "stopped"


def remote_state(node: Node) -> RemoteState:
    """Judge a remote or guest node by its connection."""
    connection = node.connection
    if connection is None:
        return RemoteState.UNKNOWN
    host = connection.current_node()
    if connection.assignment.next_role is Role.STOPPED or connection.assignment.node is None:
        return _without_future(node, connection, host)
    if host is None:
        return RemoteState.UNKNOWN
    if host.is_unclean or not host.is_online:
        return RemoteState.RESTING
    if len(connection.found.active_nodes) > 1 and connection.partial_source is not None:
        return RemoteState.RESTING
    return RemoteState.ALIVE


def _without_future(node: Node, connection: Resource, host: Node | None) -> RemoteState:
    if host is not None and host.is_unclean:
        return RemoteState.FAILED
    if not connection.found.is_failed:
        return RemoteState.STOPPED
    is_waiting = connection.definition.reconnect_interval_ms > 0 and connection.assignment.next_role is Role.STOPPED
    if is_waiting and node.is_remote_fenced and not node.is_shutting_down:
        return RemoteState.UNKNOWN
    return RemoteState.FAILED
