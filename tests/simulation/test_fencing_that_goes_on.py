"""Fencing goes on for as long as a node is lost, whatever its device does, and recovers soon after that works again."""

import pytest

from haclusterd.machines.fence_choice import BACKOFF_MAX_MS
from haclusterd.model.cluster import NodeState
from haclusterd.model.ids import ResourceId
from haclusterd.model.properties import ClusterProperties
from haclusterd.simulator.fence_devices import Mood
from haclusterd.simulator.scenario import Cluster

DB = ResourceId("db")
RECOVERY_MS = 3000
"""Of a dead host whose device works: its fencing, and the start elsewhere."""


@pytest.mark.parametrize("mood", [Mood.DEAD, Mood.REFUSES], ids=lambda mood: mood.value)
def test_a_switch_that_is_away_for_ten_minutes_holds_and_then_recovers_within_the_longest_pause(mood: Mood) -> None:
    cluster = Cluster(seed=4).form()
    victim = cluster.node_of("db")
    cluster.switch.set(victim, mood)
    cluster.power_off(victim)
    cluster.run_for(600_000)
    assert cluster.state(victim) is NodeState.LOST
    assert not cluster.truth.active_nodes(DB)
    cluster.switch.mend()
    call_ms = ClusterProperties(cluster.cib.configuration).duration_ms("fencing-timeout")
    bound_ms = BACKOFF_MAX_MS + (call_ms if mood is Mood.DEAD else 0) + RECOVERY_MS
    cluster.until(lambda: cluster.runs_once("db"), bound_ms, "db recovered")
