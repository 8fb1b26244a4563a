"""Clusters of members, as verbs and headlines about them look at them."""

from haclusterd.model.cluster import Cib, Member, Membership, NodeState, NodeStatus, Status
from haclusterd.model.ids import Incarnation, NodeName


def cluster(*voters: str, **states: NodeState) -> Cib:
    members = {NodeName(name): Member(NodeName(name), ((f"10.0.0.{name[1:]}", 7400),)) for name in voters}
    nodes = {
        name: NodeStatus(name, states.get(str(name), NodeState.ONLINE), Incarnation("boot", str(name)))
        for name in members
    }
    return Cib("uuid", "web", members, Membership(version=4, retired=(NodeName("n9"),)), status=Status(nodes=nodes))
