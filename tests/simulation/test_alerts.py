"""Each event reaches every recipient: in order, across changes of the DC and restarts, and twice only when marked."""

from functools import partial

from haclusterd.cib.commands import SetTransientAttribute
from haclusterd.cib.edits import PutAlert
from haclusterd.model.configuration import Alert, AlertKind, AlertRecipient, AttributeSet
from haclusterd.model.ids import NodeName
from haclusterd.simulator.hosts.alert_agents import DeliveredAlert
from haclusterd.simulator.scenario import Cluster, Setup

ALL = Alert("all", "/agent", select=tuple(AlertKind),
            recipients=(AlertRecipient("one", "/one"), AlertRecipient("two", "/two")))  # fmt: skip
NODES = Alert("nodes", "/agent", select=(AlertKind.NODES,))
N2 = NodeName("n2")
IN_FLIGHT = 10


def change(cluster: Cluster, number: int, name: str = "level") -> None:
    cluster.administer(SetTransientAttribute(N2, name, str(number)))


def has_changed(cluster: Cluster, last: int) -> bool:
    """Tell whether the last IN_FLIGHT changes are applied: of more than 128 that wait some would be made twice."""
    known = cluster.cib.status.nodes[N2].attributes
    numbers = range(last + 1 - IN_FLIGHT, last + 1)
    return all(known.get(f"level{number % IN_FLIGHT}") == str(number) for number in numbers)


def judge(cluster: Cluster, key: str, *, wanted: set[int]) -> None:
    """Nothing is lost, what comes first comes in order, and only one call of an event is not marked."""
    calls = [each for each in cluster.alerts if each.call.key == key]
    first = list(dict.fromkeys(each.call.sequence for each in calls))
    assert first == sorted(first)
    assert set(first) == wanted
    unmarked = [each.call.sequence for each in calls if not each.is_repeated]
    assert len(unmarked) == len(set(unmarked))


def wait_for(cluster: Cluster, events: int) -> None:
    """Wait until so many events have happened, and every recipient has got them."""
    cluster.until(lambda: cluster.cib.status.alerts.last >= events, 60_000, "all happened")
    cluster.until(lambda: not cluster.cib.status.alerts.pending, 60_000, "all delivered")


def sequences(found: list[DeliveredAlert], key: str) -> set[int]:
    return {each.call.sequence for each in found if each.call.key == key}


def test_two_hundred_events_over_twenty_dcs() -> None:
    cluster = Cluster(11, Setup(snapshot_every=50)).form()
    cluster.configure([PutAlert(ALL), PutAlert(NODES)])
    begun = cluster.cib.status.alerts.last
    for number in range(200):
        change(cluster, number, f"level{number % IN_FLIGHT}")
        if number % 10 == 9:
            cluster.run_for(number)  # The kill comes at another place of the delivery each time.
            cluster.kill_brain(cluster.dc())
            cluster.until(cluster.all_online, 60_000, "everybody is back")
            cluster.until(partial(has_changed, cluster, number), 60_000, "what was asked for without a DC is done")
    wait_for(cluster, begun + 200)
    queue = cluster.cib.status.alerts
    wanted = set(range(begun + 1, queue.last + 1))
    assert len(wanted) >= 200
    judge(cluster, "one", wanted=wanted)
    judge(cluster, "two", wanted=wanted)
    assert not queue.dropped
    assert any(each.is_repeated for each in cluster.alerts), "a DC died between delivery and record"
    kinds = {each.call.environment["CRM_alert_kind"] for each in cluster.alerts if each.call.key == "nodes"}
    assert kinds <= {"node"}


def test_what_was_pending_when_everybody_stopped_is_delivered_afterwards() -> None:
    cluster = Cluster(12, Setup(snapshot_every=20)).form()
    cluster.configure([PutAlert(ALL)])
    begun = cluster.cib.status.alerts.last
    for number in range(30):
        change(cluster, number)
    cluster.until(lambda: cluster.cib.status.alerts.last >= begun + 20, 60_000, "most have happened")
    assert cluster.cib.status.alerts.pending
    for name in cluster.names:
        cluster.power_off(name)
    cluster.run_for(5_000)
    for name in cluster.names:
        cluster.power_on(name)
    cluster.until(cluster.all_online, 120_000, "everybody is back")
    wait_for(cluster, begun + 20)
    judge(cluster, "one", wanted=set(range(begun + 1, cluster.cib.status.alerts.last + 1)))


def test_events_that_are_alike_are_one_incident() -> None:
    meta = (AttributeSet("m", (("incident-interval", "1h"),)),)
    quiet = Alert("quiet", "/agent", select=(AlertKind.ATTRIBUTES,), meta=meta)
    cluster = Cluster(13).form()
    cluster.configure([PutAlert(quiet), PutAlert(ALL)])
    begun = cluster.cib.status.alerts.last
    for number in range(5):
        change(cluster, number)
    wait_for(cluster, begun + 5)
    assert len(sequences(cluster.alerts, "quiet")) == 1
    assert len(sequences(cluster.alerts, "one")) == 5
