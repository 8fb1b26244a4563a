"""Damage to the store's real files, and kills inside their writing: nothing may ever be changed silently.

Small data directories (identity, journal, snapshot) are written through the adapter that daemons use. Then

* every file is cut at every byte, and every bit of it is flipped: a start from it must be refused, or must find a state
  that was synced, and of a flipped bit only the one before the last write (which cannot be distinguished from a torn
  one);
* a process that writes, compacts and takes snapshots is killed at each of its system calls on files, before it, after
  it, and in the middle of a write: the next start must find what was reported as synced, or what was being written.

Ends with one line `RESULT ...`, and exit code 1 on any violation.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from haclusterd.adapters.machine.files_directory import FilesDirectory
from haclusterd.model.ids import NodeName, Term
from haclusterd.model.records import dataclass, field
from haclusterd.ports.store import StoreDamagedError, StoreRefusedError
from haclusterd.raft.identity import create_identity, mark_started, require_identity
from haclusterd.raft.journal import JOURNAL_NAME, PAGE_BYTES, Journal, create_journal, open_journal
from haclusterd.raft.snapshot import Snapshot, load_snapshot, write_snapshot

CLUSTER = "11111111-2222-3333-4444-555555555555"
N1, N2 = NodeName("n1"), NodeName("n2")
KILLED = 9
CALLS = ("write", "fsync", "fdatasync", "rename", "replace", "ftruncate", "open", "unlink")
"""Functions of `os` at which the writing process is killed."""

State = tuple[object, ...]
"""What a start finds: base and entries, term, vote, the snapshot's index and payload."""


@dataclass
class Counts:
    truncations: int = 0
    flips: int = 0
    kills: int = 0
    refused: int = 0
    torn: int = 0
    """Starts from which the last write was missing."""
    harmless: int = 0
    """Starts that found everything all the same."""
    silent_changes: int = 0
    examples: list[str] = field(default_factory=list)

    def blame(self, what: str) -> None:
        self.silent_changes += 1
        self.examples.append(what)


def load(directory: Path) -> State:
    """Start from a directory as a daemon does; raises StoreDamagedError or StoreRefusedError."""
    files = FilesDirectory(directory)
    try:
        identity = require_identity(files, CLUSTER, N1)
        if files.read(JOURNAL_NAME) is None:
            raise StoreRefusedError("no journal")
        snapshot = load_snapshot(files, CLUSTER)
        ending = None if snapshot is None else (snapshot.index, int(snapshot.term))
        journal = open_journal(files, CLUSTER, N1, ending)
        mark_started(files, identity)
        return state_of(journal, snapshot)
    finally:
        files.close()


def state_of(journal: Journal, snapshot: Snapshot | None) -> State:
    synced = None if snapshot is None else (snapshot.index, snapshot.payload)
    return tuple(journal[:]), journal.getCurrentTerm(), journal.getVotedForNodeId(), synced


@dataclass
class Writing:
    """A node's life on disk: each step is synced before the next begins, and acknowledged."""

    files: FilesDirectory
    synced: Callable[[State], None]
    journal: Journal
    snapshot: Snapshot | None = None

    @staticmethod
    def begin(directory: Path, synced: Callable[[State], None]) -> "Writing":
        files = FilesDirectory(directory)
        create_identity(files, CLUSTER, N1)
        create_journal(files, CLUSTER, N1)
        mark_started(files, require_identity(files, CLUSTER, N1))
        writing = Writing(files, synced, open_journal(files, CLUSTER, N1, None))
        writing.flush()
        return writing

    def flush(self) -> None:
        write = self.journal.begin_write()
        if write is not None:
            write()
            self.journal.written()
        self.synced(state_of(self.journal, self.snapshot))

    def add(self, count: int, term: int) -> None:
        for _ in range(count):
            index = self.journal.last_index + 1
            self.journal.add(b"\0command %d" % index, index, term)
        self.flush()

    def vote(self, term: int, node: NodeName | None) -> None:
        self.journal.setCurrentTerm(term, node)
        self.flush()

    def take_snapshot(self, index: int) -> None:
        """Make the snapshot durable, then let the journal forget."""
        self.snapshot = Snapshot(index, Term(self.journal.term_at(index) or 0), b"state at %d" % index)
        write_snapshot(self.files, self.snapshot, CLUSTER)
        self.synced(state_of(self.journal, self.snapshot))
        self.journal.compact(index - 1)
        self.flush()


def first_half(writing: Writing) -> None:
    writing.vote(1, N2)
    writing.add(3, 1)
    writing.journal.truncate(4)
    writing.flush()
    writing.vote(2, None)
    writing.add(2, 2)


def second_half(writing: Writing) -> None:
    writing.take_snapshot(4)
    writing.add(2, 2)
    writing.vote(3, N1)
    writing.add(1, 3)


# Damage at rest.


def damaged_at_rest(work: Path, step: int) -> Counts:
    """Damage each file of two directories: a journal alone, and one that was rewritten beside a snapshot."""
    counts = Counts()
    for name, has_snapshot in (("plain", False), ("compacted", True)):
        pristine = work / name
        states: list[State] = []
        writing = Writing.begin(pristine, states.append)
        first_half(writing)
        if has_snapshot:
            second_half(writing)
        writing.files.close()
        copied = work / f"{name}.copied"
        shutil.copytree(pristine, copied)
        if load(copied) != states[-1]:
            counts.blame(f"{name}: not even the undamaged directory is read")
        _damage_each_file(pristine, work / f"{name}.damaged", states, step, counts)
    return counts


