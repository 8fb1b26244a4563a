"""Verbs about who belongs to the cluster: invite, remove, change addresses, give and take votes.

Invariant: at most one voter more or less at a time, and nobody is dropped before nothing can run there any more. What
cannot be done at once is waited for by the caller, or done by repeating the command: each looks at how things stand.
"""

from collections.abc import Callable

from haclusterd.cib.apply_members import VOTERS_MAX, objection_to
from haclusterd.cib.commands import ChangeMembers, Command, RequestLeave, Retire
from haclusterd.commands.certificates import fingerprint_of
from haclusterd.commands.context import Context, LiveView
from haclusterd.commands.names import find_node
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model import durations
from haclusterd.model.addresses import address_text, read_address
from haclusterd.model.cluster import Cib, Member, NodeState
from haclusterd.model.enrolment import InvitationTerms
from haclusterd.model.ids import NODE_NAME, NodeName
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.verbs.answers.cluster import Invitation
from haclusterd.verbs.answers.node import Membership
from haclusterd.verbs.arguments import Arguments

VALID_DEFAULT = "1h"
VALID_MAX_MS = 7 * 24 * 3600 * 1000
GONE_MS = 3_000
"""A daemon that was not heard for so long is not there."""
NOTICE_MS = 8_000
"""How long a removed node's daemon is given to notice: once it is dropped, nobody tells it anything."""


# -- inviting -------------------------------------------------------------------------------------------------------


def invite(context: Context, arguments: Arguments) -> Outcome[Invitation]:
    """Let one new node in: answer a token for it (schema `haclusterd.invitation/1`)."""
    live = context.live
    if live is None:
        return refusal(report(Code.NOT_OFFLINE, what="an invitation"))
    if arguments.flag("withdraw"):
        return Outcome((report(Code.REQUESTED, what="no token is accepted by this node any more"),), invite="withdraw")
    terms, objections = _terms(context, arguments)
    if terms is None or objections:
        return refusal(*objections)
    if not live.has_quorum:
        voters = context.cib.voters()
        missing = ", ".join(sorted(set(voters) - set(live.connected_voters))) or "a leader"
        reached = len(live.connected_voters)
        return refusal(report(Code.NO_QUORUM, missing=missing, connected=reached, total=len(voters)))
    return Outcome(advice_for(context.cib, 0 if terms.is_learner else 1), invite=terms)


def _terms(context: Context, arguments: Arguments) -> tuple[InvitationTerms | None, tuple[ReportItem, ...]]:
    objections: list[ReportItem] = []
    name = arguments.word("node")
    if name and not NODE_NAME.match(name):
        objections.append(report(Code.BAD_ARGUMENT, name="node", problem=f"{name!r} cannot be a node's name"))
    if NodeName(name) in context.cib.membership.retired:
        problem = f"{name} was a member before: a name never comes back"
        objections.append(report(Code.BAD_ARGUMENT, name="node", problem=problem, remedy="take another name"))
    if NodeName(name) in context.cib.members:
        objections.append(report(Code.EXISTS, kind="node", id=name, remedy="take another name, or remove it first"))
    valid_ms = 0
    try:
        valid_ms = durations.parse(arguments.word("valid") or VALID_DEFAULT)
    except ValueError as error:
        objections.append(report(Code.BAD_ARGUMENT, name="--valid", problem=error))
    if not objections and not 0 < valid_ms <= VALID_MAX_MS:
        objections.append(report(Code.BAD_ARGUMENT, name="--valid", problem="at most seven days"))
    if not arguments.flag("learner") and _is_full(context.cib):
        objections.append(_full())
    authority = arguments.word("authority")
    if authority and not authority.startswith("/"):
        objections.append(report(Code.BAD_ARGUMENT, name="--authority", problem="it must begin with /"))
    if objections:
        return None, tuple(objections)
    port = arguments.integer("port", 0)
    return InvitationTerms(
        node=NodeName(name) if name else None,
        is_witness=arguments.flag("witness"),
        is_learner=arguments.flag("learner"),
        valid_ms=valid_ms,
        port=port or None,
        authority=authority,
    ), ()


def _is_full(cib: Cib) -> bool:
    return len(cib.voters()) + sum(member.wants_vote for member in cib.members.values()) >= VOTERS_MAX


def _full() -> ReportItem:
    remedy = "let it be a member without a vote: crm cluster invite --learner"
    return report(Code.REFUSED, problem=f"{VOTERS_MAX} nodes vote already, or will", remedy=remedy)


