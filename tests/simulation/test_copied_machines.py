"""A copy of a machine stays outside while the first one lives, and afterwards, once it was recognised."""

import pytest

from haclusterd.machines.copied_nodes import CopiedNodes
from haclusterd.model.cluster import NodeState
from haclusterd.model.ids import NodeName
from haclusterd.model.machine_marks import MachineMark
from haclusterd.raft import core
from haclusterd.simulator.brain import BrainProcess
from haclusterd.simulator.checks.checker import ViolationError
from haclusterd.simulator.copies import MachineCopies
from haclusterd.simulator.hosts.hosts import Host
from haclusterd.simulator.scenario import Cluster

MINUTE_MS = 60_000


def start_a_copy(cluster: Cluster, *, is_whole: bool = True) -> Host:
    """Start a copy of the last machine beside it, or of its disk alone."""
    copies = MachineCopies.of(cluster)
    copy = copies.make(0.99, is_whole=is_whole)
    assert copy is not None
    copies.begin(copy)
    return copy


def is_recognised(cluster: Cluster, copy: Host) -> bool:
    """Tell whether the status of all others names it."""
    runtimes = [cluster.brain_of(name).runtime for name in cluster.others(copy.node)]
    warnings = [" ".join(each.copied_nodes.warnings(each.ports.clock.now())) for each in runtimes]
    return all(f"a copy of {copy.node} is kept out" in text for text in warnings)


def test_a_copy_beside_its_machine_is_kept_out_and_everything_runs_on() -> None:
    cluster = Cluster(3).form()
    before, copy = cluster.cib, start_a_copy(cluster)
    cluster.until(lambda: is_recognised(cluster, copy), 10_000, "the copy recognised")
    cluster.run_for(MINUTE_MS)
    assert cluster.cib.status.nodes == before.status.nodes, "nobody was lost, and nothing moved"
    assert cluster.cib.status.controller == before.status.controller
    assert cluster.is_settled()


def test_a_copy_that_was_recognised_stays_outside_when_its_machine_is_fenced() -> None:
    cluster = Cluster(4).form()
    cluster.switch.reboot_brings_back = False
    copy = start_a_copy(cluster)
    cluster.until(lambda: is_recognised(cluster, copy), 10_000, "the copy recognised")
    cluster.power_off(copy.node)
    cluster.until(lambda: cluster.state(copy.node) is NodeState.FENCED, 20_000, "its machine fenced")
    cluster.run_for(MINUTE_MS)
    assert cluster.state(copy.node) is NodeState.FENCED
    cluster.power_on(copy.node)
    cluster.until_settled(MINUTE_MS, "settled with the first one")


def test_without_the_question_who_lives_a_copy_passes_for_its_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CopiedNodes, "objection", lambda *_, **__: "")
    cluster = Cluster(3).form()
    start_a_copy(cluster)
    with pytest.raises(ViolationError, match=r"MachineCopies: n3-copy-1 joins as n3, whose boot .* goes on"):
        cluster.run_for(MINUTE_MS)


def refusal_of(cluster: Cluster, host: Host) -> str:
    """Wait until the daemon of a host has refused to start; return why."""

    def is_refused() -> bool:
        process = host.brain.process
        return isinstance(process, BrainProcess) and bool(process.refusal)

    cluster.until(is_refused, 10_000, "the daemon refuses to start")
    process = host.brain.process
    assert isinstance(process, BrainProcess)
    return process.refusal


def cut_off(cluster: Cluster, node: NodeName) -> None:
    for other in cluster.others(node):
        cluster.network.cut(node, other)
        cluster.network.cut(other, node)


def test_a_copied_disk_does_not_start_while_nobody_hears_its_machine() -> None:
    cluster = Cluster(3).form()
    n3 = cluster.names[-1]
    cut_off(cluster, n3)
    cluster.run_for(1400)
    copy = start_a_copy(cluster, is_whole=False)
    assert "belongs to the machine with DMI product_uuid n3" in refusal_of(cluster, copy)
    cluster.run_for(MINUTE_MS)
    cluster.network.restore_all()
    cluster.until_settled(MINUTE_MS, "settled with the first one")
    assert not MachineCopies.of(cluster).excuse


def test_without_the_question_whose_data_it_is_a_copied_disk_passes_for_its_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(core, "require_machine", lambda *_: None)
    cluster = Cluster(3).form()
    cut_off(cluster, cluster.names[-1])
    cluster.run_for(1400)
    start_a_copy(cluster, is_whole=False)
    with pytest.raises(ViolationError, match="n3-copy-1 talks as n3, with the data of another machine"):
        cluster.run_for(MINUTE_MS)


def test_a_node_in_other_hardware_comes_back_when_a_person_says_that_it_is_the_node() -> None:
    cluster = Cluster(3).form()
    n3 = cluster.names[-1]
    cluster.switch.reboot_brings_back = False
    cluster.power_off(n3)
    cluster.until(lambda: cluster.state(n3) is NodeState.FENCED, 20_000, "n3 fenced")
    host = cluster.hosts[n3]
    host.marks = (MachineMark("DMI product_uuid", "spare"),)
    cluster.power_on(n3)
    assert "crm cluster this-is n3" in refusal_of(cluster, host)
    cluster.say_it_is(host)
    cluster.until_settled(MINUTE_MS, "settled with n3")
    cluster.power_off(n3)
    cluster.power_on(n3)
    cluster.until_settled(MINUTE_MS, "settled after a boot of the same hardware")


def put_in_its_place(cluster: Cluster) -> Host:
    """Let a copy of the last machine join in its place, and switch it off again; return the first one."""
    cluster.run_for(10_000)
    copies = MachineCopies.of(cluster)
    copy = copies.make(0.99, is_whole=True)
    assert copy is not None
    first = cluster.hosts[copy.node]
    first.power_off()
    copies.begin(copy)
    cluster.until(lambda: not copy.is_powered, 60_000, "the copy has joined")
    copies.end(copy)
    return first


def test_a_machine_is_replaced_that_does_not_know_what_its_copy_has_promised() -> None:
    cluster = Cluster(3).form()
    first = put_in_its_place(cluster)
    first.power_on()
    cluster.until(lambda: first.name not in cluster.names, 60_000, "replaced")
    assert not MachineCopies.of(cluster).excuse


def test_nothing_is_demanded_while_a_peer_is_away_that_may_remember_what_a_copy_has_promised() -> None:
    """An entry that only the copy and that peer have is lost when the first one votes (seed 801125)."""
    cluster = Cluster(3).form()
    first = put_in_its_place(cluster)
    cluster.isolate(cluster.names[0])
    first.power_on()
    cluster.run_for(200)
    assert "a peer was not there when n3 came back" in MachineCopies.of(cluster).excuse