def _damage_each_file(pristine: Path, damaged: Path, states: Sequence[State], step: int, counts: Counts) -> None:
    originals = {path.name: path.read_bytes() for path in pristine.iterdir() if path.is_file()}
    shutil.copytree(pristine, damaged)
    for name, data in sorted(originals.items()):
        if not data:
            continue
        for size in _telling(name, len(data), step):
            _restore(damaged, originals, name, data[:size])
            counts.truncations += 1
            allowed = states if name == JOURNAL_NAME else ()
            _judge(damaged, allowed, f"{pristine.name}/{name} cut at {size}", states[-1], counts)
        for place in _telling(name, len(data), 1):
            for bit in range(-8 * place % step, 8, step):
                flipped = bytearray(data)
                flipped[place] ^= 1 << bit
                _restore(damaged, originals, name, bytes(flipped))
                counts.flips += 1
                allowed = states[-2:-1] if name == JOURNAL_NAME else ()
                _judge(damaged, allowed, f"{pristine.name}/{name} byte {place} bit {bit}", states[-1], counts)


def _telling(name: str, size: int, step: int) -> list[int]:
    """Return each n-th byte of a file; of the journal's padding, which fills its pages, only some."""
    places = range(0, size, step)
    return [place for place in places if name != JOURNAL_NAME or place % PAGE_BYTES < 256 or place % 61 == 0]


def _restore(directory: Path, originals: dict[str, bytes], name: str, data: bytes) -> None:
    for each, original in originals.items():
        (directory / each).write_bytes(data if each == name else original)


def _judge(directory: Path, allowed: Sequence[State], what: str, whole: State, counts: Counts) -> None:
    try:
        files = FilesDirectory(directory)
        is_started = require_identity(files, CLUSTER, N1).is_started
        files.close()
        found = load(directory)
    except (StoreDamagedError, StoreRefusedError):
        counts.refused += 1
        return
    if found == whole and is_started:
        counts.harmless += 1
    elif found in allowed and is_started:
        counts.torn += 1
    else:
        counts.blame(f"{what}: {found}")


# Kills inside the writing.


def killed_inside(work: Path, step: int) -> Counts:
    """Kill the writing process at every call, in each of the three ways, until it comes through."""
    counts = Counts()
    for way in ("before", "after", "middle"):
        call = 0
        while True:
            directory = work / f"killed.{way}.{call}"
            is_killed, synced = _write_until(directory, call, way)
            if not is_killed:
                break
            counts.kills += 1
            _judge_killed(directory, synced, f"killed {way} call {call}", counts)
            shutil.rmtree(directory, ignore_errors=True)
            call += step
    return counts


def _write_until(directory: Path, call: int, way: str) -> tuple[bool, int]:
    """Write in a child that is killed at its n-th call; return whether it was, and how many states it acknowledged."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _die_at(call, way, writing)
        life = Writing.begin(directory, lambda _: _tell(writing))
        first_half(life)
        second_half(life)
        os._exit(0)
    os.close(writing)
    synced = 0
    while data := os.read(reading, 4096):
        synced += len(data)
    os.close(reading)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, KILLED):
        raise RuntimeError(f"the writing process ended with {code}")
    return code == KILLED, synced


_write = os.write


def _tell(pipe: int) -> None:
    _write(pipe, b".")


def _die_at(call: int, way: str, pipe: int) -> None:
    """Let this process end at its n-th call on a file."""
    left = [call]

    def counted(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def replaced(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] >= 0:
                return original(*arguments, **named)
            if way == "after":
                original(*arguments, **named)
            elif way == "middle" and name == "write":
                original(arguments[0], arguments[1][: len(arguments[1]) // 2])
            os._exit(KILLED)

        return replaced

    for name in CALLS:
        setattr(os, name, counted(name, getattr(os, name)))


def _judge_killed(directory: Path, synced: int, what: str, counts: Counts) -> None:
    """What was acknowledged must be there; what was being written may be, whole or not at all."""
    try:
        found = load(directory)
    except StoreRefusedError:
        # Before the first state was acknowledged, set-up itself had not ended.
        if synced:
            counts.blame(f"{what}: refused, though {synced} states were synced")
        else:
            counts.refused += 1
        return
    except StoreDamagedError as error:
        counts.blame(f"{what}: {error}")
        return
    states = list(_states(directory.with_name("reference")))
    # Between a snapshot and the compaction of the journal both old and new base are whole states.
    allowed = [*states[max(0, synced - 1) : synced + 1], *_halfway(states, synced)]
    if found not in allowed:
        counts.blame(f"{what}, after {synced} states: {found}")


def _states(directory: Path) -> Iterator[State]:
    """Return every state of the whole life, in order."""
    if not _remembered:
        writing = Writing.begin(directory, _remembered.append)
        first_half(writing)
        second_half(writing)
        writing.files.close()
    return iter(_remembered)


_remembered: list[State] = []


def _halfway(states: Sequence[State], synced: int) -> list[State]:
    """Return the states in which the next snapshot is durable and acknowledged by nobody."""
    if not 0 < synced < len(states):
        return []
    return [(*states[synced - 1][:3], states[synced][3])]


def main() -> int:
    """Damage, kill, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step", type=int, default=1, help="try only each n-th byte, bit and call")
    parser.add_argument("--directory", type=Path, help="on whose file system (default: that of temporary files)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="haclusterd-fuzz-journal-", dir=options.directory) as directory:
        rest = damaged_at_rest(Path(directory), options.step)
        kills = killed_inside(Path(directory), options.step)
    for example in (*rest.examples, *kills.examples)[:10]:
        print(f"VIOLATION {example}")
    silent = rest.silent_changes + kills.silent_changes
    print(
        f"RESULT truncations={rest.truncations} flips={rest.flips} kills={kills.kills} "
        f"refused={rest.refused + kills.refused} torn={rest.torn} harmless={rest.harmless} silent_changes={silent}"
    )
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
