"""A copy of a machine stays outside while the first one lives, and afterwards, once it was recognised."""

import pytest

from haclusterd.machines.copied_nodes import CopiedNodes
from haclusterd.model.cluster import NodeState
from haclusterd.simulator.checks.checkers import ViolationError
from haclusterd.simulator.copies import Copies
from haclusterd.simulator.hosts.hosts import Host
from haclusterd.simulator.scenario import Cluster

MINUTE_MS = 60_000


def start_a_copy(cluster: Cluster) -> Host:
    """Start a copy of the last machine beside it."""
    copies = Copies.of(cluster)
    copy = copies.make(0.99)
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
    index, copy = cluster.cib.index, start_a_copy(cluster)
    cluster.until(lambda: is_recognised(cluster, copy), 10_000, "the copy recognised")
    cluster.run_for(MINUTE_MS)
    assert cluster.cib.index == index, "nobody was lost, and nothing moved"
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
    with pytest.raises(ViolationError, match=r"Copies: n3-copy-1 joins as n3, whose boot .* goes on"):
        cluster.run_for(MINUTE_MS)
