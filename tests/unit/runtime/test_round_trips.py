"""What the network takes at least, of many heartbeats, some of which were lost or came late."""

from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import BrainState, HeardNode, PacerReport
from haclusterd.runtime.pacer_contact import RoundTrips

N2 = NodeName("n2")


def report(answered_at: int | None, heard_at: int | None) -> PacerReport:
    node = HeardNode(
        name=N2,
        incarnation=None,
        age_ms=0,
        brain=BrainState.ALIVE,
        brain_since_ms=0,
        hears={},
        heard_at=None if heard_at is None else Instant(heard_at),
        answered_at=None if answered_at is None else Instant(answered_at),
    )
    return PacerReport(reported_at=Instant(heard_at or 0), stalled_at=None, nodes=(node,))


def test_the_shortest_of_many_less_a_period_counts() -> None:
    trips = RoundTrips()
    assert trips.least_ms(N2, 200) is None
    for answered_at, heard_at in ((1000, 1330), (1000, 1530), (1400, 1730), (1400, 1630)):
        trips.observe(report(answered_at, heard_at))
    assert trips.least_ms(N2, 200) == 30


def test_what_never_came_back_tells_nothing_and_a_repeated_report_counts_once() -> None:
    trips = RoundTrips()
    trips.observe(report(None, 1000))
    trips.observe(report(1000, None))
    assert trips.least_ms(N2, 200) is None
    for _ in range(100):
        trips.observe(report(1000, 1900))
    trips.observe(report(2000, 2300))
    assert trips.least_ms(N2, 200) == 100


def test_a_network_that_has_become_slower_is_seen_after_a_while() -> None:
    trips = RoundTrips()
    for number in range(10):
        trips.observe(report(1000 * number, 1000 * number + 210))
    for number in range(10, 80):
        trips.observe(report(1000 * number, 1000 * number + 500))
    assert trips.least_ms(N2, 200) == 300
