"""The journal: log entries, term, vote and commit index, append-only.

File (little endian): header = magic 8 bytes, format u16, length of names u16, sealed length u64, names (cluster uuid,
NUL, node name), crc32 u32 of all before it. Then frames = mark 4 bytes, body length u32, crc32 u32 of length and body,
body. A body is a row of records = type u8, length u32, content:

    BASE      index u64, term u64               the log begins after this entry (first record of the first frame)
    ENTRY     index u64, term u64, command
    TRUNCATE  index u64                         this entry and all after it are no longer in the log
    VOTE      term u64, node name or nothing    current term and vote in it
    COMMIT    index u64                         a hint: entries up to here were committed
    PADDING   zeros                             without meaning
    PROMISE   term u64, index u64, node name    what another member showed that it holds (promises.py)
    DIGEST    index u64, contested u8, SHA-256  this node's newest digest, and whether no majority has agreed since

The header with the first frame, and every later frame, fill whole pages of 4096 bytes. The kernel and most devices
write no less than a page, and a power loss may corrupt the whole page that is being written: so a write can damage no
frame but its own.

One frame is one group commit: a frame is written only after the one before it was synced. So a damaged frame that is
followed by a valid one, or is within the sealed length (the result of an atomic rewrite), was once complete and
acknowledged: the node must not start. A damaged frame at the end is a torn write that was never acknowledged, and is
cut off.

Format 1 had no padding; it is read, and written as format 2 by the first start.

Invariant: after `open_journal` memory holds a prefix of what was appended, including all that was synced, and the file
was rewritten and synced as a new one: after a failed fsync, reading and syncing the old file proves nothing. It must
never repair.
"""

import struct
import zlib
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple, overload

from haclusterd.model.ids import NodeName
from haclusterd.model.records import dataclass, field
from haclusterd.ports.files import Files
from haclusterd.ports.store import StoreDamagedError, StoreRefusedError
from haclusterd.raft.identity import REJOIN

JOURNAL_NAME = "journal"
MAGIC = b"HACLJRNL"
FORMAT = 2
OLDEST_FORMAT = 1
PAGE_BYTES: Final = 4096
FRAME_MARK = b"\xf5HJ\x9a"
FIRST_INDEX: Final = 1
"""Every log begins after a base entry with this index and term 0."""

NO_OPERATION = b"\x01"
"""Command bytes of an entry without effect, as the library writes it."""

BASE, ENTRY, TRUNCATE, VOTE, COMMIT, PADDING, PROMISE, DIGEST = 1, 2, 3, 4, 5, 6, 7, 8

_PREFIX = struct.Struct("<8sHHQ")
_FRAME = struct.Struct("<4sII")
_RECORD = struct.Struct("<BI")
_PAIR = struct.Struct("<QQ")
_ONE = struct.Struct("<Q")
_DIGEST = struct.Struct("<QB32s")

LogEntry = tuple[bytes, int, int]
"""Command, index, term: the library's form of an entry."""


class KeptDigest(NamedTuple):
    """What this node knew about its own digest and those of its peers (digests.py)."""

    entry: int = 0
    """The newest agreed index at which it has a digest; 0: none."""
    is_contested: bool = False
    """Whether the replicas differed, and no majority has agreed since."""
    digest: bytes = b""


@dataclass(slots=True)
class JournalContent:
    """The content of a journal file."""

    entries: list[LogEntry] = field(default_factory=list)
    """The entries, with the base first."""
    term: int = 0
    vote: NodeName | None = None
    commit: int = FIRST_INDEX
    promises: dict[NodeName, tuple[int, int]] = field(default_factory=dict)
    """By other member: the newest term and the newest committed entry that it showed."""
    digest: KeptDigest = KeptDigest()


