"""What becomes of claims when daemons, nodes and DCs die in the middle (safety.md §11)."""

import pytest

from haclusterd.cib.edits import PutResource
from haclusterd.model.configuration import AttributeSet, Primitive
from haclusterd.model.devices import DeviceState
from haclusterd.model.fencing import FenceAction
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import ALL_RULES
from haclusterd.simulator.hosts import configurations, devices
from haclusterd.simulator.hosts.devices import DeviceBehaviour
from haclusterd.simulator.hosts.fence_devices import FaultMode
from haclusterd.simulator.scenario import Cluster
from tests.simulation.device_scenarios import SOON_MS, device_hangs_and_its_node_is_booted, device_of, formed

LLM = ResourceId("llm")
N1 = NodeName("n1")


def claims(cluster: Cluster, node: str = "n1") -> list[tuple[str, bool]]:
    known = cluster.cib.status.devices[NodeName(node)]
    return [(claim.resource, claim.is_over) for standing in known.claims.values() for claim in standing]


def test_a_service_that_dies_gets_its_device_back_when_that_is_free() -> None:
    cluster = formed()
    cluster.kill_service("llm")
    cluster.until(lambda: cluster.runs_once("llm"), 5_000, "llm runs again")
    cluster.until_settled(SOON_MS, "settled")
    assert claims(cluster) == [("llm", False)]


def test_a_bad_device_moves_its_holder_to_a_spare_and_nobody_else() -> None:
    cluster = formed(devices=2)
    bad = device_of(cluster)
    assert bad is not None
    cluster.truth.devices.set_state(bad, DeviceState.FAILED)
    cluster.until(lambda: device_of(cluster) not in (None, bad), 5_000, "llm has the other device")
    cluster.until_settled(SOON_MS, "settled")
    assert cluster.runs_once("llm", *configurations.SERVICES)


