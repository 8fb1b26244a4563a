"""The verb that lets another voter lead."""

from haclusterd.cib.commands import RequestLeader
from haclusterd.commands.context import Context, LiveView
from haclusterd.commands.names import find_node
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.ids import NodeName
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.verbs.answers.node import Leader
from haclusterd.verbs.arguments import Arguments


def transfer_leader(context: Context, arguments: Arguments) -> Outcome[Leader]:
    """Ask the leader to hand over, and wait until the other leads (schema `haclusterd.leader/1`)."""
    live = context.live
    if live is None:
        return refusal(report(Code.NOT_OFFLINE, what="a hand-over"))
    wanted = find_node(context, arguments.word("node")) if arguments.word("node") else _successor(context, live)
    if isinstance(wanted, ReportItem):
        return refusal(wanted)
    answer = Leader(from_=live.leader, to=wanted)
    if live.leader == wanted:
        return Outcome((report(Code.NOTHING_TO_DO, state=f"{wanted} leads already"),), answer=answer)
    objection = _objection(context.cib, wanted)
    if objection:
        return refusal(report(Code.REFUSED, problem=objection))

    def leads(_cib: Cib, now: LiveView | None) -> bool:
        return now is not None and now.leader == wanted

    return Outcome(
        (report(Code.REQUESTED, what=f"{wanted} is to lead instead of {live.leader or 'nobody'}"),),
        commands=(RequestLeader(wanted, context.author, context.reason),),
        answer=answer,
        until=leads,
        waiting_for=f"{wanted} to lead",
        waits_by_default=True,
    )


def _successor(context: Context, live: LiveView) -> NodeName | ReportItem:
    """Return the first voter that could lead instead, one that runs resources before a witness."""
    able = [name for name in context.cib.voters() if name != live.leader and not _objection(context.cib, name)]
    able.sort(key=lambda name: context.cib.members[name].is_witness)
    return able[0] if able else report(Code.REFUSED, problem="no other voter is online")


def _objection(cib: Cib, name: NodeName) -> str:
    member, status = cib.members.get(name), cib.status.nodes.get(name)
    if member is None or not member.is_voter:
        return f"{name} has no vote"
    if status is None or status.state is not NodeState.ONLINE:
        return f"{name} is not online"
    return f"{name} is leaving" if status.is_leaving else ""


VERBS = (carry_out_by("cluster.transfer_leader", transfer_leader, answers(Leader)),)
