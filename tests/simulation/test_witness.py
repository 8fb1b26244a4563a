"""Two nodes and a witness: it votes, runs nothing, and leads only while nobody else can (docs/design/safety.md §5)."""

import pytest

from haclusterd.cib.commands import RequestLeader
from haclusterd.model.ids import NodeName
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.scenario import Cluster, Setup

WITNESS = NodeName("n3")


def formed(seed: int = 1) -> Cluster:
    cluster = Cluster(seed, Setup(witnesses=1))
    cluster.form(configurations.usual(["n1", "n2"]))
    cluster.run_for(3000)
    return cluster


def test_the_witness_is_never_dc_for_long_and_runs_nothing() -> None:
    for seed in range(1, 5):
        cluster = formed(seed)
        assert cluster.dc() != WITNESS
        assert cluster.truth.services_on(WITNESS) == ()
        cluster.administer(RequestLeader(WITNESS, "scenario"))
        cluster.run_for(12_000)
        assert cluster.dc() != WITNESS


@pytest.mark.parametrize(("lost", "left"), [("n1", "n2"), ("n2", "n1")])
def test_with_a_witness_the_loss_of_either_node_is_recovered_by_the_other(lost: str, left: str) -> None:
    cluster = formed()
    cluster.switch.reboot_brings_back = False
    cluster.power_off(lost)
    cluster.until(lambda: cluster.runs_once(*configurations.SERVICES), 8000, "all recovered")
    cluster.run_for(3000)
    assert {cluster.node_of(service) for service in configurations.SERVICES} == {left}
    assert cluster.dc() == left


def test_a_witness_leads_while_no_other_voter_can_and_no_longer() -> None:
    cluster = formed()
    cluster.switch.reboot_brings_back = False
    for name in ("n1", "n2"):
        cluster.pause_brain(name)
    cluster.run_for(4000)
    cluster.resume_brain("n1")
    cluster.resume_brain("n2")
    cluster.until(lambda: cluster.dc() != WITNESS and cluster.all_online(), 20_000, "a node is DC again")
    cluster.run_for(5000)
    assert cluster.dc() != WITNESS


def test_the_loss_of_the_witness_costs_nothing() -> None:
    cluster = formed()
    homes = {service: cluster.node_of(service) for service in configurations.SERVICES}
    cluster.power_off(WITNESS)
    cluster.run_for(10_000)
    assert {service: cluster.node_of(service) for service in configurations.SERVICES} == homes
