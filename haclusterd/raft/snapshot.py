"""The snapshot file: the whole state as of one committed entry.

Layout (little endian): magic 8 bytes, format u16, cluster uuid 36 bytes, index u64, term u64, payload length u64,
sha256 32 bytes over all of these and the payload, payload. The same bytes are sent to a voter that lags too far behind.

Invariant: what `load_snapshot` and `decode_snapshot` return is bit for bit what was written; anything else is an error,
never an empty state. At most one job replaces the file at a time.
"""

import hashlib
import struct
from collections.abc import Callable

from haclusterd.model.ids import Term
from haclusterd.model.records import dataclass
from haclusterd.ports.files import Files
from haclusterd.ports.store import StoreDamagedError
from haclusterd.raft.identity import REJOIN
from haclusterd.raft.journal import FIRST_INDEX
from haclusterd.raft.settings import MAX_SNAPSHOT_BYTES
from haclusterd.raft.worker import Worker, catching

SNAPSHOT_NAME = "snapshot"
MAGIC = b"HACLSNAP"
FORMAT = 1

_FIELDS = struct.Struct("<8sH36sQQQ")
_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state after the entry at `index`, which was appended in `term`."""

    index: int
    term: Term
    payload: bytes


def encode_snapshot(snapshot: Snapshot, cluster: str) -> bytes:
    """Return the file's content."""
    fields = _FIELDS.pack(MAGIC, FORMAT, cluster.encode(), snapshot.index, snapshot.term, len(snapshot.payload))
    return b"".join((fields, _digest(fields, snapshot.payload), snapshot.payload))


def decode_snapshot(data: bytes, cluster: str) -> Snapshot:
    """Read what `encode_snapshot` wrote; raises ValueError with the reason for anything else."""
    start = _FIELDS.size + _DIGEST_BYTES
    if len(data) < start:
        raise ValueError(f"{len(data)} bytes are too few for a header")
    magic, version, owner, index, term, length = _FIELDS.unpack_from(data)
    if magic != MAGIC or version != FORMAT:
        raise ValueError("not a snapshot of a known format")
    if len(data) != start + length:
        raise ValueError(f"payload of {len(data) - start} bytes, {length} expected")
    payload = data[start:]
    if _digest(data[: _FIELDS.size], payload) != data[_FIELDS.size : start]:
        raise ValueError("checksum mismatch")
    if owner.rstrip(b"\0") != cluster.encode():
        raise ValueError("snapshot of another cluster")
    return Snapshot(index, Term(term), payload)


def index_of(data: bytes) -> int:
    """Return the index that a snapshot states, unchecked."""
    index: int = _FIELDS.unpack_from(data)[3]
    return index


def load_snapshot(files: Files, cluster: str) -> Snapshot | None:
    """Return the snapshot on disk, None when there is none; raises StoreDamagedError."""
    data = files.read(SNAPSHOT_NAME)
    if data is None:
        return None
    try:
        return decode_snapshot(data, cluster)
    except ValueError as error:
        raise StoreDamagedError(f"{files.describe(SNAPSHOT_NAME)}: offset 0: {error}. {REJOIN}") from None


def write_snapshot(files: Files, snapshot: Snapshot, cluster: str) -> None:
    """Replace the snapshot on disk, durably; raises OSError."""
    data = encode_snapshot(snapshot, cluster)
    if len(data) > MAX_SNAPSHOT_BYTES:
        raise OSError(f"snapshot of {len(data)} bytes is above the limit of {MAX_SNAPSHOT_BYTES}")
    files.replace(SNAPSHOT_NAME, data)


def _digest(fields: bytes, payload: bytes) -> bytes:
    digest = hashlib.sha256(fields)
    digest.update(payload)
    return digest.digest()


class SnapshotFile:
    """This node's snapshot file while the node runs: what the Raft thread knows of it, and the jobs that replace it."""

    def __init__(self, files: Files, cluster: str, worker: Worker) -> None:
        """Nothing is read or written here."""
        self._files = files
        self._cluster = cluster
        self._worker = worker
        self.index = FIRST_INDEX
        """The newest entry that a durable snapshot is known to contain; the file itself may be newer."""
        self.is_being_written = False

    def take(self, index: int, term: Term, encode: Callable[[], bytes], done: Callable[[object], None]) -> None:
        """Write a snapshot of this node's state; `done` gets the payload's SHA-256, or an OSError."""

        def work() -> bytes:
            payload = encode()
            write_snapshot(self._files, Snapshot(index, term, payload), self._cluster)
            return hashlib.sha256(payload).digest()

        self._begin(work, done)

    def replace(self, image: bytes, index: int, done: Callable[[object], None]) -> None:
        """Write another node's snapshot, if it is one, of this cluster, that ends at `index`.

        `done` gets the decoded snapshot, an OSError, or what is wrong with it: a ValueError or a text.
        """

        def work() -> object:
            try:
                snapshot = decode_snapshot(image, self._cluster)
            except ValueError as error:
                return error
            if snapshot.index != index:
                return f"it ends at entry {snapshot.index}, not at {index}"
            self._files.replace(SNAPSHOT_NAME, image)
            return snapshot

        self._begin(work, done)

    def _begin(self, work: Callable[[], object], done: Callable[[object], None]) -> None:
        assert not self.is_being_written
        self.is_being_written = True

        def ended(result: object) -> None:
            self.is_being_written = False
            done(result)

        self._worker.run(catching(work), ended)
