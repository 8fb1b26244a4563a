"""`apply` for the leadership of the log: the DC, the leader that an administrator requests, and the read barrier."""

from haclusterd.cib.changes import ChangeKind, RefusalCode
from haclusterd.cib.commands import DcElected, ReadBarrier, RequestLeader
from haclusterd.cib.derived.availability import with_mark
from haclusterd.cib.verdict import Entry, Verdict, accept, change, refuse, with_status
from haclusterd.model.cluster import Cib, DesignatedController, NodeState
from haclusterd.model.records import replace


def dc_elected(cib: Cib, command: DcElected, entry: Entry) -> Verdict:
    """Make the new leader the DC; an entry that outlived its own term is refused."""
    current = cib.status.controller
    is_newer = current is None or command.term > current.term
    if entry.rules.refuse_old_term and (command.term != entry.term or not is_newer):
        return refuse(cib, RefusalCode.OLD_TERM, f"term {command.term} is over")
    controller = DesignatedController(command.node, command.incarnation, command.term)
    return accept(
        with_status(cib, replace(cib.status, controller=controller)),
        change(ChangeKind.DC_ELECTED, f"{command.node} is DC in term {command.term}", node=command.node),
    )


def request_leader(cib: Cib, command: RequestLeader, entry: Entry) -> Verdict:
    """Record a requested leader in the history; Raft hands over, and nothing in the CIB depends on it."""
    member = cib.members.get(command.node)
    if member is None or not member.is_voter:
        return refuse(cib, RefusalCode.NOT_A_MEMBER, f"{command.node} is no voter of this cluster")
    status = cib.status.nodes.get(command.node)
    if status is None or status.state is not NodeState.ONLINE:
        return refuse(cib, RefusalCode.WRONG_NODE_STATE, f"{command.node} is not online")
    text = f"{command.author} wants {command.node} to lead" + (f": {command.reason}" if command.reason else "")
    return accept(cib, change(ChangeKind.LEADER_REQUESTED, text, node=command.node))


def read_barrier(cib: Cib, command: ReadBarrier, entry: Entry) -> Verdict:
    """Change nothing that runs: a node that applies its own barrier has applied all that was committed before it.

    It proves a quorum, which the account of availability goes by.
    """
    return accept(with_mark(cib, entry.at))
