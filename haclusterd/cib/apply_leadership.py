"""`apply` for commands about the log itself: who should lead it, that a read has seen it, what may be
forgotten of it (safety.md §7, "History").
"""

from dataclasses import replace

from haclusterd.cib.changes import ChangeKind, RefusalCode
from haclusterd.cib.commands import Forget, ReadBarrier, RequestLeader
from haclusterd.cib.verdict import Entry, Verdict, accept, change, refuse
from haclusterd.model.cluster import Cib, HistoryMark, NodeState


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


def forget(cib: Cib, command: Forget, entry: Entry) -> Verdict:
    """Let every node drop what entries up to an index did; only the DC's word counts, and it never goes back."""
    controller = cib.status.controller
    if controller is None or controller.term != command.dc_term:
        return refuse(cib, RefusalCode.OLD_TERM, f"term {command.dc_term} is not the DC's")
    if not cib.history.forgotten < command.through < entry.index:
        text = f"entries up to {command.through} cannot be forgotten at entry {entry.index}"
        return refuse(cib, RefusalCode.UNKNOWN_KEY, text)
    mark = HistoryMark(cib.history.digest, command.through, command.digest)
    text = f"the history up to entry {command.through} is forgotten: {command.reason}"
    return accept(replace(cib, history=mark), change(ChangeKind.HISTORY_FORGOTTEN, text))
