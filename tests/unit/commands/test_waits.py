"""What status says that a lost node waits for."""

from haclusterd.cib import commands
from haclusterd.commands.waits import wait_for_fencing
from haclusterd.model.configuration import AttributeSet
from haclusterd.model.instants import WallTime
from tests.unit.machines.situations import N1, N2, N3, Cluster, primitive


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
    cluster.configure(commands.PutSets("properties", not_fenced))
    wait = wait_for_fencing(cluster.cib, status, WallTime(status.since + 30_000))
    assert wait is not None
    assert "never seen" not in wait.text


def test_a_node_that_is_lost_in_maintenance_is_said_not_to_be_fenced() -> None:
    cluster = Cluster()
    in_maintenance = (AttributeSet("cib-bootstrap-options", (("maintenance-mode", "true"),)),)
    cluster.configure(commands.PutResource(primitive("power", "stonith:fence_test")))
    cluster.lose(N2)
    status = cluster.status(N2)
    now = WallTime(status.since + 30_000)
    assert wait_for_fencing(cluster.cib, status, now) is None
    cluster.configure(commands.PutSets("properties", in_maintenance))
    wait = wait_for_fencing(cluster.cib, status, now)
    assert wait is not None
    assert wait.text == "for 30s; it is not fenced while nothing is managed"
    assert wait.remedy == "end the maintenance, or boot n2"