class Journal:
    """The log in memory, and the records that are not on disk yet.

    Memory changes at once; `begin_write` returns the write that makes everything so far durable, and `written` says
    that it is done. Only one write is under way at a time. The camel-case methods are the interface that the library
    calls.
    """

    def __init__(self, files: Files, header_names: bytes, content: JournalContent) -> None:
        """Use `open_journal` or `create_journal`."""
        self._files = files
        self._names = header_names
        self._content = content
        self._records: list[bytes] = []
        self._is_rewrite_due = False
        self._is_commit_dirty = False
        self._dirty_promises: set[NodeName] = set()
        self._is_hint_due = False
        self._sequence = 0
        self._vote_sequence = 0
        self._synced_sequence = 0
        self._synced_index = content.entries[-1][1]
        self._writing: tuple[int, int] | None = None
        self.size_bytes = 0
        """Total bytes of commands in memory."""
        self._count_bytes()

    @property
    def base(self) -> tuple[int, int]:
        """Index and term of the entry before the first one in the log."""
        return self._content.entries[0][1], self._content.entries[0][2]

    @property
    def last_index(self) -> int:
        """Index of the newest entry."""
        return self._content.entries[-1][1]

    @property
    def last_term(self) -> int:
        """Term of the newest entry."""
        return self._content.entries[-1][2]

    @property
    def synced_index(self) -> int:
        """The index up to which this log is on stable storage."""
        return self._synced_index

    @property
    def begun_index(self) -> int:
        """The index up to which this log is on stable storage, or being written there."""
        return self._synced_index if self._writing is None else max(self._synced_index, self._writing[1])

    @property
    def is_vote_synced(self) -> bool:
        """Whether the present term and vote are on stable storage."""
        return self._vote_sequence <= self._synced_sequence

    def term_at(self, index: int) -> int | None:
        """Return the term of the entry at `index`; None when the log does not hold it."""
        entries = self._content.entries
        position = index - entries[0][1]
        return entries[position][2] if 0 <= position < len(entries) else None

    def entries_from(self, index: int) -> list[LogEntry]:
        """Return the entries from `index` (after the base) on."""
        entries = self._content.entries
        return entries[max(1, index - entries[0][1]) :]

    def compact(self, index: int) -> None:
        """Drop entries up to `index`, which a durable snapshot covers; the next write rewrites the file."""
        position = index - self._content.entries[0][1]
        if position <= 0:
            return
        term = self._content.entries[position][2]
        self._content.entries[: position + 1] = [(NO_OPERATION, index, term)]
        self._synced_index = max(self._synced_index, index)
        self._is_rewrite_due = True
        self._count_bytes()

    def install(self, index: int, term: int) -> None:
        """Let the log begin after a durable snapshot from the leader (Raft §7).

        Entries after the snapshot are kept if this log holds the snapshot's own last entry.
        """
        if self.term_at(index) == term:
            self.compact(index)
            return
        self._content.entries[:] = [(NO_OPERATION, index, term)]
        self._synced_index = index
        if self._writing is not None:
            self._writing = (self._writing[0], min(self._writing[1], index))
        self._is_rewrite_due = True
        self._count_bytes()

    def begin_write(self) -> Callable[[], None] | None:
        """Return the write that makes everything so far durable; None when there is nothing, or one is under way.

        The returned function touches only the file and may run on another thread; it raises OSError.
        """
        if self._writing is not None:
            return None
        write: Callable[[], None]
        if self._is_rewrite_due:
            image = encode_journal(self._names, self._content)
            write = _Rewrite(self._files, image)
        elif self._records or self._is_hint_due:
            if self._is_commit_dirty:
                self._records.append(_record(COMMIT, _ONE.pack(self._content.commit)))
            promises = self._content.promises
            self._records += [_promise(name, promises[name]) for name in sorted(self._dirty_promises)]
            write = _Append(self._files, _padded_frame(b"".join(self._records)))
        else:
            return None
        self._records.clear()
        self._dirty_promises.clear()
        self._is_rewrite_due = self._is_commit_dirty = self._is_hint_due = False
        self._writing = (self._sequence, self.last_index)
        return write

    def written(self) -> None:
        """Note that the write under way is on stable storage."""
        assert self._writing is not None
        self._synced_sequence, index = self._writing
        self._synced_index = max(self._synced_index, index)
        self._writing = None

    def add(self, command: bytes, index: int, term: int) -> None:
        """Append an entry."""
        assert index == self.last_index + 1, (index, self.last_index)
        self._content.entries.append((command, index, term))
        self.size_bytes += len(command)
        self._put(ENTRY, _PAIR.pack(index, term) + command)

    @property
    def promises(self) -> Mapping[NodeName, tuple[int, int]]:
        """By other member: the newest term and the newest committed entry that it showed."""
        return self._content.promises

    def note_promise(self, node: NodeName, term: int, index: int) -> None:
        """Remember what another member showed; it is written with the next records, or after a second."""
        known = self._content.promises.get(node, (0, 0))
        newest = (max(known[0], term), max(known[1], index))
        if newest != known:
            self._content.promises[node] = newest
            self._dirty_promises.add(node)

    @property
    def digest(self) -> KeptDigest:
        """The newest recorded digest."""
        return self._content.digest

    def note_digest(self, kept: KeptDigest) -> None:
        """Remember how this node's state compares; it is written with the next records."""
        if kept != self._content.digest:
            self._content.digest = kept
            self._put(DIGEST, _DIGEST.pack(*kept))

    def forget_promises(self, members: Collection[NodeName]) -> None:
        """Drop what was remembered of nodes that are no longer members: their names never come back."""
        for node in [each for each in self._content.promises if each not in members]:
            del self._content.promises[node]
            self._dirty_promises.discard(node)

    def truncate(self, index: int) -> list[LogEntry]:
        """Remove the entry at `index` and all after it; return them."""
        position = index - self._content.entries[0][1]
        assert position > 0
        removed = self._content.entries[position:]
        if removed:
            del self._content.entries[position:]
            self.size_bytes -= sum(len(entry[0]) for entry in removed)
            self._synced_index = min(self._synced_index, index - 1)
            if self._writing is not None:
                self._writing = (self._writing[0], min(self._writing[1], index - 1))
            self._put(TRUNCATE, _ONE.pack(index))
        return removed

    def _put(self, kind: int, content: bytes) -> None:
        self._sequence += 1
        self._records.append(_record(kind, content))

    def _count_bytes(self) -> None:
        self.size_bytes = sum(len(entry[0]) for entry in self._content.entries)

    # What the library calls (pysyncobj.journal.Journal).

    @overload
    def __getitem__(self, position: int) -> LogEntry: ...

    @overload
    def __getitem__(self, position: slice) -> list[LogEntry]: ...

    def __getitem__(self, position: int | slice) -> LogEntry | list[LogEntry]:
        return self._content.entries[position]

    def __len__(self) -> int:
        return len(self._content.entries)

    def setCurrentTerm(self, term: int, votedForNodeId: NodeName | None) -> None:  # noqa: N802, N803 (the library's name)
        """Set term and vote; no message that shows them may leave before `is_vote_synced`."""
        self._content.term, self._content.vote = term, votedForNodeId
        self._put(VOTE, _ONE.pack(term) + (votedForNodeId or "").encode())
        self._vote_sequence = self._sequence

    def getCurrentTerm(self) -> int:  # noqa: N802 (the library's name)
        """Return the current term."""
        return self._content.term

    def getVotedForNodeId(self) -> NodeName | None:  # noqa: N802 (the library's name)
        """Return the node that this node voted for in the current term; None: it did not vote."""
        return self._content.vote

    def setRaftCommitIndex(self, raftCommitIndex: int) -> None:  # noqa: N802, N803 (the library's name)
        """Note the commit index; it is written with the next records, or after a second."""
        if raftCommitIndex != self._content.commit:
            self._content.commit = raftCommitIndex
            self._is_commit_dirty = True

    def getRaftCommitIndex(self) -> int:  # noqa: N802 (the library's name)
        """Return the commit index."""
        return self._content.commit

    def onOneSecondTimer(self) -> None:  # noqa: N802 (the library's name)
        """Have a changed commit index and promises written even if nothing else is."""
        self._is_hint_due = self._is_commit_dirty or bool(self._dirty_promises)


