"""What starts after a clone waits for `clone-min` of its instances; a start that does not ends the run."""

import pytest

from haclusterd.cib.edits import PutConstraint, PutResource
from haclusterd.model.configuration import AttributeSet, Clone, Ordering
from haclusterd.model.ids import ConstraintId, Incarnation, NodeName, ResourceId
from haclusterd.ports.agents import AgentCall
from haclusterd.simulator.checks.checker import ViolationError
from haclusterd.simulator.checks.checkers_of_minimums import FOLLOWS, MINIMUM, FollowersWaitForInstances
from haclusterd.simulator.checks.versions import DECIDED_US
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import SERVICE, AgentRun
from haclusterd.simulator.scenario import Cluster

N1 = NodeName("n1")
APART_MS = DECIDED_US // 1000 + 1000
CROWD, CROWDS, FOLLOWER = ResourceId("crowd"), ResourceId("crowds"), ResourceId("follower")


def following(least: int) -> Cluster:
    """Return a cluster whose follower comes after so many instances, which take longer and longer to start."""
    cluster = Cluster().form()
    for place, node in enumerate(cluster.names):
        cluster.agent_script.write(CROWD, "start", AgentRun(APART_MS * (place + 1)), node=node, times=1)
    clone = Clone(CROWDS, CROWD, meta=(AttributeSet("crowds-meta", (("clone-min", str(least)),)),))
    cluster.configure((
        configurations.primitive(CROWD, start_timeout_ms=60_000), PutResource(clone),
        configurations.primitive(FOLLOWER), PutConstraint(Ordering(ConstraintId("follows"), CROWDS, FOLLOWER)),
    ))  # fmt: skip
    return cluster


@pytest.mark.parametrize("least", [0, 1, 2, 3])
def test_what_follows_starts_once_enough_instances_run(least: int) -> None:
    cluster = following(least)
    cluster.until(lambda: cluster.runs_once(FOLLOWER), 60_000, "it runs")
    assert len(cluster.truth.active_nodes(CROWD)) >= (least or 3)
    assert cluster.coverage.counts[MINIMUM, FOLLOWS] == (1 if least else 0)
    cluster.until_settled(60_000, "settled")


@pytest.mark.parametrize(("least", "is_expected"), [(2, True), (3, False)])
def test_what_follows_does_not_start_where_too_few_instances_can_run(least: int, *, is_expected: bool) -> None:
    cluster = following(least)
    cluster.configure((configurations.prefers(CROWDS, "n3", -1_000_000),))
    cluster.until(lambda: len(cluster.truth.active_nodes(CROWD)) == 2, 60_000, "two run")
    cluster.until_settled(60_000, "settled")
    assert cluster.truth.active_nodes(CROWD) == ("n1", "n2")
    assert cluster.runs_once(FOLLOWER) is is_expected


def test_what_starts_too_early_ends_the_run() -> None:
    cluster = following(2)
    (judge,) = (each for each in cluster.checkers.all if isinstance(each, FollowersWaitForInstances))
    cluster.until(lambda: cluster.runs_once(FOLLOWER), 60_000, "it runs")
    begun = [order for order in cluster.checkers.log.orders.values() if order.resource == FOLLOWER]
    order = next(each for each in begun if each.action == "start")
    for node in cluster.names[:2]:
        cluster.truth.service_ends(node, CROWD)
    for name in cluster.names:
        cluster.pause_brain(name)
    call = AgentCall(order.key, FOLLOWER, "follower", SERVICE, "start", {}, {}, 5000, Incarnation("boot", "life"))
    judge.agent_begins(N1, call)
    cluster.run_for(FollowersWaitForInstances.KNOWN_MS + 1000)
    with pytest.raises(ViolationError, match="follower starts on n1 after 1 instances of crowd, and not 2"):
        judge.agent_begins(N1, call)
