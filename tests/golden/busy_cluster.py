"""A cluster with much in its status that is not the rule."""

from haclusterd.model.cluster import TicketState
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.records import replace
from tests.administered_clusters import NOW, Cluster, running

RESOURCES = """
primitive power stonith:fence_local params pcmk_host_list="n1 n2 n3" nodes_dir=/nodes op monitor interval=60s
primitive address ocf:haclusterd:dummy op monitor interval=10s timeout=20s
primitive web ocf:haclusterd:http-service params command=/bin/true op monitor interval=10s timeout=20s
primitive db ocf:haclusterd:dummy op monitor interval=10s timeout=20s utilization cpu=2
group site address web
primitive pg ocf:haclusterd:stateful op monitor interval=10s role=Promoted op monitor interval=11s role=Unpromoted
clone pgc pg meta promotable=true notify=true
primitive a ocf:haclusterd:dummy
primitive b ocf:haclusterd:dummy
group g a b
clone gc g meta interleave=true
primitive e ocf:haclusterd:dummy
clone ec e meta target-role=Started clone-max=2
primitive f ocf:haclusterd:dummy
clone fc f meta is-managed=false
primitive off ocf:haclusterd:dummy meta target-role=Stopped
primitive mt ocf:haclusterd:dummy meta maintenance=true
primitive y ocf:haclusterd:dummy
primitive z ocf:haclusterd:dummy
primitive u systemd:foo meta migration-threshold=3
location ban-web web -inf: n2
location ban-pg pgc role=Promoted -inf: n3
"""
RUNNING = (
    ("pg", "n1"), ("pg", "n2"), ("a", "n1"), ("b", "n1"), ("a", "n2"), ("e", "n1"), ("e", "n3"), ("f", "n1"),
    ("f", "n2"), ("mt", "n1"), ("y", "n2"), ("u", "n3"),
)  # fmt: skip


def busy() -> Cluster:
    """Return a cluster in which much is so that is not the rule."""
    cluster = running(RESOURCES)
    for resource, node in RUNNING:
        cluster.run(resource, node)
    cluster.record("pg", "n1", "promote")
    cluster.record("e", "n3", "monitor", ExitCode.ERROR, interval_ms=10_000)
    cluster.record("a", "n3", "monitor", ExitCode.NOT_RUNNING, target=ExitCode.NOT_RUNNING)
    cluster.record("u", "n3", "monitor", ExitCode.UNKNOWN, status=ExecutionStatus.TIMEOUT, interval_ms=10_000)
    cluster.count_failure("u", "n3", "monitor", 10_000, 2)
    cluster.record("web", "n1", "monitor", ExitCode.NOT_CONFIGURED, interval_ms=10_000, reason="it <died> at 'last'")
    cluster.count_failure("web", "n1", "monitor", 10_000, 2)
    cluster.order("z", "n3", ActionName.START)
    cluster.order("db", "n2", ActionName.STOP)
    node = cluster.node("n3")
    cluster.put(replace(node, attributes={"standby": "on", "pingd": "100", "a-b": "x & y"}))
    tickets = {"gold": TicketState("gold", is_granted=True, last_granted=WallTime(NOW - 60_000))}
    cluster.cib = replace(cluster.cib, status=replace(cluster.cib.status, tickets=tickets))
    return cluster
