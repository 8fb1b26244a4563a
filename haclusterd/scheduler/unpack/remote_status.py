"""Whether remote and guest nodes are online: what is known of the resource that connects to each of them decides.

Source: Pacemaker Remote, "How Pacemaker Remote Works". A guest node is as alive as its launcher; a remote node that
lost its connection may run on, and is fenced when that cannot be restored.
"""

from haclusterd.model.ocf import Role
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.readings import boolean
from haclusterd.scheduler.model.settings import Settings


def is_history_readable(node: Node, settings: Settings) -> bool:
    """Tell whether a node's own history may be believed yet: not before its connection is known to be up."""
    connection = node.connection
    if node.is_guest:
        launcher = connection.launcher if connection is not None else None
        return (
            connection is not None
            and launcher is not None
            and connection.found.original_role is Role.STARTED
            and launcher.found.original_role is Role.STARTED
        )
    if connection is None:
        return False
    return settings.has_shutdown_lock or connection.found.original_role is Role.STARTED


def judge_online(node: Node) -> None:
    """Decide whether a remote or guest node is online, from its connection and its launcher."""
    connection = node.connection
    if connection is None:
        node.is_online = False
        return
    launcher = connection.launcher
    if connection.found.original_role is Role.STARTED:
        node.is_online = True
        if connection.found.next_role is Role.STOPPED:
            node.is_shutting_down = True
    if launcher is not None and launcher.found.is_failed:
        node.is_online = False
        node.must_be_reset = True
    elif connection.found.is_failed:
        node.is_online = False
    elif _is_stopped(connection) or (launcher is not None and _is_stopped(launcher)):
        node.is_online = False
        node.must_be_reset = False
    elif launcher is not None and len(connection.found.active_nodes) == 1:
        host = connection.found.active_nodes[0]
        if not host.is_online and host.is_unclean:
            node.is_online = False
            node.must_be_reset = True


def _is_stopped(resource: Resource) -> bool:
    """Tell whether it runs nowhere, as far as anybody knows."""
    return resource.found.original_role.value <= Role.STOPPED.value


def take_status(node: Node, settings: Settings) -> None:
    """Take what is recorded of a remote or guest node that is reached now."""
    judge_online(node)
    status = node.status
    node.attributes.put(status.attributes)
    attributes = node.attributes
    if not node.must_be_reset:
        node.is_unclean = False
        node.is_seen = True
    if attributes.get("shutdown", "0") not in ("0", "") and node.connection is not None:
        node.is_shutting_down = True
    if boolean(attributes.get("standby"), default=False):
        node.is_standby = True
    is_managed = node.connection is None or node.connection.is_managed
    if boolean(attributes.get("maintenance"), default=False) or not is_managed:
        node.is_maintenance = True
    has_discovery = boolean(attributes.get("resource-discovery-enabled"), default=True)
    if not has_discovery and (node.is_guest or settings.is_fencing_enabled):
        node.are_probes_allowed = False


def finish_status(node: Node, *, is_taken: bool) -> None:
    """Draw the last consequences: a node that is to be shut down loses its connection, one never reached is judged."""
    if node.is_shutting_down and node.connection is not None:
        node.connection.found.next_role = Role.STOPPED
    if not is_taken:
        judge_online(node)


def expect(node: Node, *, is_connected: bool) -> None:
    """Take what is decided about the connection of a remote or guest node.

    One that had to be fenced because its connection was lost need not be, when that can be had again.
    """
    if not is_connected:
        node.is_shutting_down = True
        return
    node.is_online = True
    if not node.is_seen:
        node.is_unclean = False
        node.fence_reason = ""
