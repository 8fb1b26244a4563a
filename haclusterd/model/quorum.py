"""How many voters make a quorum, and how many would be left."""

from collections.abc import Collection

from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.ids import NodeName


def majority(voters: int) -> int:
    """Return how many of so many voters are a quorum."""
    return voters // 2 + 1


def voters_left(cib: Cib, without: Collection[NodeName]) -> int:
    """Return how many voters would be online without some nodes."""
    return sum(
        cib.status.nodes[name].state is NodeState.ONLINE and name not in without
        for name in cib.voters()
        if name in cib.status.nodes
    )


def has_quorum(cib: Cib, without: Collection[NodeName] = ()) -> bool:
    """Return whether the voters that are online, except some nodes, are a quorum."""
    return voters_left(cib, without) >= majority(len(cib.voters()))


def ends_quorum(cib: Cib, node: NodeName, also_without: Collection[NodeName] = ()) -> str:
    """Say why the cluster would have no quorum once a voter is fenced; empty when it would have one.

    `also_without`: nodes that are to be fenced beside it.
    """
    voters = cib.voters()
    without = {node, *also_without}
    if node not in voters or has_quorum(cib, without):
        return ""
    left = voters_left(cib, without)
    return f"without {node} there is no quorum: {left} of {len(voters)} voters would be left, {majority(len(voters))}" \
           " are needed"