def test_a_device_that_was_replaced_while_its_node_was_off_is_claimed_by_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seed 770611: a start before the first report claimed the old one, and nothing but a boot could end that."""
    cluster = formed()
    [old] = cluster.truth.devices.devices_of(N1)
    cluster.power_off("n1")
    cluster.truth.devices.swap(N1, 0)
    monkeypatch.setattr(devices, "NOTICE_US", (3_000_000, 3_000_000))
    cluster.power_on("n1")
    cluster.until(lambda: cluster.cib.status.devices[N1].devices[old].is_missing, 60_000, "the old one missed")
    cluster.until_settled(SOON_MS, "settled")
    assert claims(cluster) == []


@pytest.mark.parametrize("moment_ms", [0, 50, 150, 400, 900])
def test_a_daemon_that_dies_in_the_middle_of_a_release_ends_it_in_its_next_life(moment_ms: int) -> None:
    cluster = formed()
    cluster.truth.devices.behaviour = DeviceBehaviour(usual_ms=(700, 700), slow_share=0)
    cluster.edit([configurations.with_devices("llm", 1, {"target-role": "Stopped"})])
    cluster.until(lambda: not cluster.truth.active_nodes(LLM), 5_000, "llm stopped")
    cluster.run_for(moment_ms)
    cluster.kill_brain("n1")
    cluster.until_settled(SOON_MS, "settled")
    assert claims(cluster) == []


@pytest.mark.parametrize("moment_ms", [0, 100, 400])
def test_a_daemon_that_dies_while_a_start_waits_for_its_device_starts_it_in_its_next_life(moment_ms: int) -> None:
    cluster = formed()
    cluster.truth.devices.behaviour = DeviceBehaviour(usual_ms=(1500, 1500), slow_share=0)
    cluster.kill_service("llm")
    cluster.run_for(1200 + moment_ms)
    cluster.kill_brain("n1")
    cluster.until_settled(60_000, "settled")
    assert cluster.runs_once("llm")
    assert claims(cluster) == [("llm", False)]


def test_a_dc_that_dies_in_the_middle_leaves_its_claims_to_the_next() -> None:
    cluster = formed(devices=2, equipped=3)
    bad = device_of(cluster)
    assert bad is not None
    cluster.truth.devices.set_state(bad, DeviceState.FAILED)
    cluster.run_for(500)
    cluster.kill_brain(cluster.dc())
    cluster.until(lambda: device_of(cluster) not in (None, bad), SOON_MS, "llm has another device")
    cluster.until_settled(SOON_MS, "settled")
    assert cluster.runs_once("llm")


def test_a_node_that_loses_power_loses_its_claims_with_its_boot() -> None:
    cluster = formed(equipped=2)
    node = cluster.node_of("llm")
    cluster.power_off(node)
    cluster.until(lambda: cluster.runs_once("llm"), SOON_MS, "llm runs on the other")
    assert claims(cluster, node) == [("llm", True)], "it is fenced, and has not booted"
    cluster.power_on(node)
    cluster.until_settled(SOON_MS, "settled")
    assert claims(cluster, node) == []


def test_nobody_is_given_what_hangs_on_though_it_was_stopped_and_status_says_who() -> None:
    cluster = formed()
    cluster.truth.devices.behaviour = DeviceBehaviour(hanging_share=1.0)
    cluster.configure([configurations.with_devices("llm", 1, {"target-role": "Stopped"})])
    cluster.run_for(20_000)
    assert claims(cluster) == [("llm", True)]
    [device] = cluster.cib.status.devices[N1].devices.values()
    assert len(device.strangers) == 1


def test_a_device_that_does_not_answer_is_not_given_out_again() -> None:
    cluster = formed()
    device = device_of(cluster)
    assert device is not None
    cluster.truth.devices.hang(device, is_hung=True)
    cluster.configure([configurations.with_devices("llm", 1, {"target-role": "Stopped"})])
    cluster.run_for(10_000)
    assert claims(cluster) == [("llm", True)]
    cluster.truth.devices.hang(device, is_hung=False)
    cluster.until_settled(SOON_MS, "settled")
    assert claims(cluster) == []


def test_a_cluster_that_is_restored_in_the_same_boot_gives_nobody_what_its_services_still_use() -> None:
    cluster = formed()
    for host in cluster.hosts.values():
        host.brain.disable()
    cluster.run_for(500)
    cluster.restore_backup()
    for host in cluster.hosts.values():
        host.brain.enable()
    cluster.until(cluster.all_online, SOON_MS, "all online")
    cluster.configure([configurations.with_devices("next", 1, {"failure-timeout": "10s"})])
    cluster.run_for(15_000)
    assert cluster.runs_once("llm")
    assert not cluster.truth.active_nodes(ResourceId("next"))


def test_what_ends_in_maintenance_keeps_its_claim_and_starts_again_on_its_device_afterwards() -> None:
    cluster = formed()
    device = device_of(cluster)
    cluster.configure([configurations.properties(**configurations.USUAL_PROPERTIES, maintenance_mode="true")])
    cluster.until_settled(SOON_MS, "maintenance")
    cluster.kill_service("llm")
    cluster.until_settled(SOON_MS, "nobody looks whether llm lives")
    assert claims(cluster) == [("llm", False)]
    cluster.configure([configurations.properties(**configurations.USUAL_PROPERTIES)])
    cluster.until(lambda: cluster.runs_once("llm"), SOON_MS, "llm runs again")
    assert device_of(cluster) == device


def test_a_device_that_hangs_after_its_holder_left_is_freed_by_a_boot() -> None:
    device_hangs_and_its_node_is_booted(ALL_RULES)


def test_a_gang_whose_instances_hold_the_last_devices_of_their_nodes_is_expected_to_run() -> None:
    cluster = formed(equipped=3)
    gang = configurations.UNIQUE_GANG
    cluster.configure(configurations.gang(gang))
    cluster.until(lambda: len(cluster.truth.copies_of(ResourceId(gang))) == 2, SOON_MS, "the gang runs")
    cluster.until_settled(SOON_MS, "settled")


def test_a_gang_starts_at_once_also_where_one_of_its_nodes_is_still_being_unfenced() -> None:
    cluster = formed(devices=2, equipped=3)
    device = configurations.device(cluster.names).resource
    assert isinstance(device, Primitive)
    provides = AttributeSet("switch-meta", (("provides", "unfencing"),))
    unprobed = configurations.properties(**configurations.USUAL_PROPERTIES, enable_startup_probes="false")
    cluster.configure([unprobed, PutResource(replace(device, meta=(provides,))), *configurations.gang(size=3)])
    peer = ResourceId("peer")
    cluster.until(lambda: len(cluster.truth.copies_of(peer)) == 3, SOON_MS, "the gang runs")
    node = cluster.others(cluster.dc())[0]
    cluster.switch.set(node, FaultMode.WORKS, latency_ms=3_000)
    cluster.power_off(node)
    cluster.until(lambda: not cluster.truth.copies_of(peer), SOON_MS, "the gang has ended")
    cluster.power_on(node)
    cluster.until(
        lambda: any(order.action is FenceAction.ON for order in cluster.cib.status.fence_orders.values()),
        SOON_MS, "the node is being unfenced",
    )  # fmt: skip
    cluster.edit([configurations.prefers("db", node, 1)])  # a plan that finds the unfencing under way
    cluster.until(lambda: bool(cluster.truth.copies_of(peer)), SOON_MS, "the gang begins")
    assert not cluster.cib.status.fence_orders
    cluster.until(lambda: len(cluster.truth.copies_of(peer)) == 3, SOON_MS, "the gang runs again")
    cluster.until_settled(SOON_MS, "settled")
