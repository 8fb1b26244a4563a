"""What a lost ticket freezes runs on, and nothing starts after it. `crm_simulate` 2.1.5 decides the same."""

import pytest

from haclusterd.cib.commands import SetTicket, TicketChange
from tests.scheduled_clusters import ScheduledCluster, configured

RESOURCES = """
property stonith-enabled=false
primitive ip ocf:haclusterd:dummy
primitive web ocf:haclusterd:dummy
rsc_ticket ip-ticket rights: ip loss-policy=freeze
"""
AFTER = "order ip-then-web Mandatory: ip web"
BESIDE = "colocation web-with-ip inf: web ip"


def with_the_ticket(constraint: str) -> ScheduledCluster:
    cluster = ScheduledCluster.of(["n1", "n2"])
    cluster.do(SetTicket("rights", TicketChange.GRANT, "root"))
    cluster.configure(configured(f"{RESOURCES}{constraint}\n"))
    cluster.settle()
    return cluster


@pytest.mark.parametrize("after", [AFTER, "group front ip web"])
def test_what_starts_after_it_is_stopped_and_starts_with_the_ticket(after: str) -> None:
    cluster = with_the_ticket(after)
    cluster.do(SetTicket("rights", TicketChange.REVOKE, "root"))
    cluster.settle()
    assert {name for name, _ in cluster.running} == {"ip"}
    cluster.do(SetTicket("rights", TicketChange.GRANT, "root"))
    cluster.settle()
    assert {name for name, _ in cluster.running} == {"ip", "web"}


def test_what_runs_beside_it_runs_on() -> None:
    cluster = with_the_ticket(BESIDE)
    cluster.do(SetTicket("rights", TicketChange.REVOKE, "root"))
    assert not cluster.settle()


def test_the_plan_warns_of_it_and_says_what_ends_it() -> None:
    cluster = with_the_ticket(AFTER)
    cluster.do(SetTicket("rights", TicketChange.REVOKE, "root"))
    assert [warning for warning in cluster.plan().warnings if warning.startswith("ip ")] == [
        "ip stays where it is until the ticket is granted: ip-ticket: ticket rights is not granted"
    ]
