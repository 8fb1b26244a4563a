"""What is done with tickets, and what is reported of it."""

import pytest

from haclusterd.cib.apply import apply
from haclusterd.cib.changes import ChangeKind
from haclusterd.cib.commands import Envelope, SetTicket, TicketChange
from haclusterd.model.cluster import Cib, TicketState
from haclusterd.model.ids import NodeName, RequestId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace

HELD = TicketState("paris", is_granted=True, last_granted=WallTime(5))


def after(cib: Cib, change: TicketChange) -> tuple[dict[str, TicketState], list[str]]:
    command = SetTicket("paris", change, "root@n1", "planned")
    envelope = Envelope(RequestId("r"), NodeName("n1"), WallTime(9), command)
    applied = apply(cib, envelope, index=1, term=Term(1))
    assert applied.refusal is None
    assert {each.kind for each in applied.changes} <= {ChangeKind.TICKET_CHANGED}
    return dict(applied.cib.status.tickets), [each.text for each in applied.changes]


def holding(state: TicketState) -> Cib:
    cib = Cib()
    return replace(cib, status=replace(cib.status, tickets={"paris": state}))


@pytest.mark.parametrize(
    ("cib", "change", "expected"),
    [
        (Cib(), TicketChange.GRANT, {"paris": TicketState("paris", is_granted=True, last_granted=WallTime(9))}),
        (holding(HELD), TicketChange.REVOKE, {"paris": replace(HELD, is_granted=False)}),
        (holding(HELD), TicketChange.STANDBY, {"paris": replace(HELD, is_standby=True)}),
        (holding(replace(HELD, is_standby=True)), TicketChange.ACTIVATE, {"paris": HELD}),
        (holding(HELD), TicketChange.DELETE, {}),
    ],
)
def test_a_ticket_is_granted_revoked_put_on_standby_activated_and_deleted(
    cib: Cib, change: TicketChange, expected: dict[str, TicketState]
) -> None:
    assert after(cib, change) == (expected, [f"ticket paris: {change} by root@n1: planned"])


def test_forgetting_what_nobody_knows_is_nothing() -> None:
    assert after(Cib(), TicketChange.DELETE) == ({}, [])
