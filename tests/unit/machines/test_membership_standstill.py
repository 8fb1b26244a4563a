"""A DC whose daemon stood still, while its pacer went on, takes nobody's silence from a report of before."""

import pytest

from haclusterd.machines.membership import MembershipMachine
from haclusterd.machines.moment import Moment
from haclusterd.model.cluster import Cib, Member, NodeState, NodeStatus, Status
from haclusterd.model.ids import Incarnation, NodeName, Term
from haclusterd.model.instants import Instant, WallTime
from haclusterd.model.pacer import BrainState, HeardNode, PacerReport
from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import ALL_RULES
from haclusterd.model.timing import derive

N1, N2, N3 = NAMES = tuple(NodeName(name) for name in ("n1", "n2", "n3"))
REPORTED_AT = 100_000


def life(node: NodeName) -> Incarnation:
    return Incarnation(f"boot-{node}", f"{int(node[1:]):016x}")


CIB = Cib(
    members={name: Member(name, ()) for name in NAMES},
    status=Status(nodes={name: NodeStatus(name, NodeState.ONLINE, life(name)) for name in NAMES}),
)


def heard(name: NodeName, age_ms: int, other: NodeName, other_age_ms: int) -> HeardNode:
    return HeardNode(name, life(name), age_ms, BrainState.ALIVE, 0, {other: other_age_ms})


def judged(
    age_of_n2_ms: int, drift_ms: int, *, age_at_n3_ms: int | None = None, with_rule: bool = True
) -> list[object]:
    """Return what n1 proposes when it last heard n3 just now and n2 a while ago, by a report of `drift_ms` ago."""
    rules = replace(ALL_RULES, silence_clocks_restart_after_stall=with_rule)
    machine = MembershipMachine(N1, Term(1), derive(2_000), Instant(0), rules=rules)
    nodes = (heard(N2, age_of_n2_ms, N3, 0), heard(N3, 20, N2, age_at_n3_ms or age_of_n2_ms))
    now = Instant(REPORTED_AT + drift_ms)
    moment = Moment(now, WallTime(0), lease_until=Instant(now + 100))
    return list(machine.step(CIB, PacerReport(Instant(REPORTED_AT), None, nodes), moment))


@pytest.mark.parametrize(("age_ms", "drift_ms", "is_lost"), [(2_100, 0, True), (2_100, 500, True), (100, 500, False)])
def test_a_fresh_report_is_evidence(age_ms: int, drift_ms: int, is_lost: bool) -> None:
    assert bool(judged(age_ms, drift_ms)) is is_lost


def test_a_report_from_before_a_standstill_is_not() -> None:
    assert judged(100, 1_950, age_at_n3_ms=9_000) == []


def test_without_the_rule_a_standstill_makes_a_heard_node_lost() -> None:
    assert judged(100, 1_950, age_at_n3_ms=9_000, with_rule=False) != []
