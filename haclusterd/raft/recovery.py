"""Reading a stopped node's log, and starting a log for a node of a recovered cluster.

Agents of the lost cluster may still be at work where the new one starts; they are known by their orders' keys. No key
recurs: each has a part of its cluster's uuid, and a recovered cluster continues the terms.
"""

from typing import Final

from haclusterd.model.ids import NodeName, Term
from haclusterd.model.records import dataclass
from haclusterd.ports.files import Files
from haclusterd.ports.store import StoreRefusedError
from haclusterd.raft.frames import NO_OP, VOTERS
from haclusterd.raft.identity import require_identity
from haclusterd.raft.journal import FIRST_INDEX, create_journal, read_journal
from haclusterd.raft.snapshot import Snapshot, load_snapshot, write_snapshot

INITIAL_INDEX: Final = FIRST_INDEX + 1
"""Above the base of an empty log: a node that starts without the state lacks an entry, and is sent the snapshot."""


@dataclass(frozen=True, slots=True)
class LogRead:
    """The content of one node's log, committed or not."""

    snapshot: bytes | None
    entries: tuple[tuple[bytes, int, Term, bool], ...]
    """Entries after the snapshot: each with its index, its term, and whether it changes the voters."""
    uncommitted: int
    """Number of entries after the newest one that this node knows to be committed."""
    term: Term
    """The newest term that the node has seen."""


def read_log(files: Files, cluster: str, node: NodeName) -> LogRead:
    """Read a stopped node's data directory; raises StoreRefusedError, StoreDamagedError, OSError."""
    try:
        files.lock()
    except BlockingIOError:
        raise StoreRefusedError(f"{files.describe('lock')}: the daemon runs: stop it first") from None
    require_identity(files, cluster, node)
    if files.read("journal") is None:
        raise StoreRefusedError(f"{files.describe('journal')} is missing: this node never took part in the cluster")
    snapshot = load_snapshot(files, cluster)
    journal = read_journal(files, cluster, node, None if snapshot is None else (snapshot.index, int(snapshot.term)))
    first = 1 if snapshot is None else snapshot.index + 1
    entries = tuple(
        (command[1:], index, Term(term), command[0] == VOTERS)
        for command, index, term in journal.entries[1:]
        if index >= first and command[0] != NO_OP
    )
    uncommitted = max(0, journal.entries[-1][1] - journal.commit)
    return LogRead(None if snapshot is None else snapshot.payload, entries, uncommitted, Term(journal.term))


def begin_log(files: Files, cluster: str, node: NodeName, state: bytes, term: Term) -> None:
    """Write a state, as of `INITIAL_INDEX`, and a term into an empty data directory; raises OSError."""
    create_journal(files, cluster, node, term)
    write_snapshot(files, Snapshot(INITIAL_INDEX, Term(0), state), cluster)
