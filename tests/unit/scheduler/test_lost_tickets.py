"""What a lost ticket freezes runs on, and nothing starts after it. `crm_simulate` 2.1.5 decides the same."""

import pytest

from haclusterd.cib.commands import SetTicket, TicketChange
from haclusterd.model.fencing import FenceAction, FenceOutcome, FencingRecord
from haclusterd.model.ids import FenceKey, NodeName, ResourceId
from haclusterd.model.records import replace
from tests.scheduled_clusters import BEGIN, ScheduledCluster, action_line, configured

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


@pytest.mark.parametrize(("failures", "is_fenced"), [(0, True), (10, False)])
def test_a_node_is_not_fenced_for_a_ticket_again_and_again_where_that_never_succeeds(
    failures: int, *, is_fenced: bool
) -> None:
    """Each loss of it would stop its other services too."""
    cluster = ScheduledCluster.of(["n1", "n2", "n3"])
    cluster.do(SetTicket("rights", TicketChange.GRANT, "root"))
    cluster.configure(
        configured(
            "primitive power stonith:fence_local\nprimitive ip ocf:haclusterd:dummy\nlocation on-n2 ip 100: n2\n"
            "rsc_ticket ip-ticket rights: ip loss-policy=fence\n"
        )
    )
    cluster.settle()
    power, n1, n2 = ResourceId("power"), NodeName("n1"), NodeName("n2")
    life = cluster.cib.status.nodes[n2].incarnation
    history = tuple(
        FencingRecord(FenceKey(f"f{number}"), n2, life, FenceAction.REBOOT, power, n1, FenceOutcome.FAILED, "",
                      BEGIN, BEGIN, "")
        for number in range(failures)
    )  # fmt: skip
    cluster.cib = replace(cluster.cib, status=replace(cluster.cib.status, fencing_history=history))
    cluster.do(SetTicket("rights", TicketChange.REVOKE, "root"))
    lines = [action_line(action) for action in cluster.plan().graph.actions.values()]
    assert ("fence n2 (reboot)" in lines) is is_fenced
    assert "stop ip on n2" in lines or is_fenced
