"""Scenarios of devices: who may have one, and when it is free (safety.md §11)."""

from haclusterd.cib.commands import BeginRecovery, IssueOrders
from haclusterd.model.devices import DeviceId, DeviceState, Rung
from haclusterd.model.ids import NodeName, OrderKey, ResourceId
from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.simulator.checks.checkers_of_orders import OneControllerPerTerm
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.devices import DeviceBehaviour
from haclusterd.simulator.scenario import Cluster, Setup

SOON_MS = 20_000


def formed(rules: SafetyRules = ALL_RULES, *, devices: int = 1, nodes: int = 3, equipped: int = 1) -> Cluster:
    """Return a cluster whose first nodes have devices, one of which llm holds."""
    cluster = Cluster(seed=1, setup=Setup(nodes=nodes), rules=rules)
    for name in cluster.names[:equipped]:
        cluster.truth.devices.equip(name, devices)
    cluster.form()
    cluster.until(lambda: len(cluster.cib.status.devices) == equipped, SOON_MS, "the devices reported")
    cluster.configure([configurations.with_devices("llm", 1, {"failure-timeout": "10s"})])
    cluster.until_settled(SOON_MS, "llm started")
    return cluster


def device_of(cluster: Cluster, resource: str = "llm") -> DeviceId | None:
    """Return the one device that a resource may use; None: it may use none."""
    found = [
        name
        for known in cluster.cib.status.devices.values()
        for name, claims in known.claims.items()
        if any(claim.resource == resource and not claim.is_over for claim in claims)
    ]
    assert len(found) <= 1, found
    return found[0] if found else None


def given_twice(rules: SafetyRules) -> None:
    """A start claims the device that llm holds, which no DC would order: it is put into the log by hand."""
    cluster = formed(rules)
    [held] = [order for order in cluster.checkers.log.orders.values() if order.resource == "llm" and order.devices]
    controller = cluster.cib.status.controller
    assert controller is not None
    other = replace(held, key=OrderKey("by-hand"), resource=ResourceId("other"), dc_term=controller.term)
    cluster.checkers.leave_out(OneControllerPerTerm)
    cluster.administer(IssueOrders(other.dc_term, (other,)))
    cluster.run_for(3000)
    cluster.until_settled(SOON_MS, "settled")


def stopped_and_not_free(rules: SafetyRules) -> None:
    """llm is stopped, its process hangs in the driver, and another service waits for its device."""
    cluster = formed(rules)
    cluster.truth.devices.behaviour = DeviceBehaviour(hanging_share=1.0)
    cluster.configure([
        configurations.with_devices("llm", 1, {"target-role": "Stopped"}),
        configurations.with_devices("next", 1, {"failure-timeout": "10s"}),
    ])
    cluster.until(lambda: not cluster.truth.active_nodes(ResourceId("llm")), SOON_MS, "llm stopped")
    cluster.run_for(10_000)
    cluster.truth.devices.heal()
    cluster.until_settled(SOON_MS, "settled")
    assert cluster.runs_once("next")


def older_life_hangs(rules: SafetyRules) -> None:
    """llm dies, and its process hangs in the driver: it may not start on that device again before that is gone."""
    cluster = formed(rules)
    cluster.truth.devices.behaviour = DeviceBehaviour(hanging_share=1.0)
    cluster.kill_service("llm")
    cluster.run_for(20_000)
    assert not cluster.truth.active_nodes(ResourceId("llm"))
    cluster.truth.devices.heal()
    cluster.until_settled(60_000, "settled")
    assert cluster.runs_once("llm")


def stranger_in_the_way(rules: SafetyRules) -> None:
    """A person's process uses the only device when llm is to start there."""
    cluster = formed(rules)
    cluster.configure([configurations.with_devices("llm", 1, {"target-role": "Stopped"})])
    cluster.until_settled(SOON_MS, "llm stopped")
    process = cluster.truth.devices.stranger_begins(cluster.truth.devices.devices_of(NodeName("n1"))[0])
    cluster.run_for(4_000)
    cluster.configure([configurations.with_devices("llm", 1, {"failure-timeout": "10s"})])
    cluster.run_for(20_000)
    cluster.truth.devices.end(process)
    cluster.until(lambda: cluster.runs_once("llm"), SOON_MS, "llm runs")
    cluster.until_settled(60_000, "settled")
    assert cluster.runs_once("llm")


def held_device_is_reset(rules: SafetyRules) -> None:
    """A person wants the device reset that llm holds."""
    cluster = formed(rules)
    held = device_of(cluster)
    assert held is not None
    cluster.administer(BeginRecovery(NodeName("n1"), held, Rung.RESET, "root"))
    cluster.run_for(5_000)
    assert not cluster.cib.status.devices[NodeName("n1")].recoveries
    cluster.until_settled(SOON_MS, "settled")
    assert cluster.runs_once("llm")


