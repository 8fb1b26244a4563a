"""A copy of a machine stays outside while the first one lives, and afterwards, once it was recognised."""

from itertools import permutations

import pytest

from haclusterd.machines.copied_nodes import CopiedNodes
from haclusterd.model.cluster import NodeState
from haclusterd.simulator import configurations
from haclusterd.simulator.checkers import Violation
from haclusterd.simulator.copies import Copies
from haclusterd.simulator.hosts import Host
from haclusterd.simulator.scenario import Cluster, Shape

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
    told = [" ".join(each.copied_nodes.warnings(each.ports.clock.now())) for each in runtimes]
    return all(f"a copy of {copy.node} is kept out" in text for text in told)


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
    with pytest.raises(Violation, match=r"Copies: n3-copy-1 joins as n3, whose boot .* goes on"):
        cluster.run_for(MINUTE_MS)


# -- a voter that hears too few of the others -------------------------------------------------------------------------


def with_a_witness() -> Cluster:
    """Return two nodes and a witness, of which nothing that is fenced comes back by itself."""
    cluster = Cluster(5, Shape(witnesses=1)).form(configurations.usual(["n1", "n2"]))
    cluster.until_settled(MINUTE_MS, "settled")
    cluster.switch.reboot_brings_back = False
    return cluster


@pytest.mark.parametrize(("first", "second"), list(permutations(("n1", "n2", "n3"), 2)))
def test_after_a_power_loss_of_all_any_two_begin_without_the_third(first: str, second: str) -> None:
    cluster = with_a_witness()
    for name in ("n1", "n2", "n3"):
        cluster.power_off(name)
    cluster.run_for(5000)
    cluster.power_on(first)
    cluster.run_for(5000)
    cluster.power_on(second)
    cluster.until(lambda: cluster.runs_once(*configurations.SERVICES), MINUTE_MS, "everything runs again")


def test_a_witness_that_both_nodes_have_left_at_once_waits_for_the_second_one() -> None:
    cluster = with_a_witness()
    for name in ("n1", "n2"):
        cluster.power_off(name)
    cluster.run_for(10_000)
    cluster.power_on("n1")
    cluster.run_for(20_000)
    witness, node = (cluster.brain_of(name).runtime for name in ("n3", "n1"))
    (warning,) = witness.copied_nodes.warnings(witness.ports.clock.now())
    assert "n1 came in another boot, and n2 cannot be heard" in warning
    assert "n3 does not let this node in" in " ".join(node.copied_nodes.warnings(node.ports.clock.now()))
    cluster.power_on("n2")
    cluster.until_settled(MINUTE_MS, "settled")


def test_a_witness_that_is_restarted_goes_on_with_the_first_one() -> None:
    cluster = with_a_witness()
    for name in ("n1", "n2"):
        cluster.power_off(name)
    cluster.run_for(10_000)
    cluster.power_on("n1")
    cluster.run_for(20_000)
    cluster.power_off("n3")
    cluster.power_on("n3")
    cluster.until(lambda: cluster.runs_once(*configurations.SERVICES), MINUTE_MS, "everything runs on n1")


def test_a_node_that_boots_after_the_other_was_lost_is_let_in_by_the_witness_alone() -> None:
    cluster = with_a_witness()
    cluster.power_off("n2")
    cluster.until(lambda: cluster.state("n2") is NodeState.FENCED, 20_000, "n2 is fenced")
    cluster.power_off("n1")
    cluster.run_for(5000)
    cluster.power_on("n1")
    cluster.until(lambda: cluster.runs_once(*configurations.SERVICES), MINUTE_MS, "everything runs on n1")
