"""`apply` for commands about the log itself: who should lead it, and that a read has seen it."""

from haclusterd.cib.changes import ChangeKind, RefusalCode
from haclusterd.cib.commands import ReadBarrier, RequestLeader
from haclusterd.cib.verdict import Entry, Verdict, accept, change, refuse
from haclusterd.model.cluster import Cib, NodeState


def request_leader(cib: Cib, command: RequestLeader, entry: Entry) -> Verdict:
    """Remember who asked for whom; the hand-over is Raft's, and nothing in the CIB rests on it."""
    member = cib.members.get(command.node)
    if member is None or not member.is_voter:
        return refuse(cib, RefusalCode.NOT_A_MEMBER, f"{command.node} is no voter of this cluster")
    status = cib.status.nodes.get(command.node)
    if status is None or status.state is not NodeState.ONLINE:
        return refuse(cib, RefusalCode.WRONG_NODE_STATE, f"{command.node} is not online")
    text = f"{command.author} wants {command.node} to lead" + (f": {command.reason}" if command.reason else "")
    return accept(cib, change(ChangeKind.LEADER_REQUESTED, text, node=command.node))


def read_barrier(cib: Cib, command: ReadBarrier, entry: Entry) -> Verdict:
    """Do nothing."""
    return accept(cib)
