"""A log with which a node of another cluster begins."""

from haclusterd.model.ids import NodeName, Term
from haclusterd.raft.journal import read_journal
from haclusterd.raft.recovery import INITIAL_INDEX, begin_log
from haclusterd.raft.snapshot import Snapshot, load_snapshot
from tests.simulation.store_world import CLUSTER, SimulatedDisk


def test_it_goes_on_behind_the_term_and_with_the_state_of_the_lost_one() -> None:
    disk, node = SimulatedDisk(), NodeName("n1")
    begin_log(disk, CLUSTER, node, b"state", Term(7))
    assert load_snapshot(disk, CLUSTER) == Snapshot(INITIAL_INDEX, Term(0), b"state")
    assert read_journal(disk, CLUSTER, node, (INITIAL_INDEX, 0)).term == 7