@dataclass(frozen=True, slots=True)
class _Append:
    files: Files
    frame: bytes

    def __call__(self) -> None:
        self.files.append(JOURNAL_NAME, self.frame)
        self.files.sync(JOURNAL_NAME)


@dataclass(frozen=True, slots=True)
class _Rewrite:
    files: Files
    image: bytes

    def __call__(self) -> None:
        self.files.replace(JOURNAL_NAME, self.image)


def create_journal(files: Files, cluster: str, node: NodeName, term: int = 0) -> None:
    """Write the empty journal of a new member, durably; its first term is above `term`. Raises OSError."""
    content = JournalContent(entries=[(NO_OPERATION, FIRST_INDEX, 0)], term=term)
    files.replace(JOURNAL_NAME, encode_journal(_names(cluster, node), content))


def open_journal(files: Files, cluster: str, node: NodeName, snapshot: tuple[int, int] | None) -> Journal:
    """Read the journal and write what is kept of it into a new file, durably: from then on that counts.

    What an earlier process wrote and did not sync may be in memory alone, even if an fsync succeeds now: after a failed
    one, Linux marks the pages as clean. Raises OSError, and what `read_journal` raises.
    """
    content = read_journal(files, cluster, node, snapshot)
    names = _names(cluster, node)
    files.replace(JOURNAL_NAME, encode_journal(names, content))
    return Journal(files, names, content)