def advice_for(cib: Cib, more: int) -> tuple[ReportItem, ...]:
    """Return advice on the number of voters once `more` of them have come."""
    learners = sum(1 for member in cib.members.values() if member.wants_vote)
    count = len(cib.voters()) + learners + more
    if count % 2 or not count:
        return ()
    remedy = "one more voter, or one with fewer, is better: crm cluster invite, also --witness"
    return (report(Code.EVEN_VOTERS, count=count, remedy=remedy),)


# -- removing -------------------------------------------------------------------------------------------------------


def remove(context: Context, arguments: Arguments) -> Outcome[Membership]:
    """Let a node leave, then drop it from the members for good (schema `haclusterd.membership/1`)."""
    name = find_node(context, arguments.word("node"))
    if isinstance(name, ReportItem):
        return refusal(name)
    objection = _objection_to_removal(context, name)
    if objection is not None:
        return refusal(objection)
    status = context.cib.status.nodes[name]
    if status.state is not NodeState.ONLINE:
        return _dropped(context, name)
    assert status.incarnation is not None
    commands: tuple[Command, ...] = ()
    if not status.is_leaving:
        commands = (RequestLeave(name, status.incarnation),)

    def has_left(cib: Cib, _: LiveView | None) -> bool:
        after = cib.status.nodes.get(name)
        return after is None or after.state in (NodeState.LEFT, NodeState.FENCED)

    def then(cib: Cib, is_met: bool) -> Outcome[Membership]:
        if not is_met:
            problem = f"{name} has not left yet: something on it does not stop"
            return refusal(report(Code.TRY_AGAIN, problem=problem, remedy="crm status; then the same command again"))
        return _dropped(replace(context, cib=cib), name)

    return Outcome(
        commands=commands,
        answer=_answer(context, name, "removed"),
        until=has_left,
        waiting_for=f"{name} to stop everything and leave",
        waits_by_default=True,
        afterwards=then,
    )


def _objection_to_removal(context: Context, name: NodeName) -> ReportItem | None:
    cib, live = context.cib, context.live
    status = cib.status.nodes.get(name)
    if name not in cib.members or status is None:
        return report(Code.REFUSED, problem=f"{name} is no member", remedy="crm cluster members")
    if live is not None and live.node == name:
        return report(Code.REFUSED, problem=f"this is {name} itself", remedy="give the command on another node")
    if cib.voters() == (name,):
        return report(Code.REFUSED, problem=f"{name} is the only voter")
    if status.state in (NodeState.LOST, NodeState.UNSEEN):
        problem = f"{name} is {status.state}, and may still run something"
        remedy = f"wait until it is fenced; or look at it, and: crm fencing confirm {name} --i-have-checked"
        return report(Code.REFUSED, problem=problem, remedy=remedy)
    return None


def _dropped(context: Context, name: NodeName) -> Outcome[Membership]:
    """Retire a node that runs nothing any more, let its daemon see that, and drop it."""
    if name not in context.cib.members:
        return Outcome((report(Code.NOTHING_TO_DO, state=f"{name} is no member any more"),))

    def is_gone(_: Cib, live: LiveView | None) -> bool:
        heard = live.heard.get(name) if live is not None else None
        return heard is None or heard.age_ms is None or heard.age_ms > GONE_MS or heard.brain != "alive"

    return Outcome(
        commands=(Retire(name, context.author, context.reason),),
        answer=_answer(context, name, "removed"),
        until=is_gone,
        waiting_for=f"{name} to notice",
        waits_by_default=True,
        wait_ms_max=NOTICE_MS,
        afterwards=lambda cib, _: _forgotten(replace(context, cib=cib), name),
    )


def _forgotten(context: Context, name: NodeName) -> Outcome[Membership]:
    cib = context.cib
    member = cib.members.get(name)
    if member is None:
        return Outcome()
    members = tuple(each for each in _members(cib) if each.name != name)
    revoked = (fingerprint_of(member.certificate),) if member.certificate else ()
    change = ChangeMembers(cib.membership.version + 1, members, revoked, context.author, context.reason)
    summary = f"{name} is removed; its name and its certificate are not accepted any more"
    return Outcome(
        (report(Code.REQUESTED, what=summary), *advice_for(cib, -1 if member.is_voter else 0)), commands=(change,)
    )


# -- addresses and votes --------------------------------------------------------------------------------------------


