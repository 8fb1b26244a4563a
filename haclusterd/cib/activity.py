"""Which resources may be active where, judged by the CIB alone and always on the side of caution (safety.md §1).

The scheduler knows more about each resource; these few questions are the ones whose wrong answer corrupts data, so they
are asked again, independently, where orders are issued and accepted.
"""

from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.history import ResourceHistory, ordered_records
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode


def history_says_active(history: ResourceHistory) -> bool:
    """Tell whether the newest conclusive record leaves the resource active, or leaves doubt."""
    for record in reversed(ordered_records(history)):
        if record.status is ExecutionStatus.NOT_INSTALLED:
            continue
        if record.operation == ActionName.STOP:
            return record.is_failure
        if record.operation == ActionName.MONITOR and record.exit_code is ExitCode.NOT_RUNNING:
            return False
        if record.operation == ActionName.START and record.is_failure:
            return record.exit_code not in (ExitCode.NOT_INSTALLED, ExitCode.NOT_RUNNING)
        return True
    return False


def possibly_active(status: NodeStatus) -> frozenset[ResourceId]:
    """Return the resources that may be active on a node."""
    if status.state not in (NodeState.ONLINE, NodeState.LOST):
        return frozenset()
    ordered = {order.resource for order in status.orders.values() if order.is_activating}
    recorded = {resource for resource, history in status.histories.items() if history_says_active(history)}
    return frozenset(ordered | recorded | status.unverified)


def unfenced_holders(cib: Cib, resource: ResourceId) -> tuple[NodeName, ...]:
    """Return the lost, not yet fenced nodes on which a resource may be active."""
    return tuple(
        sorted(
            name
            for name, status in cib.status.nodes.items()
            if status.state is NodeState.LOST and resource in possibly_active(status)
        )
    )


def starting_elsewhere(cib: Cib, resource: ResourceId, node: NodeName) -> tuple[NodeName, ...]:
    """Return the other nodes that hold an open activating order for a resource."""
    return tuple(
        sorted(
            name
            for name, status in cib.status.nodes.items()
            if name != node
            and any(order.resource == resource and order.is_activating for order in status.orders.values())
        )
    )
