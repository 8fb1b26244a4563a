"""A node that is being let in (`on`) and vanishes meanwhile comes back; one on which something is blocked is not let in
(docs/design/safety.md §5)."""

from collections.abc import Sequence

import pytest

from haclusterd.cib.edits import PutResource
from haclusterd.commands.status.fencing_cover import is_unfenced
from haclusterd.model.configuration import AttributeSet, Primitive
from haclusterd.model.fencing import FenceAction
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.hosts.fence_devices import FaultMode
from haclusterd.simulator.hosts.truth import promoted
from haclusterd.simulator.people import ask
from haclusterd.simulator.scenario import Cluster


def letting_in(nodes: Sequence[str]) -> PutResource:
    device = configurations.device(nodes).resource
    assert isinstance(device, Primitive)
    provides = AttributeSet("switch-meta", (("provides", "unfencing"),))
    return PutResource(Primitive(device.id, device.agent, device.parameters, (provides,)))


def formed() -> Cluster:
    cluster = Cluster()
    usual = [edit for edit in configurations.usual(cluster.names) if edit != configurations.device(cluster.names)]
    return cluster.form([*usual, letting_in(cluster.names)])


@pytest.mark.parametrize("is_reboot", [True, False])
def test_a_node_that_vanishes_while_it_is_let_in_joins_again(is_reboot: bool) -> None:
    cluster = formed()
    node = cluster.others(cluster.dc())[0]
    cluster.power_off(node)
    cluster.until(lambda: cluster.state(node) == "fenced", 10_000, "fenced")
    cluster.switch.set(node, FaultMode.WORKS, latency_ms=3_000)
    cluster.power_on(node)
    cluster.until(
        lambda: any(order.action is FenceAction.ON for order in cluster.cib.status.fence_orders.values()),
        10_000, "it is being let in",
    )  # fmt: skip
    if is_reboot:
        cluster.power_off(node)
        cluster.power_on(node)
    else:
        cluster.kill_brain(node)
    joined = cluster.cib.status.nodes[node].incarnation
    cluster.until(lambda: cluster.cib.status.nodes[node].incarnation != joined, 8_000, "it has joined again")
    cluster.until_settled(30_000, "it is let in, and everything runs")


def test_a_node_is_let_in_only_when_a_person_has_seen_to_what_failed_to_stop_there() -> None:
    cluster = Cluster()
    cluster.form(configurations.usual(cluster.names))
    db = cluster.cib.configuration.resources[ResourceId("db")]
    assert isinstance(db, Primitive)
    operations = tuple(replace(each, on_fail="block") if each.name == "stop" else each for each in db.operations)
    cluster.configure((PutResource(replace(db, operations=operations)),))
    cluster.until_settled(20_000, "settled")
    holder = cluster.node_of("db")
    cluster.agent_script.write("db", "stop", AgentRun(duration_ms=50, exit_code=1, has_effect=False))
    ask(cluster, "resource.stop", {"resources": ["db"]})
    cluster.run_for(5_000)
    more = (configurations.primitive("more"), configurations.prefers("more", holder))
    cluster.configure((letting_in(cluster.names), *more))
    cluster.run_for(30_000)
    others = [name for name in cluster.names if name != holder]
    assert [name for name in cluster.names if is_unfenced(cluster.cib, NodeName(name))] == others
    assert cluster.truth.active_nodes(ResourceId("db")) == (holder,)
    assert not cluster.truth.active_nodes(ResourceId("more"))
    cluster.agent_script.clear()
    ask(cluster, "resource.cleanup", {"resource": "db"})
    cluster.until(lambda: is_unfenced(cluster.cib, NodeName(holder)), 20_000, "it is let in")
    cluster.until(lambda: cluster.runs_once("more") and cluster.node_of("more") == holder, 20_000, "and starts it")
    assert not cluster.truth.active_nodes(ResourceId("db"))


def test_a_node_is_let_in_though_its_daemon_begins_again_meanwhile() -> None:
    cluster = Cluster()
    cluster.form(configurations.usual(cluster.names))
    cluster.until_settled(20_000, "settled")
    holder = next(name for name in cluster.others(cluster.dc()) if cluster.truth.services_on(name))
    cluster.kill_brain(holder)
    cluster.configure((letting_in(cluster.names),))
    cluster.until(lambda: is_unfenced(cluster.cib, NodeName(holder)), 60_000, "it is let in")
    cluster.until_settled(30_000, "everything runs")


def test_while_a_device_fails_to_let_a_node_in_the_others_recover() -> None:
    cluster = formed()
    cluster.switch.reboot_brings_back = False
    node = cluster.others(cluster.dc())[0]
    cluster.power_off(node)
    cluster.until(lambda: cluster.state(node) == "fenced", 10_000, "fenced")
    cluster.until(lambda: cluster.runs_once("db"), 20_000, "the others have taken over")
    cluster.switch.set(node, FaultMode.REFUSES)
    cluster.power_on(node)
    cluster.until(lambda: cluster.state(node) == "online", 20_000, "it has joined")
    cluster.kill_service("db")
    cluster.configure((configurations.primitive("more"), configurations.prefers("more", node)))
    cluster.until(lambda: cluster.runs_once("db", "more"), 10_000, "services of the others do not wait for it")
    assert not is_unfenced(cluster.cib, NodeName(node)), "it is not let in yet"
    cluster.switch.set(node, FaultMode.WORKS)
    cluster.until(lambda: is_unfenced(cluster.cib, NodeName(node)), 40_000, "it is let in after a pause")
    cluster.until_settled(30_000, "everything runs")


def test_a_node_that_no_device_lets_in_keeps_no_instance_from_its_promotion() -> None:
    cluster = Cluster()
    usual = [edit for edit in configurations.usual(cluster.names) if edit != configurations.device(cluster.names)]
    listed, (left_out,) = cluster.names[:2], cluster.names[2:]
    liked = (configurations.primitive("more"), configurations.prefers("more", left_out))
    cluster.form([*usual, *configurations.promotable(cluster.names), *liked, letting_in(listed)])
    cluster.until(lambda: bool(cluster.truth.active_nodes(promoted(ResourceId("pg")))), 30_000, "promoted")
    cluster.until_settled(20_000, "nothing waits for the node that is left out")
    assert cluster.runs_once("more")
    assert not cluster.truth.services_on(left_out)
