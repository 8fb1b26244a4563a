"""What status says that a lost node waits for."""

from haclusterd.cib import commands
from haclusterd.cib.edits import PutResource, PutSets
from haclusterd.commands.status.waits import wait_for_fencing, wait_to_join
from haclusterd.model.configuration import AttributeSet
from haclusterd.model.fencing import FenceAction, FenceOrder, FenceOutcome
from haclusterd.model.ids import FenceKey, ResourceId
from haclusterd.model.instants import WallTime
from tests.unit.situations import N1, N2, N3, TERM, Cluster, life, primitive


def test_a_member_that_was_never_seen_and_nothing_fences_is_named_with_what_waits_for_it() -> None:
    cluster = Cluster(joined=(N1, N3))
    cluster.must(commands.Lost(N2, None, cluster.term, "not seen since the DC began"))
    status = cluster.status(N2)
    wait = wait_for_fencing(cluster.cib, status, WallTime(status.since + 30_000))
    assert wait is not None
    assert wait.text.startswith("for 30s: it was never seen")
    for remedy in ("start haclusterd on n2", "crm fencing confirm n2", "crm configure property startup-fencing=false"):
        assert remedy in wait.remedy
    not_fenced = (AttributeSet("cib-bootstrap-options", (("startup-fencing", "false"),)),)
    cluster.configure(PutSets("properties", not_fenced))
    wait = wait_for_fencing(cluster.cib, status, WallTime(status.since + 30_000))
    assert wait is not None
    assert "never seen" not in wait.text


def test_a_node_that_is_lost_in_maintenance_is_said_not_to_be_fenced() -> None:
    cluster = Cluster()
    in_maintenance = (AttributeSet("cib-bootstrap-options", (("maintenance-mode", "true"),)),)
    cluster.configure(PutResource(primitive("power", "stonith:fence_test")))
    cluster.lose(N2)
    status = cluster.status(N2)
    now = WallTime(status.since + 30_000)
    assert wait_for_fencing(cluster.cib, status, now) is None
    cluster.configure(PutSets("properties", in_maintenance))
    wait = wait_for_fencing(cluster.cib, status, now)
    assert wait is not None
    assert wait.text == "for 30s; it is not fenced while nothing is managed"
    assert wait.remedy == "end the maintenance, or boot n2"


def abandoned(action: FenceAction) -> Cluster:
    """n3 is lost while it fences n2, or lets it in."""
    cluster = Cluster()
    cluster.configure(PutResource(primitive("power", "stonith:fence_test")))
    if action is not FenceAction.ON:
        cluster.lose(N2)
    order = FenceOrder(
        FenceKey("f1"), N2, life(N2), action, ResourceId("power"), N3, life(N3), TERM, 60_000, 1, WallTime(0), "lost"
    )
    cluster.must(commands.IssueFence(order))
    cluster.lose(N3)
    cluster.must(commands.RecordFenceFailure(FenceKey("f1"), FenceOutcome.UNKNOWN, "n3 is gone"))
    return cluster


def test_a_node_that_a_late_fence_agent_could_hit_is_said_to_wait() -> None:
    cluster = abandoned(FenceAction.OFF)
    [item] = cluster.cib.status.abandoned_fencings.values()
    wait = wait_to_join(cluster.cib, cluster.status(N2), WallTime(item.since + 6000))
    assert wait is not None
    assert wait.text == (
        "waits to join: a fence agent on n3, which was lost, may still be at work on it, for 61s at most"
    )
    assert wait.remedy == "at once: start haclusterd on n3, or fence it"
    assert wait_to_join(cluster.cib, cluster.status(N3), item.since) is None


def test_a_lost_node_that_a_late_fence_agent_could_let_in_is_said_to_be_fenced_later() -> None:
    cluster = abandoned(FenceAction.ON)
    cluster.lose(N2)
    [item] = cluster.cib.status.abandoned_fencings.values()
    status = cluster.status(N2)
    wait = wait_for_fencing(cluster.cib, status, WallTime(item.since + item.longest_ms))
    assert wait is not None
    assert "when a fence agent on n3, which was lost, can let it in no more, which ends now" in wait.text
    assert "crm fencing confirm n2" in wait.remedy


def test_a_node_whose_devices_nobody_may_use_is_said_to_wait_for_that() -> None:
    cluster = Cluster()
    cluster.configure(PutResource(primitive("power", "stonith:fence_test")))
    opt_in = (AttributeSet("cib-bootstrap-options", (("symmetric-cluster", "false"),)),)
    cluster.configure(PutSets("properties", opt_in))
    cluster.lose(N2)
    status = cluster.status(N2)
    wait = wait_for_fencing(cluster.cib, status, WallTime(status.since + 30_000))
    assert wait is not None
    assert wait.text == "for 30s, and no node that may use power is online: nothing of it is recovered"
    assert wait.remedy.startswith("allow it to one that is online: crm configure location ID power 0: NODE")
    assert "crm fencing confirm n2" in wait.remedy
