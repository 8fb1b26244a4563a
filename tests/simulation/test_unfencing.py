"""A node that is being let in (`on`) and vanishes meanwhile comes back (docs/design/safety.md §5)."""

import pytest

from haclusterd.cib.commands import PutResource
from haclusterd.model.configuration import AttributeSet, Primitive
from haclusterd.model.fencing import FenceAction
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.fence_devices import FaultMode
from haclusterd.simulator.scenario import Cluster


def formed() -> Cluster:
    cluster = Cluster()
    device = configurations.device(cluster.names).resource
    assert isinstance(device, Primitive)
    letting_in = AttributeSet("switch-meta", (("provides", "unfencing"),))
    resource = Primitive(device.id, device.agent, device.parameters, (letting_in,))
    usual = [edit for edit in configurations.usual(cluster.names) if edit != configurations.device(cluster.names)]
    return cluster.form([*usual, PutResource(resource)])


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
