"""Tickets as verbs: how many there may be."""

from haclusterd.cib.commands import SetTicket, TicketChange
from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.commands.ticket import TICKETS_MAX
from haclusterd.model.cluster import TicketState
from haclusterd.model.records import replace
from tests.administered_clusters import NOW, formed


def test_no_more_tickets_are_granted_than_all_nodes_can_hold() -> None:
    cluster = formed()
    names = [f"t{number}" for number in range(TICKETS_MAX)]
    tickets = {name: TicketState(name) for name in names}
    cib = replace(cluster.cib, status=replace(cluster.cib.status, tickets=tickets))
    context = Context(cib, NOW, "root@n1", live=cluster.live, is_forced=True)
    refused = registry.run("ticket.change", {"ticket": "more", "action": "grant"}, context)
    assert refused.is_refused
    assert refused.reports[0].remedy == "crm ticket delete NAME"
    granted = registry.run("ticket.change", {"ticket": names[-1], "action": "grant"}, context)
    assert granted.commands == (SetTicket(names[-1], TicketChange.GRANT, "root@n1"),)
