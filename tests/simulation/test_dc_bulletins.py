"""What the DC's plan warns of is shown on every node, also when another one becomes DC and when messages are lost."""

from haclusterd.model.ids import NodeName
from haclusterd.runtime.dc_bulletins import SHOWN_MS
from haclusterd.runtime.requests.live_view import live_view
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.scenario import Cluster, Setup

NAMES = ("n1", "n2", "n3", "n4", "n5")


def shown(cluster: Cluster, names: list[NodeName]) -> set[tuple[str, ...]]:
    return {live_view(cluster.brain_of(name).runtime).plan_warnings for name in names}


def test_every_node_shows_what_the_dc_warns_of() -> None:
    """A node without a fence device is lost: its services wait, and who asks any other node sees why."""
    for_all, for_some = configurations.device(NAMES), configurations.device(NAMES[:4])
    cluster = Cluster(5, Setup(nodes=len(NAMES)))
    cluster.form([for_some if edit == for_all else edit for edit in configurations.usual(NAMES)])
    lost = NodeName("n5")
    if cluster.dc() == lost:
        cluster.kill_brain(lost)
        cluster.until(lambda: cluster.dc() != lost and cluster.is_settled(), 60_000, "another DC")
    cluster.power_off(lost)
    others = [name for name in cluster.names if name != lost]

    def is_said() -> bool:
        found = shown(cluster, others)
        return len(found) == 1 and any("n5 is lost" in text for text in found.pop())

    cluster.until(is_said, 20_000, "all say that n5 is lost and cannot be fenced")
    before = cluster.dc()
    cluster.power_off(before)
    others.remove(before)
    cluster.until(lambda: cluster.dc() in others and is_said(), 60_000, "all say so under another DC")
    cluster.power_on(lost)
    cluster.power_on(before)
    others = list(cluster.names)
    cluster.until(lambda: cluster.is_settled() and shown(cluster, others) == {()}, 120_000 + SHOWN_MS, "nothing to say")
