"""What status says first of fence devices that have failed a node."""

from haclusterd.cib.commands import RecordProof
from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.model.fencing import DeviceProof, ProofState
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.records import replace
from tests.administered_clusters import NOW, Cluster, running


def headlines(cluster: Cluster) -> str:
    return str(registry.run("status", {}, Context(cluster.cib, NOW, "root@n1", live=cluster.live)).data)


def test_a_device_that_failed_a_node_is_named_for_as_long_as_it_is_configured() -> None:
    cluster = running()
    cluster.configure("primitive spare stonith:fence_test")
    cluster.do(RecordProof(ResourceId("spare"), NodeName("n3"), DeviceProof(ProofState.FAILING, NOW, "no answer")))
    assert "fence device spare for n3: failing (no answer)" in headlines(cluster)
    resources = {name: each for name, each in cluster.cib.configuration.resources.items() if name != "spare"}
    cluster.cib = replace(cluster.cib, configuration=replace(cluster.cib.configuration, resources=resources))
    assert "spare" not in headlines(cluster)