def read_journal(files: Files, cluster: str, node: NodeName, snapshot: tuple[int, int] | None) -> JournalContent:
    """Read the journal and align it with the snapshot's index and term, without writing.

    A torn last frame is left out. Raises StoreRefusedError for another's journal, StoreDamagedError for an
    untrustworthy one.
    """
    data = files.read(JOURNAL_NAME)
    path = files.describe(JOURNAL_NAME)
    assert data is not None
    content, _ = decode_journal(data, _names(cluster, node), path)
    _align(content, snapshot, path)
    return content


def read_entries(files: Files, cluster: str, node: NodeName) -> list[bytes]:
    """Return the commands of a journal that a running store may be writing, without changing it.

    Raises StoreRefusedError for another's journal, StoreDamagedError for an untrustworthy one.
    """
    data = files.read(JOURNAL_NAME)
    if data is None:
        return []
    content, _ = decode_journal(data, _names(cluster, node), files.describe(JOURNAL_NAME))
    return [command for command, _, _ in content.entries]


def encode_journal(names: bytes, content: JournalContent) -> bytes:
    """Return a complete file, sealed to its end."""
    base = content.entries[0]
    records = [_record(BASE, _PAIR.pack(base[1], base[2]))]
    records += [_record(ENTRY, _PAIR.pack(index, term) + command) for command, index, term in content.entries[1:]]
    records.append(_record(VOTE, _ONE.pack(content.term) + (content.vote or "").encode()))
    records.append(_record(COMMIT, _ONE.pack(content.commit)))
    records += [_promise(name, content.promises[name]) for name in sorted(content.promises)]
    if content.digest != KeptDigest():
        records.append(_record(DIGEST, _DIGEST.pack(*content.digest)))
    header_bytes = _PREFIX.size + len(names) + 4
    frame = _padded_frame(b"".join(records), behind=header_bytes)
    header = _PREFIX.pack(MAGIC, FORMAT, len(names), header_bytes + len(frame)) + names
    return header + zlib.crc32(header).to_bytes(4, "little") + frame


def decode_journal(data: bytes, names: bytes, path: str) -> tuple[JournalContent, int]:
    """Return the content, and how many bytes are valid; raises StoreDamagedError, StoreRefusedError."""
    offset, sealed = _read_header(data, names, path)
    content = JournalContent()
    while offset < len(data):
        body = _read_frame(data, offset)
        if body is None:
            if offset < sealed or _has_frame_after(data, offset):
                raise _damaged(path, offset, "what was synced here is gone")
            return content, offset
        try:
            _fold(content, body)
        except (ValueError, struct.error) as error:
            raise _damaged(path, offset, str(error)) from None
        offset += _FRAME.size + len(body)
    if offset < sealed:
        raise _damaged(path, offset, f"the file ends before its {sealed} sealed bytes")
    return content, offset


def _read_header(data: bytes, names: bytes, path: str) -> tuple[int, int]:
    """Return the offset of the first frame, and the sealed length."""
    if len(data) < _PREFIX.size:
        raise _damaged(path, 0, "no header")
    magic, version, length, sealed = _PREFIX.unpack_from(data)
    end = _PREFIX.size + length
    if magic != MAGIC or len(data) < end + 4 or zlib.crc32(data[:end]) != int.from_bytes(data[end : end + 4], "little"):
        raise _damaged(path, 0, "broken header")
    if not OLDEST_FORMAT <= version <= FORMAT:
        raise StoreRefusedError(
            f"{path}: format {version} is not known to this version, which reads formats {OLDEST_FORMAT} to {FORMAT}"
        )
    if data[_PREFIX.size : end] != names:
        owner = data[_PREFIX.size : end].decode(errors="replace").replace("\0", ", node ")
        raise StoreRefusedError(f"{path} belongs to another: cluster {owner}")
    return end + 4, sealed


def _read_frame(data: bytes, offset: int) -> bytes | None:
    if len(data) - offset < _FRAME.size:
        return None
    mark, length, crc = _FRAME.unpack_from(data, offset)
    start = offset + _FRAME.size
    if mark != FRAME_MARK or length == 0 or start + length > len(data):
        return None
    body = data[start : start + length]
    return body if _frame_crc(body) == crc else None


