"""The state of this node in one line, for `systemctl status` (STATUS= of sd_notify(3))."""

from haclusterd.machines.joining import JoinState
from haclusterd.runtime.node import NodeRuntime


def standing(runtime: NodeRuntime) -> str:
    """Return the line."""
    joining, leader = runtime.joining, runtime.leadership.leader
    if joining.held_because:
        return f"not in the cluster: {joining.held_because}"
    if leader is None:
        return "no leader is known: no quorum, or an election"
    if joining.state is not JoinState.JOINED:
        return f"not in the cluster ({joining.state}); {leader} leads"
    safe_mode = f"; safe mode: {runtime.safe_mode}" if runtime.safe_mode else ""
    return f"in the cluster, {'as its DC' if runtime.leadership.is_self else f'led by {leader}'}{safe_mode}"