def stranger_on_a_device_to_be_reset(rules: SafetyRules) -> None:
    """A person's process uses a device that is to be reset, and the cluster has not heard of it yet."""
    cluster = formed(rules, devices=3)
    truth = cluster.truth.devices
    first, second = [name for name in truth.devices_of(NodeName("n1")) if name != device_of(cluster)]
    truth.stranger_begins(first)
    cluster.run_for(1_500)
    process = truth.stranger_begins(second)
    cluster.run_for(6_500)
    cluster.administer(BeginRecovery(NodeName("n1"), second, Rung.RESET, "root"))
    cluster.run_for(1_000)
    assert second in cluster.cib.status.devices[NodeName("n1")].recoveries
    cluster.run_for(15_000)
    assert process in truth.processes
    assert not cluster.cib.status.devices[NodeName("n1")].recoveries


def daemon_dies_while_a_device_is_reset(rules: SafetyRules) -> None:
    """The reset goes on; the daemon's next incarnation does not repeat it, and waits for its proof."""
    cluster = formed(rules)
    cluster.configure([configurations.with_devices("llm", 1, {"target-role": "Stopped"})])
    cluster.until_settled(SOON_MS, "llm stopped")
    truth, node, hits = cluster.truth.devices, NodeName("n1"), []
    truth.when_hit.append(hits.append)
    [device] = truth.devices_of(node)
    cluster.until(lambda: not cluster.cib.status.devices[node].claims, SOON_MS, "the device is free")
    cluster.administer(BeginRecovery(node, device, Rung.RESET, "root"))
    cluster.until(lambda: bool(truth.recovering), SOON_MS, "the reset has begun")
    cluster.kill_brain(node)
    cluster.configure([configurations.with_devices("llm", 1, {"failure-timeout": "10s"})])
    cluster.until(lambda: cluster.runs_once("llm"), 60_000, "llm has its device again")
    assert len(hits) == 1


def policy_resets_what_has_failed(rules: SafetyRules) -> None:
    """llm leaves its only device; policy resets that, its test is passed, and llm has it again."""
    cluster = formed(rules)
    by_policy = {"gpu_recovery_reset": "auto", "gpu_burn_in": "/usr/local/bin/burn-in"}
    cluster.configure([configurations.properties(**{**configurations.USUAL_PROPERTIES, **by_policy})])
    truth = cluster.truth.devices
    truth.behaviour = DeviceBehaviour(helping_share=1.0, failing_share=0.0)
    held = device_of(cluster)
    assert held is not None
    truth.set_state(held, DeviceState.DRAIN, "reset")
    cluster.until(lambda: bool(truth.recovering), SOON_MS, "the reset has begun")
    assert not cluster.truth.active_nodes(ResourceId("llm"))
    cluster.until(lambda: cluster.runs_once("llm"), 60_000, "llm has its device again")
    assert not cluster.cib.status.devices[NodeName("n1")].recoveries


def device_hangs_and_its_node_is_booted(rules: SafetyRules) -> None:
    """The driver hangs under llm, which goes to another node: nobody can say that it is gone, so policy has the node
    booted, once nothing else holds its devices; then the device is well and free."""
    cluster = formed(rules, equipped=2)
    by_policy = {"gpu_recovery_reset": "auto", "gpu_recovery_reboot": "auto"}
    cluster.configure([configurations.properties(**{**configurations.USUAL_PROPERTIES, **by_policy})])
    held = device_of(cluster)
    assert held is not None
    truth = cluster.truth.devices
    node, boot = truth.node_of(held), cluster.truth.boot_of(truth.node_of(held))
    truth.hang(held, is_hung=True, is_lasting=True)
    cluster.until(lambda: device_of(cluster) not in (None, held), SOON_MS, "llm has another device")
    cluster.until(lambda: cluster.truth.boot_of(node) not in (None, boot), 60_000, "the node was booted")
    cluster.until_settled(60_000, "settled")
    assert cluster.runs_once("llm", *configurations.SERVICES)
    known = cluster.cib.status.devices[node]
    assert not known.recoveries
    assert not known.claims


def gang_takes_a_device_and_its_old_one_is_reset(rules: SafetyRules) -> None:
    """A gang loses a device, takes that of a service with a lower priority, and policy resets the lost one; the daemon
    that does so dies in the middle. Then everybody has a device again."""
    cluster = formed(rules, equipped=3)
    cluster.configure([configurations.properties(**{**configurations.USUAL_PROPERTIES, "gpu_recovery_reset": "auto"})])
    cluster.configure(configurations.gang(priority=10))
    cluster.until(lambda: len(cluster.truth.copies_of(ResourceId("peer"))) == 2, SOON_MS, "the gang runs")
    cluster.until_settled(SOON_MS, "settled")
    assert cluster.runs_once("llm")
    truth = cluster.truth.devices
    truth.behaviour = DeviceBehaviour(helping_share=1.0, failing_share=0.0)
    node = cluster.truth.copies_of(ResourceId("peer"))[0]
    [lost] = truth.devices_of(node)
    truth.set_state(lost, DeviceState.FAILED, "reset")
    cluster.until(lambda: bool(truth.recovering), 60_000, "the reset has begun")
    cluster.kill_brain(node)
    cluster.until(
        lambda: len(cluster.truth.copies_of(ResourceId("peer"))) == 2 and cluster.runs_once("llm"),
        120_000,
        "the gang and llm run",
    )
    cluster.until_settled(60_000, "settled again")
    assert not any(known.recoveries for known in cluster.cib.status.devices.values())
    assert sum(len(claims) for known in cluster.cib.status.devices.values() for claims in known.claims.values()) == 3
