"""A real replica that differs, with every checksum right: it ends for good, loudly, and the others go on."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import pytest

from haclusterd.adapters.machine.files_directory import FilesDirectory
from haclusterd.cib.codec import encode_cib
from haclusterd.entry_points.crm_recover import read_data
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import NodeName, Term
from haclusterd.model.records import fields, replace
from haclusterd.raft.journal import JOURNAL_NAME, NO_OPERATION, KeptDigest, encode_journal, read_journal
from haclusterd.raft.settings import RaftSettings
from haclusterd.raft.snapshot import Snapshot, load_snapshot, write_snapshot
from haclusterd.runtime.settings import CONFIGURATION_FILE, Installation, load
from tests.processes.daemons import Scenario

pytestmark = pytest.mark.processes

AGREED = next(each.default for each in fields(RaftSettings) if each.name == "snapshot_every")
"""The first index at which all nodes take a snapshot."""
N3 = NodeName("n3")


def installation(scenario: Scenario, node: NodeName) -> Installation:
    return load(scenario.cluster.nodes[node].bundle / CONFIGURATION_FILE)


def put_state(scenario: Scenario, node: NodeName, cib: Cib, *, later: int) -> None:
    """Let a node's data be a log that was compacted into a snapshot of this state, so many entries later."""
    place = installation(scenario, node)
    files = FilesDirectory(place.state_directory)
    before = load_snapshot(files, place.cluster_uuid)
    ending = None if before is None else (before.index, int(before.term))
    content = read_journal(files, place.cluster_uuid, node, ending)
    if later:
        content.digest = KeptDigest(cib.index, is_contested=False, digest=sha256(encode_cib(cib)).digest())
    cib = replace(cib, index=cib.index + later)
    content.entries[:] = [(NO_OPERATION, cib.index, content.term)]
    content.commit = cib.index
    write_snapshot(files, Snapshot(cib.index, Term(content.term), encode_cib(cib)), place.cluster_uuid)
    files.replace(JOURNAL_NAME, encode_journal(f"{place.cluster_uuid}\0{node}".encode(), content))
    files.close()


def another(cib: Cib) -> Cib:
    """Return a state that differs in one word."""
    status = cib.status.nodes[N3]
    nodes: Mapping[NodeName, Any] = {**cib.status.nodes, N3: replace(status, detail="flipped")}
    return replace(cib, status=replace(cib.status, nodes=nodes))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("later", [0, 3], ids=["agreed-snapshot", "later-snapshot"])
def test_a_replica_that_differs_ends_for_good_and_says_how_to_rejoin(scenario: Scenario, later: int) -> None:
    scenario.form()
    for name in scenario.cluster.names:
        scenario.cluster.power_off(name)
    place = installation(scenario, NodeName("n1"))
    files = FilesDirectory(place.state_directory)
    cib = replace(read_data(place, files).cib, index=AGREED)
    files.close()
    for name in scenario.cluster.names:
        put_state(scenario, name, another(cib) if name == N3 else cib, later=later)
    for name in scenario.cluster.names:
        scenario.cluster.boot(name)
    scenario.cluster.start()
    assert scenario.brain("n3").wait(40) in {65, 75}
    scenario.restart_brain("n3")
    assert scenario.brain("n3").wait(40) == 65, "which systemd does not repeat"
    logged = scenario.log("n3").splitlines()[-1]
    assert f"the replicas differ at entry {AGREED}: n1 " in logged
    assert "a majority has another state than this node" in logged
    assert "crm cluster remove" in logged
    scenario.until("the others go on", lambda: scenario.states()["n1"] == scenario.states()["n2"] == "online")
    scenario.restart_brain("n3")
    assert scenario.brain("n3").wait(40) == 65
