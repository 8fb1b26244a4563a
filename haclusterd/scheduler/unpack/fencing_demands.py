"""That a node has to be fenced, whatever stage of a plan finds that; a guest node by restarting its launcher."""

from haclusterd.scheduler.model.entities import Node, Resource


def demand_fencing(node: Node, reason: str, *, is_delayed: bool = False) -> None:
    """Require that a node is fenced; the first reason stays. A guest node itself stays clean."""
    connection = node.connection
    if connection is not None and node.is_guest:
        _reset_guest(node, connection)
        return
    if connection is not None and connection.is_managed:
        node.must_be_reset = True
    if not node.is_unclean or (node.is_remote and not node.fence_reason):
        node.is_unclean = True
        node.is_fence_delayed = is_delayed
        node.fence_reason = reason


def _reset_guest(node: Node, connection: Resource) -> None:
    launcher = connection.launcher
    if launcher is None or connection.found.is_removed_launched:
        connection.found.is_failed = connection.found.must_stop_when_failed = True
    elif launcher.is_managed and not launcher.found.is_failed:
        node.must_be_reset = True
        launcher.found.is_failed = launcher.found.must_stop_when_failed = True
