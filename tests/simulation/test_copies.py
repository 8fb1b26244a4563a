"""Live migration and promotion with a node that fails in each phase: one copy at any instant, and it comes back."""

import pytest

from haclusterd.cib.commands import CleanUp
from haclusterd.cib.edits import Delete, PutResource
from haclusterd.model.configuration import AttributeSet, Clone
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.hosts.fence_devices import FaultMode
from haclusterd.simulator.hosts.truth import promoted
from haclusterd.simulator.scenario import Cluster
from tests.simulation.copies_scenarios import (
    FAULTS,
    MIGRATION,
    MIGRATION_PHASES,
    PG,
    PROMOTION_PHASES,
    SETTLED_MS,
    SOURCE,
    TARGET,
    THIRD,
    VM,
    is_ordered,
    make_dc,
    migrating,
    promoting,
)

VMS = ResourceId("vms")
VICTIMS = {"source": SOURCE, "target": TARGET, "dc": THIRD}
BACK_MS = 25_000
"""Detection, fencing, what is left of an agent's run, probes, a stop and a start."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("phase", MIGRATION_PHASES)
def test_a_service_in_migration_is_never_active_twice_and_comes_back(phase: str, victim: str, fault: str) -> None:
    cluster = migrating()
    cluster.until(lambda: MIGRATION_PHASES[phase](cluster), 10_000, phase)
    FAULTS[fault](cluster, VICTIMS[victim])
    cluster.edit([configurations.prefers(VM, THIRD, 600)])
    cluster.run_for(100)
    cluster.until(lambda: cluster.runs_once(VM) and not cluster.has_open_orders(), BACK_MS, "the service is back")
    cluster.heal()
    cluster.until_settled(SETTLED_MS, "settled")


@pytest.mark.parametrize("is_seen", [False, True])
@pytest.mark.parametrize("victim", ["source", "target"])
def test_what_had_arrived_before_a_node_died_is_not_taken_for_the_service(victim: str, is_seen: bool) -> None:
    cluster = migrating(run=AgentRun(duration_ms=2000, effect_at_percent=80, is_arrival_seen=is_seen))
    cluster.run_for(700)
    cluster.power_off(VICTIMS[victim])
    cluster.until(lambda: cluster.runs_once(VM) and not cluster.has_open_orders(), BACK_MS, "the service is back")
    cluster.heal()
    cluster.until_settled(SETTLED_MS, "settled")


def test_a_daemon_s_restart_does_not_restart_what_has_moved_meanwhile() -> None:
    cluster = migrating()
    cluster.run_for(300)
    ended: list[object] = []
    cluster.kill_brain(SOURCE)
    cluster.until(lambda: cluster.truth.active_nodes(VM) == (TARGET,), 5000, "vm moved")
    cluster.truth.when_service_ends.append(ended.append)
    cluster.until_settled(SETTLED_MS, "settled")
    assert cluster.node_of(VM) == TARGET
    assert not ended


def test_an_instance_that_has_left_is_not_promoted_where_it_was() -> None:
    """Instances of an anonymous clone have one name on all nodes, so a new DC takes the two ends for two of them."""
    cluster = Cluster(1).form()
    meta = (AttributeSet("vms-meta", (("promotable", "true"), ("clone-max", "1"))),)
    clone = PutResource(Clone(VMS, VM, meta=meta))
    cluster.configure([configurations.migratable(), clone, configurations.prefers(VMS, SOURCE)])
    cluster.until(lambda: cluster.truth.active_nodes(VM) == (SOURCE,), 10_000, "the instance on n1")
    make_dc(cluster, THIRD)
    cluster.agent_script.write(VM, "migrate_to", MIGRATION, times=1)
    cluster.edit([configurations.prefers(VMS, TARGET, 300)])
    cluster.until(lambda: is_ordered(cluster, SOURCE, VM, ActionName.MIGRATE_TO), 5000, "migrate_to ordered")
    cluster.edit([configurations.promotion_score(SOURCE, 1000, VM)])
    cluster.until(lambda: cluster.truth.active_nodes(VM) == (TARGET,), 5000, "it has moved")
    cluster.kill_brain(THIRD)
    for _ in range(100):
        cluster.run_for(100)
        assert set(cluster.truth.active_nodes(promoted(VM))) <= set(cluster.truth.active_nodes(VM))
    cluster.until_settled(SETTLED_MS, "settled")


def test_a_dead_switch_holds_both_ends_of_a_migration_until_it_works() -> None:
    cluster = migrating()
    cluster.switch.set(SOURCE, FaultMode.DEAD)
    cluster.until(lambda: cluster.truth.active_nodes(VM) == (TARGET,), 5000, "vm moved")
    cluster.power_off(SOURCE)
    cluster.edit([configurations.prefers(VM, THIRD, 600)])
    cluster.run_for(20_000)
    assert cluster.truth.holders(VM) == (TARGET,)
    cluster.switch.repair()
    cluster.until(lambda: cluster.runs_once(VM) and cluster.node_of(VM) == THIRD, 60_000, "vm on n3")


def test_a_migration_that_never_began_leaves_nothing_held() -> None:
    cluster = migrating(run=MIGRATION)
    cluster.until_settled(SETTLED_MS, "settled")
    cluster.agent_script.write(VM, "monitor", AgentRun(duration_ms=1500), node=TARGET, times=1)
    cluster.run_for(1100)
    cluster.edit([configurations.prefers(VM, THIRD, 600)])
    cluster.until(lambda: is_ordered(cluster, TARGET, VM, ActionName.MIGRATE_TO), 5000, "migrate_to ordered")
    cluster.edit([configurations.prefers(VM, TARGET, 900)])
    cluster.until_settled(SETTLED_MS, "settled")
    assert cluster.node_of(VM) == TARGET


@pytest.mark.parametrize("is_reprobe", [False, True])
@pytest.mark.parametrize("phase", MIGRATION_PHASES)
def test_a_clean_up_in_mid_migration_forgets_neither_end(phase: str, is_reprobe: bool) -> None:
    cluster = migrating()
    cluster.until(lambda: MIGRATION_PHASES[phase](cluster), 10_000, phase)
    cluster.administer(CleanUp(VM, None, reprobe=is_reprobe))
    cluster.edit([configurations.prefers(VM, THIRD, 600)])
    cluster.run_for(50)
    cluster.power_off(SOURCE)
    cluster.until(lambda: cluster.runs_once(VM) and not cluster.has_open_orders(), BACK_MS, "the service is back")
    cluster.heal()
    cluster.until_settled(SETTLED_MS, "settled")


@pytest.mark.parametrize("fault", ["power", "daemon"])
@pytest.mark.parametrize("phase", MIGRATION_PHASES)
def test_what_is_removed_in_mid_migration_is_stopped_wherever_it_is(phase: str, fault: str) -> None:
    cluster = migrating()
    cluster.until(lambda: MIGRATION_PHASES[phase](cluster), 10_000, phase)
    names = [f"{VM}-on-{node}" for node in (SOURCE, TARGET)]
    cluster.edit([*(Delete("constraint", name) for name in names), Delete("resource", VM)])
    cluster.run_for(50)
    FAULTS[fault](cluster, SOURCE)
    cluster.run_for(BACK_MS)
    cluster.heal()
    cluster.until_settled(SETTLED_MS, "settled")
    assert not cluster.truth.holders(VM)


@pytest.mark.parametrize("fault", ["power", "daemon"])
@pytest.mark.parametrize("phase", MIGRATION_PHASES)
def test_maintenance_in_mid_migration_makes_no_second_copy_afterwards(phase: str, fault: str) -> None:
    cluster = migrating()
    cluster.until(lambda: MIGRATION_PHASES[phase](cluster), 10_000, phase)
    meta = {"allow-migrate": "true", "maintenance": "true"}
    cluster.configure([configurations.primitive(VM, meta=meta), configurations.prefers(VM, THIRD, 600)])
    FAULTS[fault](cluster, SOURCE)
    cluster.run_for(8000)
    cluster.heal()
    cluster.configure([configurations.migratable()])
    cluster.until_settled(SETTLED_MS, "settled")
    assert cluster.runs_once(VM)


@pytest.mark.parametrize("is_notified", [False, True])
@pytest.mark.sampled(4)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("phase", PROMOTION_PHASES)
def test_no_second_instance_is_promoted_and_one_is_again(
    phase: str, victim: str, fault: str, is_notified: bool
) -> None:
    cluster = promoting(is_notified=is_notified)
    cluster.until(lambda: PROMOTION_PHASES[phase](cluster), 10_000, phase)
    FAULTS[fault](cluster, VICTIMS[victim])
    cluster.edit([configurations.promotion_score(SOURCE, 1)])
    cluster.run_for(100)
    cluster.until(lambda: cluster.runs_once(promoted(PG)) and not cluster.has_open_orders(), BACK_MS, "one promoted")
    cluster.heal()
    cluster.until_settled(SETTLED_MS, "settled")


@pytest.mark.parametrize("code", [None, 1])
def test_a_demote_that_outlives_its_daemon_is_waited_for(code: int | None) -> None:
    cluster = promoting(demotion=AgentRun(duration_ms=3000, exit_code=code, effect_at_percent=95))
    cluster.run_for(300)
    cluster.kill_brain(TARGET)
    cluster.until_settled(SETTLED_MS, "settled")
    assert cluster.truth.active_nodes(promoted(PG)) == (NodeName("n1"),)


MISSED_ARRIVALS: dict[str, tuple[str, tuple[tuple[str, NodeName], ...]]] = {
    "source's daemon dies while it sends": ("moved", (("daemon", SOURCE),)),
    "target's daemon dies while it receives": ("receiving", (("daemon", TARGET),)),
    "source dies, and target's daemon, while it receives": ("receiving", (("power", SOURCE), ("daemon", TARGET))),
    "source dies when it has sent": ("moved", (("power", SOURCE),)),
}
"""In which phase of a migration what fails, so that only a probe of the target can say whether it has arrived."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("exit_code", [2, 5, 6])
@pytest.mark.parametrize("has_run_there", [False, True], ids=["new there", "stopped there before"])
@pytest.mark.parametrize("missed", MISSED_ARRIVALS)
def test_what_may_have_arrived_is_not_forgotten_by_a_probe_that_could_not_look(
    missed: str, has_run_there: bool, exit_code: int
) -> None:
    phase, faults = MISSED_ARRIVALS[missed]
    cluster = migrating(has_run_there=has_run_there)
    cluster.agent_script.write(VM, "monitor", AgentRun(20, exit_code=exit_code, has_effect=False), node=TARGET)
    cluster.until(lambda: MIGRATION_PHASES[phase](cluster), 10_000, phase)
    assert cluster.truth.active_nodes(VM) == (TARGET,)
    for fault, node in faults:
        FAULTS[fault](cluster, node)
    cluster.edit([configurations.prefers(VM, THIRD, 600)])
    cluster.until(lambda: TARGET not in cluster.truth.active_nodes(VM), BACK_MS, "it is stopped where it may be")
    if exit_code == ExitCode.NOT_CONFIGURED:
        cluster.run_for(10_000)  # Then it may run nowhere, until a person has looked.
        return
    cluster.until(lambda: cluster.runs_once(VM) and cluster.node_of(VM) == THIRD, BACK_MS, "the service is back")
    cluster.heal()
    cluster.until_settled(SETTLED_MS, "settled")
