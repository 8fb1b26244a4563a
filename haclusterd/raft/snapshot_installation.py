"""Takes the leader's snapshot on a node that lacks entries which the leader has compacted: receives, writes, reads it.

The core replaces its state by what was read, and answers the leader meanwhile. Ordinary entries may arrive at the same
time; a snapshot that they overtake is dropped.

Invariant: nothing is read before it is checked and durable, one snapshot is under way at a time, and one that ends
before what this node has applied replaces neither the file nor the state.
"""

from collections.abc import Callable

from haclusterd.model.ids import NodeName
from haclusterd.model.records import dataclass
from haclusterd.model.steps import Steps
from haclusterd.ports.store import StateMachine
from haclusterd.raft.snapshot import Snapshot, SnapshotFile
from haclusterd.raft.snapshot_transfer import SnapshotReceiver


@dataclass(slots=True)
class _Incoming:
    """A complete snapshot from the leader."""

    peer: NodeName
    index: int
    image: bytes
    snapshot: Snapshot | None = None
    """The decoded snapshot, once it was checked and is durable."""


@dataclass(frozen=True, slots=True)
class Installable:
    """A snapshot that is durable here, and the state that was read from it."""

    peer: NodeName
    snapshot: Snapshot
    state: object


class UnreadableSnapshotError(Exception):
    """A snapshot that is durable here holds a state that cannot be read; the message says whose it is, and why."""


class SnapshotInstallation:
    """The snapshot that is on its way into this node, if any."""

    def __init__(self, file: SnapshotFile, machine: StateMachine) -> None:
        """`file` is replaced by what is received, `machine` reads it."""
        self._file = file
        self._machine = machine
        self._receiver = SnapshotReceiver()
        self._incoming: _Incoming | None = None
        self._reading: Steps[object] | None = None
        """Reading of the incoming snapshot, once it is durable."""

    @property
    def is_under_way(self) -> bool:
        """Whether a whole snapshot has arrived that is not installed yet."""
        return self._incoming is not None

    @property
    def is_reading(self) -> bool:
        """Whether `read_on` has a step to take."""
        return self._reading is not None

    def receive(self, peer: NodeName, index: int, total: int, offset: int, data: bytes) -> None:
        """Add a chunk of the snapshot of `total` bytes that ends at entry `index`."""
        if self._incoming is None:
            image = self._receiver.accept(peer, index, total, offset, data)
            if image is not None:
                self._incoming = _Incoming(peer, index, image)

    def held_bytes(self, index: int, total: int) -> int:
        """Return how much of a snapshot this node holds, which is what the leader is answered."""
        is_complete = self._incoming is not None and self._incoming.index == index
        return total if is_complete else self._receiver.offset

    def write(self, applied_index: int, done: Callable[[object], None]) -> None:
        """Check and write what has arrived, once the file is not being written; `done` gets the result."""
        incoming = self._incoming
        if incoming is None or incoming.snapshot is not None or self._file.is_being_written:
            return
        if incoming.index <= applied_index:
            # Ordinary entries were faster.
            self._incoming = None
            return
        self._file.replace(incoming.image, incoming.index, done)

    def written(self, result: object) -> str:
        """Take the result of a write that did not fail; return why the snapshot is refused, empty when it is not."""
        assert self._incoming is not None
        if isinstance(result, Snapshot):
            self._incoming.snapshot = result
            return ""
        peer, self._incoming = self._incoming.peer, None
        return f"snapshot from {peer} refused: {result}"

    def begin_reading(self, applied_index: int, *, has_room: bool) -> bool:
        """Start to read the snapshot once it is durable; return whether this call did.

        `has_room` says whether the main loop could take the outcome now.
        """
        if self._incoming is None or self._incoming.snapshot is None:
            return False
        snapshot = self._incoming.snapshot
        self._file.index = max(self._file.index, snapshot.index)
        if snapshot.index <= applied_index:
            self._drop()
        elif self._reading is None and has_room:
            self._reading = self._machine.read(snapshot.payload)
            return True
        return False

    def read_on(self) -> Installable | None:
        """Take one step, of a few milliseconds; return the state after the last one, which ends the installation.

        Raises UnreadableSnapshotError.
        """
        assert self._reading is not None
        assert self._incoming is not None
        assert self._incoming.snapshot is not None
        try:
            next(self._reading)
        except StopIteration as end:
            installable = Installable(self._incoming.peer, self._incoming.snapshot, end.value)
            self._drop()
            return installable
        except ValueError as error:
            raise UnreadableSnapshotError(f"the snapshot of {self._incoming.peer} cannot be read: {error}") from error
        return None

    def _drop(self) -> None:
        self._incoming = self._reading = None
