"""`apply` for tickets: whether this cluster may run what needs them (Pacemaker Explained, "Multi-Site Clusters")."""

from haclusterd.cib.changes import ChangeKind
from haclusterd.cib.commands import SetTicket, TicketChange
from haclusterd.cib.verdict import Entry, Verdict, accept, change, with_status
from haclusterd.model.cluster import Cib, TicketState
from haclusterd.model.records import replace


def set_ticket(cib: Cib, command: SetTicket, entry: Entry) -> Verdict:
    """Set a ticket as requested; a ticket that was unknown before counts as not granted."""
    tickets = dict(cib.status.tickets)
    known = tickets.get(command.ticket)
    state = known or TicketState(command.ticket)
    match command.change:
        case TicketChange.GRANT:
            state = replace(state, is_granted=True, last_granted=entry.at)
        case TicketChange.REVOKE:
            state = replace(state, is_granted=False)
        case TicketChange.STANDBY:
            state = replace(state, is_standby=True)
        case TicketChange.ACTIVATE:
            state = replace(state, is_standby=False)
        case TicketChange.DELETE:
            if known is None:
                return accept(cib)
            del tickets[command.ticket]
    if command.change is not TicketChange.DELETE:
        tickets[command.ticket] = state
    because = f": {command.reason}" if command.reason else ""
    text = f"ticket {command.ticket}: {command.change} by {command.author}{because}"
    after = with_status(cib, replace(cib.status, tickets=tickets))
    return accept(after, change(ChangeKind.TICKET_CHANGED, text))
