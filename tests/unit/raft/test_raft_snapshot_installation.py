"""The leader's snapshot on its way into a node: checked, written and read, unless ordinary entries are faster."""

from collections.abc import Callable

import pytest

from haclusterd.model.ids import NodeName, Term
from haclusterd.raft.snapshot import SNAPSHOT_NAME, Snapshot, SnapshotFile, encode_snapshot
from haclusterd.raft.snapshot_installation import SnapshotInstallation, UnreadableSnapshotError
from haclusterd.raft.worker import Worker
from tests.simulation.store_world import CLUSTER, ListMachine, SimulatedDisk

N2 = NodeName("n2")
INDEX = 20


class LaterWorker(Worker):
    """Does its jobs when it is asked to."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], object], Callable[[object], None]]] = []

    def run(self, work: Callable[[], object], done: Callable[[object], None]) -> None:
        self.jobs.append((work, done))

    def do_all(self) -> None:
        while self.jobs:
            work, done = self.jobs.pop(0)
            done(work())


class Subject:
    """An installation with its disk, and what it answered."""

    def __init__(self) -> None:
        self.disk, self.worker = SimulatedDisk(), LaterWorker()
        self.file = SnapshotFile(self.disk, CLUSTER, self.worker)
        self.installation = SnapshotInstallation(self.file, ListMachine())
        self.complaints: list[str] = []

    def receive(self, payload: bytes, index: int = INDEX) -> None:
        """Receive a snapshot that ends at `index`, announced as one that ends at INDEX."""
        image = encode_snapshot(Snapshot(index, Term(3), payload), CLUSTER)
        self.installation.receive(N2, INDEX, len(image), 0, image)

    def write(self, applied_index: int = 0) -> None:
        self.installation.write(applied_index, lambda result: self.complaints.append(self.installation.written(result)))


@pytest.fixture
def subject() -> Subject:
    return Subject()


def payload() -> bytes:
    machine = ListMachine()
    machine.appended(b"a")
    machine.apply(2, Term(1), b"a")
    return machine.snapshot()()


def test_it_is_read_once_it_is_on_the_disk(subject: Subject) -> None:
    subject.receive(payload())
    subject.write()
    assert not subject.installation.begin_reading(0, has_room=True)
    subject.worker.do_all()
    assert (subject.complaints, subject.disk.read(SNAPSHOT_NAME) is not None) == ([""], True)
    assert not subject.installation.begin_reading(0, has_room=False)
    assert subject.installation.begin_reading(0, has_room=True)
    installable = subject.installation.read_on()
    assert installable is not None
    assert (installable.peer, installable.snapshot.index, subject.file.index) == (N2, INDEX, INDEX)
    assert not subject.installation.is_under_way


def test_what_ordinary_entries_have_overtaken_is_not_written(subject: Subject) -> None:
    subject.receive(payload())
    subject.write(applied_index=INDEX)
    assert subject.worker.jobs == []
    assert not subject.installation.is_under_way


def test_what_ordinary_entries_have_overtaken_is_not_read(subject: Subject) -> None:
    subject.receive(payload())
    subject.write()
    subject.worker.do_all()
    assert not subject.installation.begin_reading(INDEX, has_room=True)
    assert not subject.installation.is_under_way


def test_it_waits_while_this_node_writes_its_own(subject: Subject) -> None:
    subject.file.take(10, Term(2), payload, lambda _: None)
    subject.receive(payload())
    subject.write()
    assert len(subject.worker.jobs) == 1
    subject.worker.do_all()
    subject.write()
    assert len(subject.worker.jobs) == 1


def test_one_that_ends_at_another_entry_than_announced_is_refused_and_not_written(subject: Subject) -> None:
    subject.receive(payload(), index=INDEX + 1)
    subject.write()
    subject.worker.do_all()
    assert subject.complaints == [f"snapshot from n2 refused: it ends at entry {INDEX + 1}, not at {INDEX}"]
    assert subject.disk.read(SNAPSHOT_NAME) is None
    assert not subject.installation.is_under_way


def test_a_state_that_cannot_be_read_is_an_error_that_names_the_peer(subject: Subject) -> None:
    subject.receive(b"\xc1")
    subject.write()
    subject.worker.do_all()
    assert subject.installation.begin_reading(0, has_room=True)
    with pytest.raises(UnreadableSnapshotError, match="the snapshot of n2 cannot be read"):
        subject.installation.read_on()