def _has_frame_after(data: bytes, offset: int) -> bool:
    """Return whether a valid frame begins anywhere after `offset`."""
    found = data.find(FRAME_MARK, offset + 1)
    while found >= 0:
        if _read_frame(data, found) is not None:
            return True
        found = data.find(FRAME_MARK, found + 1)
    return False


def _fold(content: JournalContent, body: bytes) -> None:
    offset = 0
    while offset < len(body):
        kind, length = _RECORD.unpack_from(body, offset)
        start = offset + _RECORD.size
        offset = start + length
        if offset > len(body):
            raise ValueError("a record is longer than its frame")
        if kind == PROMISE:
            term, index = _PAIR.unpack_from(body, start)
            content.promises[NodeName(body[start + _PAIR.size : offset].decode())] = (term, index)
        elif kind == DIGEST:
            index, is_contested, digest = _DIGEST.unpack(body[start:offset])
            content.digest = KeptDigest(index, bool(is_contested), digest)
        elif kind != PADDING:
            _fold_record(content, kind, body[start:offset])


def _fold_record(content: JournalContent, kind: int, record: bytes) -> None:
    entries = content.entries
    if (kind == BASE) != (not entries):
        raise ValueError("the log's base is not its first record")
    if kind == BASE:
        index, term = _PAIR.unpack(record)
        entries.append((NO_OPERATION, index, term))
        content.commit = index
    elif kind == ENTRY:
        index, term = _PAIR.unpack_from(record)
        if index != entries[-1][1] + 1 or term < entries[-1][2]:
            raise ValueError(f"entry {index} of term {term} does not follow entry {entries[-1][1]}")
        entries.append((record[_PAIR.size :], index, term))
    elif kind == TRUNCATE:
        (index,) = _ONE.unpack(record)
        if not entries[0][1] < index <= entries[-1][1]:
            raise ValueError(f"truncation at {index} outside of the log")
        del entries[index - entries[0][1] :]
    elif kind == VOTE:
        (term,) = _ONE.unpack_from(record)
        if term < content.term:
            raise ValueError(f"term {term} after term {content.term}")
        content.term, content.vote = term, NodeName(record[_ONE.size :].decode()) or None
    elif kind == COMMIT:
        (content.commit,) = _ONE.unpack(record)
    else:
        raise ValueError(f"record type {kind} is not known")


def _align(content: JournalContent, snapshot: tuple[int, int] | None, path: str) -> None:
    """Make the log begin at or before the snapshot's entry."""
    entries = content.entries
    base_index, base_term = entries[0][1], entries[0][2]
    if snapshot is None:
        if base_index != FIRST_INDEX:
            raise _damaged(path, 0, f"the log begins after entry {base_index}, and there is no snapshot")
    else:
        index, term = snapshot
        if base_index > index or (base_index == index and base_term != term):
            raise _damaged(path, 0, f"the log begins after entry {base_index}, the snapshot ends at entry {index}")
        position = index - base_index
        if position >= len(entries) or entries[position][2] != term:
            # A snapshot from the leader became durable, and the node stopped before the journal followed.
            entries[:] = [(NO_OPERATION, index, term)]
        content.commit = max(content.commit, index)
    content.commit = min(content.commit, entries[-1][1])


def _names(cluster: str, node: NodeName) -> bytes:
    return f"{cluster}\0{node}".encode()


def _record(kind: int, content: bytes) -> bytes:
    return _RECORD.pack(kind, len(content)) + content


def _frame(body: bytes) -> bytes:
    return _FRAME.pack(FRAME_MARK, len(body), _frame_crc(body)) + body


def _promise(name: NodeName, promise: tuple[int, int]) -> bytes:
    return _record(PROMISE, _PAIR.pack(*promise) + name.encode())


def _padded_frame(body: bytes, behind: int = 0) -> bytes:
    """Return a frame padded to the end of a page, if it begins `behind` bytes after the start of one."""
    size = behind + _FRAME.size + len(body)
    padding = -size % PAGE_BYTES
    if 0 < padding < _RECORD.size:
        padding += PAGE_BYTES
    if padding:
        body += _record(PADDING, bytes(padding - _RECORD.size))
    return _frame(body)


def _frame_crc(body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(len(body).to_bytes(4, "little")))


def _damaged(path: str, offset: int, what: str) -> StoreDamagedError:
    problem = f"{path}: damaged at offset {offset}: {what}"
    return StoreDamagedError(f"{problem}. What this node promised is unknown. {REJOIN}")
