"""Real daemons: a cluster is begun with one node, grown, repaired and shrunk by `crm` alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from haclusterd.entry_points.free_ports import free_ports
from haclusterd.model.ids import NodeName
from tests.processes.growing_cluster import GrowingCluster

pytestmark = pytest.mark.processes


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[GrowingCluster]:
    made = GrowingCluster(tmp_path / "cluster")
    try:
        yield made
    finally:
        made.close()


def test_a_cluster_grows_from_one_node_to_three(cluster: GrowingCluster) -> None:
    cluster.begin("n1")
    cluster.until("n1 to be the DC", lambda: cluster.status()["dc"] == "n1")
    cluster.with_service()
    service = cluster.service_pids("n1")
    cluster.grow("n2", "n3")
    assert cluster.voters() == {"n1", "n2", "n3"}
    # Growing a cluster interrupts nothing in it.
    assert cluster.service_pids("n1") == service
    assert cluster.events("node-lost") == []
    assert "reincarnat" not in cluster.log("n1")
    everybody = dict.fromkeys(("n1", "n2", "n3"), ("n1", "n2", "n3"))
    cluster.until("everybody to know of everybody", lambda: cluster.members_by_node() == everybody)


def test_five_voters_survive_two_and_three_remain_when_two_votes_are_taken(cluster: GrowingCluster) -> None:
    cluster.begin("n1").grow("n2", "n3", "n4", "n5")
    everybody = dict.fromkeys(cluster.cluster.names, ("n1", "n2", "n3", "n4", "n5"))
    cluster.until("everybody to know of everybody", lambda: cluster.members_by_node() == everybody)
    even = cluster.must_crm("n1", "cluster", "vote", "n4", "off")
    assert "4 voters" in even
    cluster.must_crm("n1", "cluster", "vote", "n5", "off")
    assert cluster.voters() == {"n1", "n2", "n3"}
    assert cluster.online() == {"n1", "n2", "n3", "n4", "n5"}
    for name in ("n4", "n5"):
        cluster.must_crm("n1", "cluster", "vote", name, "on")
    assert len(cluster.voters()) == 5
    for name in ("n1", "n2"):
        cluster.forget(name)
    cluster.until("a leader among the rest", lambda: cluster.status()["dc"] in ("n3", "n4", "n5"))
    assert cluster.crm("n3", "configure", "property", "batch-limit=7").returncode == 0


def test_a_cluster_that_was_set_up_by_files_takes_new_nodes(tmp_path: Path) -> None:
    made = GrowingCluster(tmp_path / "cluster", "n1", "n2", "n3")
    try:
        made.form()
        authority = tmp_path / "cluster" / "setup" / "authority"
        missing = made.crm("n1", "cluster", "invite")
        assert (missing.returncode, "the authority's key is not here" in missing.stderr) == (66, True), missing.stderr
        made.join("n4", "--authority", str(authority), "--learner")
        assert made.voters() == {"n1", "n2", "n3"}
        made.until("everybody to hear n4", lambda: made.online() == {"n1", "n2", "n3", "n4"})
        made.hold("n4 to be online", lambda: made.states()["n4"] == "online", 3)
        made.join("w5", "--authority", str(authority), "--witness")
        made.until("the witness to vote", lambda: made.voters() == {"n1", "n2", "n3", "w5"})
        assert made.members()["w5"]["is_witness"]
        assert made.events("node-lost") == []
    finally:
        made.close()


def test_a_node_leaves_for_good_and_another_takes_its_place(cluster: GrowingCluster) -> None:
    cluster.begin("n1").grow("n2", "n3")
    cluster.with_service()
    holder = cluster.holder()
    assert holder is not None
    asker = next(name for name in ("n1", "n2", "n3") if name != holder and name != cluster.dc())
    printed = cluster.must_crm(asker, "cluster", "remove", holder, "--reason", "worn out")
    assert f"{holder} is removed" in printed
    assert cluster.brain(holder).wait(10) == 67
    assert "was removed from the cluster" in cluster.log(holder)
    cluster.forget(holder)
    assert holder not in cluster.members()
    cluster.until("the service to run on another node", lambda: cluster.holder() not in (None, holder))

    again = cluster.crm(asker, "cluster", "invite", holder)
    assert (again.returncode, "a name never comes back" in again.stderr) == (2, True), again.stderr
    cluster.grow_by(asker, "n4")
    assert len(cluster.voters()) == 3
    assert cluster.holder() is not None
    events = [event["text"] for event in cluster.events("members-changed")]
    assert any(f"{holder} removed" in text and "(worn out)" in text for text in events), events


def test_a_dead_node_is_replaced_under_a_new_name(cluster: GrowingCluster) -> None:
    cluster.begin("n1").grow("n2", "n3")
    cluster.with_service()
    cluster.cluster.power_off("n3")
    printed = cluster.must_crm("n1", "cluster", "remove", "n3")
    assert "n3 is removed" in printed
    assert [event["node"] for event in cluster.events("node-fenced")] == ["n3"]
    cluster.forget("n3")
    cluster.grow("n4")
    assert cluster.voters() == {"n1", "n2", "n4"}


def test_a_node_gets_other_addresses_while_it_runs(cluster: GrowingCluster) -> None:
    cluster.begin("n1").grow("n2", "n3")
    old, new = cluster.cluster.nodes[NodeName("n3")].port, free_ports("127.0.0.1", 1)[0]
    unsafe = cluster.crm("n1", "cluster", "address", "n3", f"127.0.0.1:{new}")
    assert (unsafe.returncode, "keeps none of its addresses" in unsafe.stderr) == (107, True), unsafe.stderr
    cluster.must_crm("n1", "cluster", "address", "n3", f"127.0.0.1:{old},127.0.0.1:{new}")
    cluster.must_crm("n1", "cluster", "address", "n3", f"127.0.0.1:{new}")
    cluster.hold("n3 to be online", lambda: cluster.states()["n3"] == "online", 4)
    cluster.cluster.power_off("n2")
    cluster.until("n2 to be lost", lambda: cluster.states()["n2"] != "online")
    assert cluster.crm("n1", "configure", "property", "batch-limit=7").returncode == 0
    assert cluster.members()["n3"]["addresses"] == [f"127.0.0.1:{new}"]
    file = cluster.cluster.nodes[NodeName("n3")].bundle / "haclusterd.yaml"
    cluster.until("n3 to remember it", lambda: f":{new}" in file.read_text())