def address(context: Context, arguments: Arguments) -> Outcome[Membership]:
    """Let a member be reached at other addresses from now on; its daemon listens there at once."""
    member = _member(context, arguments)
    if isinstance(member, ReportItem):
        return refusal(member)
    name = member.name
    try:
        default = member.addresses[0][1]
        places = tuple(read_address(text, default) for text in arguments.word("addresses").split(","))
    except ValueError as error:
        return refusal(report(Code.BAD_ARGUMENT, name="addresses", problem=error))
    for other in _members(context.cib):
        same = sorted(set(other.addresses) & set(places))
        if other.name != name and same:
            problem = f"{address_text(same[0])} is the address of {other.name}"
            return refusal(report(Code.BAD_ARGUMENT, name="addresses", problem=problem))
    if places == member.addresses:
        return Outcome((report(Code.NOTHING_TO_DO, state=f"{name} is reached there"),))
    if not set(places) & set(member.addresses) and not context.is_forced:
        problem = f"{name} keeps none of its addresses: if the new ones are wrong, it is lost"
        known = address_text(member.addresses[0])
        remedy = f"name both first, {known} and the new one, then the new one alone; or --force"
        return refusal(report(Code.UNSAFE, problem=problem, remedy=remedy))
    reached_at = ", ".join(map(address_text, places))
    return _changed(context, replace(member, addresses=places), f"{name} is reached at {reached_at}")


def vote(context: Context, arguments: Arguments) -> Outcome[Membership]:
    """Give a member a vote, or take it; it gets one when it has the whole log."""
    member = _member(context, arguments)
    if isinstance(member, ReportItem):
        return refusal(member)
    name = member.name
    is_wanted = arguments.word("state") == "on"
    if is_wanted == member.is_voter:
        return Outcome((report(Code.NOTHING_TO_DO, state=f"{name} {'votes' if is_wanted else 'has no vote'}"),))
    if is_wanted and _is_full(context.cib):
        return refusal(report(Code.REFUSED, problem=f"{VOTERS_MAX} nodes vote already, or will"))
    if is_wanted:
        return _changed(context, replace(member, wants_vote=True), f"{name} gets a vote when it has caught up", 1)
    if context.cib.voters() == (name,):
        return refusal(report(Code.REFUSED, problem=f"{name} is the only voter"))
    if context.live is not None and context.live.leader == name:
        remedy = "crm cluster transfer-leader; then the same command again"
        return refusal(report(Code.TRY_AGAIN, problem=f"{name} leads", remedy=remedy))
    without = replace(member, is_voter=False, wants_vote=False)
    return _changed(context, without, f"{name} votes no more", -1)


def _member(context: Context, arguments: Arguments) -> Member | ReportItem:
    """Return the member that is named, or why there is none."""
    name = find_node(context, arguments.word("node"))
    if isinstance(name, ReportItem):
        return name
    if name not in context.cib.members:
        return report(Code.REFUSED, problem=f"{name} is no member", remedy="crm cluster members")
    return context.cib.members[name]


def _changed(context: Context, member: Member, summary: str, more: int = 0) -> Outcome[Membership]:
    cib = context.cib
    members = {**cib.members, member.name: member}
    change = ChangeMembers(
        cib.membership.version + 1, tuple(members[name] for name in sorted(members)), (), context.author, context.reason
    )
    objection = objection_to(cib, change)
    if objection:
        return refusal(report(Code.REFUSED, problem=objection))
    until: Callable[[Cib, LiveView | None], bool] | None = None
    if member.wants_vote:
        until = _votes(member.name)
    return Outcome(
        (report(Code.REQUESTED, what=summary), *advice_for(cib, more)),
        commands=(change,),
        answer=_answer(context, member.name, "changed"),
        until=until,
        waiting_for=f"{member.name} to have caught up",
        waits_by_default=until is not None,
    )


def _votes(name: NodeName) -> Callable[[Cib, LiveView | None], bool]:
    return lambda cib, _: name in cib.voters()


def _members(cib: Cib) -> tuple[Member, ...]:
    return tuple(cib.members[name] for name in sorted(cib.members))


def _answer(context: Context, name: NodeName, what: str) -> Membership:
    return Membership(name, what, context.cib.membership.version + 1)


VERBS = (
    carry_out_by("cluster.invite", invite, answers(Invitation)),
    carry_out_by("cluster.remove", remove, answers(Membership)),
    carry_out_by("cluster.address", address, answers(Membership)),
    carry_out_by("cluster.vote", vote, answers(Membership)),
)
