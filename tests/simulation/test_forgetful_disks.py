"""A node whose disk forgot what it had promised is recognised by its peers, refuses by name, and is replaced."""

import random
from collections.abc import Callable, Sequence

import pytest

from haclusterd.model.ids import NodeName
from haclusterd.simulator.checks.checker import ViolationError
from haclusterd.simulator.clients import Clients
from haclusterd.simulator.faults import disks as faults_of_disks
from haclusterd.simulator.faults.base import Drawn
from haclusterd.simulator.forgetting import Forgetting
from haclusterd.simulator.scenario import Cluster
from tests.simulation.store_guards import ALL_GUARDS, StoreGuards, in_force, without

Kind = Callable[[random.Random, Sequence[NodeName]], Drawn[Cluster]]
KINDS: tuple[Kind, ...] = (
    faults_of_disks.lying_disk,
    faults_of_disks.older_directory,
    faults_of_disks.emptied_directory,
)
MINUTE_MS = 60_000


def forget(kind: Kind, seed: int, guards: StoreGuards = ALL_GUARDS) -> Cluster:
    """Let one disk forget while clients write, and let its node come back."""
    cluster = Cluster(seed).form()
    before = set(cluster.names)
    clients = Clients(cluster)
    clients.begin()
    with in_force(guards):
        drawn = kind(random.Random(seed), cluster.names)
        end = drawn.begin(cluster)
        assert end is not None
        cluster.run_for(drawn.lasts_ms)
        end()
        cluster.run_for(10_000)
        clients.stop()
        cluster.until_settled(2 * MINUTE_MS, "settled with a new member")
    clients.judge()
    assert len(set(cluster.names) - before) == 1, "the machine comes back under another name"
    return cluster


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_disk_that_forgets_is_recognised_and_its_node_replaced(kind: Kind) -> None:
    cluster = forget(kind, 3)
    outcomes = {name for section, name in cluster.coverage.counts if section == "forgetting"}
    assert {"a disk forgets", "recognised by peers", "replaced"} <= outcomes


@pytest.mark.parametrize("kind", KINDS[:2], ids=lambda kind: kind.__name__)
def test_without_what_peers_remember_it_takes_part(kind: Kind) -> None:
    with pytest.raises(ViolationError, match=r"Forgetting: .* joins, and has forgotten"):
        forget(kind, 3, without("older_copies_are_recognised"))


def test_a_disk_whose_node_is_back_with_all_that_it_had_is_honest_from_then_on() -> None:
    """Else it may lose something when power is lost once more, and nobody replaces its node."""
    cluster = Cluster(3).form()
    cluster.run_for(10_000)
    drawn = faults_of_disks.lying_disk(random.Random(3), cluster.names)
    end = drawn.begin(cluster)
    node = Forgetting.of(cluster).node
    assert end is not None
    assert node is not None
    cluster.until(lambda: ("forgetting", "nothing was lost") in cluster.coverage.counts, drawn.lasts_ms, "it is back")
    cluster.until_settled(MINUTE_MS, "settled with the same member")
    for _ in range(3):
        cluster.power_off(node)
        cluster.run_for(1_000)
        cluster.power_on(node)
        cluster.until_settled(MINUTE_MS, "settled after another loss of power")
    end()
