"""A node that is being let in (`on`) and vanishes meanwhile comes back; one on which something is blocked is not let in
(docs/design/safety.md §5)."""

import pytest

from haclusterd.cib.commands import PutResource
from haclusterd.commands.status.fencing_cover import is_unfenced
from haclusterd.model.configuration import AttributeSet, Primitive
from haclusterd.model.fencing import FenceAction
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.hosts.fence_devices import FaultMode
from haclusterd.simulator.people import ask
from haclusterd.simulator.scenario import Cluster


def letting_in(cluster: Cluster) -> PutResource:
    device = configurations.device(cluster.names).resource
    assert isinstance(device, Primitive)
    provides = AttributeSet("switch-meta", (("provides", "unfencing"),))
    return PutResource(Primitive(device.id, device.agent, device.parameters, (provides,)))


def formed() -> Cluster:
    cluster = Cluster()
    usual = [edit for edit in configurations.usual(cluster.names) if edit != configurations.device(cluster.names)]
    return cluster.form([*usual, letting_in(cluster)])


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
    cluster.configure((letting_in(cluster), *more))
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
    cluster.configure((letting_in(cluster),))
    cluster.until(lambda: is_unfenced(cluster.cib, NodeName(holder)), 60_000, "it is let in")
    cluster.until_settled(30_000, "everything runs")
