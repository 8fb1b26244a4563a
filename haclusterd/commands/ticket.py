"""Verbs about tickets: what this cluster holds of what several clusters share, one at a time.

Nothing here knows of the other clusters: who grants a ticket says with it that no other cluster holds it. That is why
a grant, and a revocation that stops or fences, ask first (Pacemaker Explained, "Multi-Site Clusters and Tickets").
"""

from collections.abc import Collection
from typing import Never

from haclusterd.cib.commands import SetTicket, TicketChange
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.planning.planning import settled
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.cluster import TicketState
from haclusterd.model.configuration import TicketConstraint
from haclusterd.model.words import bad_character
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.items import ReportItem, report
from haclusterd.reports.suggestions import did_you_mean
from haclusterd.verbs.answers.cluster import NeedsTicket, Ticket, Tickets
from haclusterd.verbs.arguments import Arguments

LONGEST_NAME = 255
TICKETS_MAX = 1000
"""Operators may grant any name, and all nodes hold each in memory and in each snapshot."""

_DONE = {
    TicketChange.GRANT: "ticket {} is granted to this cluster",
    TicketChange.REVOKE: "ticket {} is taken from this cluster",
    TicketChange.STANDBY: "ticket {} is in standby: what needs it stops, the ticket stays",
    TicketChange.ACTIVATE: "ticket {} is active again",
    TicketChange.DELETE: "ticket {} is forgotten",
}


def _no_such(name: str, known: Collection[str]) -> ReportItem:
    remedy = did_you_mean(name, known, "see: crm ticket show")
    return report(Code.NO_SUCH_TICKET, ticket=repr(name), remedy=remedy)


def show(context: Context, arguments: Arguments) -> Outcome[Tickets]:
    """Answer tickets: those that are known, and those that are only configured (schema `haclusterd.tickets/1`)."""
    wanted, known = arguments.word("ticket"), ticket_names(context)
    if wanted and wanted not in known:
        return refusal(_no_such(wanted, known))
    shown = tuple(_ticket(context, name) for name in known if wanted in ("", name))
    return Outcome(answer=Tickets(now=context.now, tickets=shown))


def ticket_names(context: Context) -> tuple[str, ...]:
    """Return every ticket there is, in order."""
    return tuple(sorted({*context.cib.status.tickets, *(each.ticket for each in _constraints(context))}))


def _constraints(context: Context) -> tuple[TicketConstraint, ...]:
    constraints = context.cib.configuration.constraints.values()
    return tuple(each for each in constraints if isinstance(each, TicketConstraint))


def _ticket(context: Context, name: str) -> Ticket:
    state = context.cib.status.tickets.get(name, TicketState(name))
    constraints = [each for each in _constraints(context) if each.ticket == name]
    return Ticket(
        ticket=name,
        is_granted=state.is_granted,
        is_standby=state.is_standby,
        last_granted=state.last_granted or None,
        resources=tuple(
            NeedsTicket(resource=resource, role=each.role, loss_policy=each.loss_policy or "stop")
            for each in constraints
            for resource in ([each.resource] if each.resource else [m for s in each.sets for m in s.members])
        ),
    )


def change_ticket(context: Context, arguments: Arguments) -> Outcome[Never]:
    """Grant, revoke, put in standby, activate or forget a ticket."""
    change, name = TicketChange(arguments.word("action")), arguments.word("ticket")
    if bad_character(name) or len(name) > LONGEST_NAME:
        return refusal(report(Code.BAD_ARGUMENT, name="ticket", problem="this cannot be a name"))
    known = ticket_names(context)
    if name not in known and change is not TicketChange.GRANT:
        return refusal(_no_such(name, known))
    if name not in known and len(known) >= TICKETS_MAX:
        problem = f"there are {TICKETS_MAX} tickets"
        return refusal(report(Code.BAD_ARGUMENT, name="ticket", problem=problem, remedy="crm ticket delete NAME"))
    state = context.cib.status.tickets.get(name, TicketState(name))
    if _is_so(context, state, change):
        return Outcome((report(Code.NOTHING_TO_DO, state=_DONE[change].format(name)),))
    objection = _objection(context, state, change)
    warned: tuple[ReportItem, ...] = ()
    if objection and not context.is_forced:
        severity = Severity.WARNING if context.is_preview else None
        warned = (report(Code.UNSAFE, problem=objection, severity=severity),)
        if not context.is_preview:
            return refusal(*warned)
    return Outcome(
        reports=(*warned, report(Code.REQUESTED, what=_DONE[change].format(name))),
        commands=(SetTicket(name, change, context.author, context.reason),),
        until=settled(context.now),
        until_plans=True,
        waiting_for="the cluster to settle",
    )


def _is_so(context: Context, state: TicketState, change: TicketChange) -> bool:
    match change:
        case TicketChange.GRANT:
            return state.is_granted
        case TicketChange.REVOKE:
            return not state.is_granted
        case TicketChange.STANDBY:
            return state.is_standby
        case TicketChange.ACTIVATE:
            return not state.is_standby
        case TicketChange.DELETE:
            return state.id not in context.cib.status.tickets


def _objection(context: Context, state: TicketState, change: TicketChange) -> str:
    """Say what a person must be sure of first."""
    if change is TicketChange.GRANT:
        return f"if another cluster still holds {state.id}, what needs it runs twice: be sure that none does"
    takes_away = change in (TicketChange.REVOKE, TicketChange.DELETE) and state.is_granted
    losing = [each for each in _constraints(context) if each.ticket == state.id]
    policies = sorted({each.loss_policy or "stop" for each in losing})
    return f"what needs {state.id} loses it now (loss-policy: {', '.join(policies)})" if takes_away and losing else ""


VERBS = (
    carry_out_by("ticket.show", show, answers(Tickets)),
    carry_out_by("ticket.change", change_ticket, answers()),
)
