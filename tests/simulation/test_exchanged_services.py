"""Names exchange the services that they stand for while these start, stop and move (safety.md §1).

Whatever a plan thinks, no service starts under one name while it may run, or be about to, under another one.
"""

from collections.abc import Callable, Sequence

import pytest

from haclusterd.cib.edits import Delete, Edit, PutResource
from haclusterd.model.configuration import AttributeSet, Primitive
from haclusterd.model.ids import ResourceId
from haclusterd.model.ocf import ActionName
from haclusterd.model.records import replace
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.hosts.truth import CALLED
from haclusterd.simulator.scenario import Cluster
from tests.simulation.copies_scenarios import SOURCE, TARGET, THIRD, VM, called, is_ordered

LEFT, RIGHT = ResourceId("left"), ResourceId("right")
SLOW_START = AgentRun(duration_ms=12_000, effect_at_percent=60)


def exchanging() -> Cluster:
    """Return a cluster in which `left` and `right` have exchanged their services, and begin to start as that."""
    cluster = Cluster(3).form()
    cluster.configure([called("left", "one"), called("right", "two"), configurations.prefers("left", SOURCE),
                       configurations.prefers("right", THIRD)])  # fmt: skip
    cluster.until_settled(60_000, "both run")
    for name in (LEFT, RIGHT):
        cluster.agent_script.write(name, "start", SLOW_START, times=1)
    cluster.edit([called("left", "two"), called("right", "one")])
    cluster.until(lambda: is_ordered(cluster, THIRD, RIGHT, ActionName.START), 10_000, "right is to start")
    cluster.until(lambda: is_ordered(cluster, SOURCE, LEFT, ActionName.START), 10_000, "left is to start")
    cluster.run_for(500)
    return cluster


def _nothing(_cluster: Cluster) -> None:
    pass


def _the_daemon_that_starts_it_dies(cluster: Cluster) -> None:
    cluster.kill_brain(THIRD)


def _it_is_cut_off(cluster: Cluster) -> None:
    cluster.isolate(THIRD)
    cluster.world.after(15_000_000, lambda: cluster.rejoin(THIRD))


def _the_dc_dies(cluster: Cluster) -> None:
    controller = cluster.dc()
    assert controller is not None
    cluster.kill_brain(controller)


@pytest.mark.parametrize("interruption", [_nothing, _the_daemon_that_starts_it_dies, _it_is_cut_off, _the_dc_dies])
def test_they_are_exchanged_back_while_they_start_and_one_loses_its_node(
    interruption: Callable[[Cluster], None],
) -> None:
    """`left` is free to start, and what it is to run is being started as `right` by an order that nobody wants."""
    cluster = exchanging()
    cluster.edit([called("left", "one"), called("right", "two")])
    cluster.power_off(SOURCE)
    interruption(cluster)
    cluster.run_for(20_000)
    cluster.until(lambda: cluster.runs_once("left", "right"), 60_000, "both run")
    cluster.until_settled(60_000, "settled")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("interruption", [_nothing, _the_daemon_that_starts_it_dies, _it_is_cut_off, _the_dc_dies])
@pytest.mark.parametrize(
    "edits",
    [
        (Delete("resource", "right"),),
        (Delete("resource", "right"), called("third", "two")),
        (called("right", "three"),),
    ],
    ids=["removed", "renamed", "another service"],
)
def test_the_name_under_which_it_starts_is_given_up(
    edits: Sequence[Edit], interruption: Callable[[Cluster], None]
) -> None:
    cluster = exchanging()
    gone = [Delete("constraint", "right-on-n3")] if isinstance(edits[0], Delete) else []
    cluster.edit([*gone, *edits, called("left", "one"), configurations.prefers("left", TARGET, 500)])
    cluster.power_off(SOURCE)
    interruption(cluster)
    cluster.run_for(20_000)
    cluster.until(lambda: cluster.runs_once("left"), 60_000, "it runs")
    cluster.until_settled(60_000, "settled")


def migratable(name: str, service: str) -> Edit:
    resource = configurations.migratable(name).resource
    assert isinstance(resource, Primitive)
    return PutResource(replace(resource, parameters=(AttributeSet(f"{name}-parameters", ((CALLED, service),)),)))


@pytest.mark.parametrize("is_renamed", [True, False], ids=["renamed", "exchanged"])
@pytest.mark.parametrize("phase", ["migrate_to", "moved", "migrate_from"])
def test_what_migrates_live_gets_another_name_on_its_way(phase: str, *, is_renamed: bool) -> None:
    cluster = Cluster(3).form()
    cluster.configure([migratable("vm", "one"), migratable("guest", "two"), configurations.prefers("vm", SOURCE),
                       configurations.prefers("guest", THIRD)])  # fmt: skip
    cluster.until_settled(60_000, "both run")
    cluster.agent_script.write("vm", "migrate_to", AgentRun(duration_ms=3000, effect_at_percent=60), times=1)
    cluster.agent_script.write("vm", "migrate_from", AgentRun(duration_ms=3000), times=1)
    cluster.edit([configurations.prefers("vm", TARGET, 300)])
    cluster.until(lambda: is_ordered(cluster, SOURCE, VM, ActionName.MIGRATE_TO), 5000, "it is to migrate")
    if phase == "moved":
        cluster.until(lambda: cluster.truth.active_nodes(VM) == (TARGET,), 5000, "it has moved")
    elif phase == "migrate_from":
        cluster.until(lambda: is_ordered(cluster, TARGET, VM, ActionName.MIGRATE_FROM), 9000, "it arrives")
    gone = [Delete("constraint", "vm-on-n1"), Delete("constraint", "vm-on-n2"), Delete("resource", "vm")]
    cluster.edit([*gone, migratable("third", "one"), configurations.prefers("third", THIRD)] if is_renamed
                 else [migratable("vm", "two"), migratable("guest", "one")])  # fmt: skip
    cluster.run_for(15_000)
    cluster.until(lambda: cluster.runs_once("guest", "third" if is_renamed else "vm"), 60_000, "both run")
    cluster.until_settled(60_000, "settled")
