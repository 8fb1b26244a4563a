"""Members that were never seen: nothing that they may run starts before somebody answers for them (safety.md §6)."""

from collections.abc import Sequence

import pytest

from haclusterd.cib.commands import Fenced
from haclusterd.cib.edits import Edit, PutSets
from haclusterd.commands.context import Context
from haclusterd.commands.status.headlines import headlines
from haclusterd.commands.status.overview import Overview
from haclusterd.model.cluster import NodeState
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.ids import NodeName
from haclusterd.model.records import replace
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.configurations import SERVICES
from haclusterd.simulator.hosts.fence_devices import FaultMode
from haclusterd.simulator.scenario import Cluster, Setup

N3 = NodeName("n3")
NAMES = ("n1", "n2", "n3")
DEVICE_FOR_TWO = tuple(
    configurations.device(NAMES[:2]) if edit == configurations.device(NAMES) else edit
    for edit in configurations.usual(NAMES)
)
WATCHDOGS_ONLY = configurations.watched(NAMES, node_timeout="2000ms", brain_timeout="10s")


def without_n3(edits: Sequence[Edit], *, watchdog_ms: int = 0) -> Cluster:
    cluster = Cluster(2, Setup(watchdog_ms=watchdog_ms))
    cluster.power_on("n1")
    cluster.power_on("n2")
    both = (NodeName("n1"), NodeName("n2"))
    cluster.until(lambda: all(cluster.states().get(name) is NodeState.ONLINE for name in both), 20_000, "two online")
    cluster.configure(edits, within_ms=20_000)
    return cluster


def first_line(cluster: Cluster) -> str:
    now = cluster.hosts[cluster.dc()].wall.now()
    found = headlines(Context(cib=cluster.cib, now=now, author="scenario"), Overview(cluster.cib))[0]
    return f"{found.verdict} {found.text} {found.remedy}"


@pytest.mark.parametrize(("edits", "watchdog_ms"), [(DEVICE_FOR_TWO, 0), (WATCHDOGS_ONLY, 5000)])
@pytest.mark.parametrize("how", ["seen", "confirmed", "property"])
def test_what_nothing_can_fence_is_waited_for_until_it_is_seen_or_a_person_answers(
    edits: Sequence[Edit], watchdog_ms: int, how: str
) -> None:
    cluster = without_n3(edits, watchdog_ms=watchdog_ms)
    cluster.run_for(90_000)
    assert cluster.state(N3) is NodeState.LOST
    assert not any(cluster.truth.active_nodes(service) for service in SERVICES)
    assert "n3" in first_line(cluster)
    assert "crm fencing confirm n3" in first_line(cluster)
    if how == "seen":
        cluster.power_on(N3)
    elif how == "confirmed":
        cluster.administer(Fenced(N3, None, None, FenceOutcome.CONFIRMED, "scenario"))
    else:
        cluster.configure([with_property(edits[0])])
    cluster.until(lambda: cluster.runs_once(*SERVICES), 15_000, "everything runs")


def with_property(properties: Edit) -> Edit:
    assert isinstance(properties, PutSets)
    [block] = properties.sets
    return replace(properties, sets=(replace(block, pairs=(*block.pairs, ("startup-fencing", "false"))),))


def test_with_startup_fencing_off_an_unseen_member_is_neither_waited_for_nor_fenced() -> None:
    edits = configurations.usual(NAMES)
    cluster = without_n3([with_property(edits[0]), *edits[1:]])
    cluster.until(lambda: cluster.runs_once(*SERVICES), 15_000, "everything runs")
    cluster.run_for(60_000)
    assert cluster.state(N3) is NodeState.UNSEEN
    assert not cluster.switch.acted
    assert "was never seen" in first_line(cluster)


def test_an_unseen_member_whose_device_is_dead_is_waited_for_until_the_device_works() -> None:
    cluster = Cluster(2)
    cluster.switch.set(N3, FaultMode.DEAD)
    cluster.power_on("n1")
    cluster.power_on("n2")
    both = (NodeName("n1"), NodeName("n2"))
    cluster.until(lambda: all(cluster.states().get(name) is NodeState.ONLINE for name in both), 20_000, "two online")
    cluster.configure(configurations.usual(NAMES), within_ms=20_000)
    cluster.run_for(90_000)
    assert not any(cluster.truth.active_nodes(service) for service in SERVICES)
    cluster.switch.repair()
    cluster.until(lambda: cluster.runs_once(*SERVICES), 60_000, "everything runs")


def test_a_member_that_is_heard_and_has_never_joined_holds_back_nobody_for_long() -> None:
    cluster = Cluster(2)
    cluster.drop_streams_of(N3)
    cluster.power_all()
    both = (NodeName("n1"), NodeName("n2"))
    cluster.until(lambda: all(cluster.states().get(name) is NodeState.ONLINE for name in both), 20_000, "two online")
    cluster.configure(configurations.usual(NAMES), within_ms=20_000)
    cluster.until(lambda: cluster.runs_once(*SERVICES), 40_000, "everything runs")
    assert "has not joined" in cluster.cib.status.fencing_history[0].reason
    cluster.end_filters()
    cluster.until(cluster.is_settled, 60_000, "settled")


def test_a_device_that_lies_about_a_heard_member_that_never_joined_is_found_out() -> None:
    cluster = Cluster(2)
    cluster.drop_streams_of(N3)
    cluster.switch.set(N3, FaultMode.LIES)
    cluster.power_all()
    both = (NodeName("n1"), NodeName("n2"))
    cluster.until(lambda: all(cluster.states().get(name) is NodeState.ONLINE for name in both), 20_000, "two online")
    cluster.configure(configurations.usual(NAMES), within_ms=20_000)
    cluster.until(lambda: cluster.switch.lies > 0, 40_000, "the switch has lied")
    cluster.run_for(20_000)
    assert cluster.state(N3) is NodeState.LOST
    assert not any(cluster.truth.active_nodes(service) for service in SERVICES)
    cluster.switch.repair()
    cluster.until(lambda: cluster.runs_once(*SERVICES), 60_000, "everything runs")
