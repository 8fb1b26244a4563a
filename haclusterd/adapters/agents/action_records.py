"""Actions in progress, on disk: by them a later incarnation finds what an earlier one started (safety.md §1).

One small file for each action in the runtime directory: written before the exec, completed with the process id just
after it, blanked when no process is left. A blank file is kept open for the next action: to create and remove files is
what costs most of a monitor where the directory is on a disk. Nothing is synced: the files are valid in this boot only.

Invariant: whatever an earlier incarnation started and still runs is found here, by process id and start time or, when
the daemon died before it could write them, by the marks in the agent's environment. One of them stands in the record
alone, since any user can begin a process with the key of an order. A file is one JSON object, whose first bytes, with
the process, are written last and at once: without them it is no record.
"""

import errno
import json
import os
import secrets
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from haclusterd.adapters.machine.ready_threads import ReadyThreads
from haclusterd.agents.process_table import (
    ORDER_MARK,
    ORDER_SEAL_MARK,
    list_pids,
    look_at,
    look_at_arguments,
    look_at_marks,
)
from haclusterd.model.ids import Incarnation, ResourceId
from haclusterd.model.instants import Instant
from haclusterd.model.records import dataclass, field, replace

SEAL_BYTES = 16


@dataclass(frozen=True, slots=True)
class ActionRecord:
    """One action that was about to start, or has started."""

    key: str
    resource: ResourceId
    action: str
    """The argument that its program got for the action."""
    incarnation: Incarnation
    path: str
    begun: Instant
    deadline: Instant
    pid: int | None = None
    start_time: int | None = None
    seal: str = field(default_factory=lambda: secrets.token_hex(SEAL_BYTES), repr=False)
    """What its program bears beside the key (`marks`); empty in a record of an earlier version, which has none."""

    @property
    def marks(self) -> dict[str, str]:
        """What the environment of its program has to contain, so that it is found."""
        return {ORDER_MARK: self.key, **({ORDER_SEAL_MARK: self.seal} if self.seal else {})}

    def is_borne_by(self, marks: Mapping[str, str]) -> bool:
        """Return whether a process with these marks is its program, or was begun by that."""
        return all(marks.get(name) == value for name, value in self.marks.items())


HEAD_BYTES = 64
"""Bytes for the process in a file; never divided between two pages, so that a write of them is whole or missing."""
BLANK = b" "
SPARE_MAX = 16
"""How many blank files are kept."""


class ActionRecords:
    """The records in one directory. Only `remove_soon` does not wait for the file system. Any thread may call them."""

    def __init__(self, directory: Path, threads: ReadyThreads) -> None:
        self._directory = directory
        self._threads = threads
        self._known: dict[str, ActionRecord] = {}
        """The records on disk, as far as this process wrote or read them."""
        self._files: dict[str, _RecordFile] = {}
        """Files of this process, by the key of the record in them."""
        self._inherited: dict[str, Path] = {}
        """Files of earlier processes, by the key of the record in them."""
        self._spare: list[_RecordFile] = []
        """Blank files of this process."""
        self._names = os.urandom(4).hex()
        """The beginning of the names of its files, which no earlier process used."""
        self._made = 0
        """How many files it has made."""
        self._lock = threading.Lock()
        self._ended: deque[str] = deque()
        """The records that a thread is about to remove."""
        self._is_removing = False
        self._removing = threading.Lock()
        """Guards these two; it is never held during a file system call."""

    def write(self, record: ActionRecord) -> None:
        """Write or replace a record; what completes it with its process is one write. Raises OSError."""
        with self._lock:
            self._known[record.key] = record
            self._put(record)

    def write_again(self) -> int:
        """Write again the records that others removed (an emptied run directory); return how many. Raises OSError."""
        with self._lock:
            missing = [record for key, record in self._known.items() if not self._has_file(key)]
            for record in missing:
                file = self._files.pop(record.key, None)
                if file is not None:
                    file.close()
                self._put(record)
        return len(missing)

    def _has_file(self, key: str) -> bool:
        file = self._files.get(key)
        path = file.path if file is not None else self._inherited.get(key)
        return path is not None and path.exists()

    def _put(self, record: ActionRecord) -> None:
        file = self._files.get(record.key)
        if file is None or file.is_removed():
            if file is not None:
                file.close()
            file = self._files[record.key] = self._take_file()
        self._remove_inherited(record.key)
        file.write(_head(record), _body(record))

    def _take_file(self) -> "_RecordFile":
        while self._spare:
            file = self._spare.pop()
            if not file.is_removed():
                return file
            file.close()
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._made += 1
        return _RecordFile(self._directory / f"{self._names}-{self._made}.json")

    def remove(self, key: str) -> None:
        """Remove a record; an unknown key is ignored."""
        with self._lock:
            self._known.pop(key, None)
            self._remove_inherited(key)
            file = self._files.pop(key, None)
            if file is None:
                return
            is_blank = False
            with suppress(OSError):
                file.blank()
                is_blank = True
            if is_blank and len(self._spare) < SPARE_MAX:
                self._spare.append(file)
            else:
                file.close()
                with suppress(OSError):
                    file.path.unlink()

    def _remove_inherited(self, key: str) -> None:
        path = self._inherited.pop(key, None)
        if path is not None:
            with suppress(OSError):
                path.unlink()

    def remove_soon(self, key: str) -> None:
        """Remove a record without waiting for the file system: for the main loop.

        If the daemon ends before it is removed, its next incarnation finds that the process is gone.
        """
        with self._removing:
            self._ended.append(key)
            is_removing, self._is_removing = self._is_removing, True
        if is_removing:
            return
        try:
            self._threads.do(self._remove_all_ended)
        except RuntimeError:  # No more threads on this machine.
            self._remove_all_ended()

    def _remove_all_ended(self) -> None:
        while True:
            with self._removing:
                if not self._ended:
                    self._is_removing = False
                    return
                key = self._ended.popleft()
            self.remove(key)

    def read_all(self) -> tuple[ActionRecord, ...]:
        """Return all records, ordered by start and key. Incomplete records and blank files are removed.

        Raises OSError when one cannot be read: its action may be running.
        """
        found: dict[str, tuple[ActionRecord, Path]] = {}
        with suppress(FileNotFoundError):
            for path in self._directory.iterdir():
                try:
                    if path.suffix != ".json":
                        raise ValueError("a replacement that was never put in place")
                    record = _from_json(json.loads(_content(path)))
                except (ValueError, KeyError, TypeError):
                    with suppress(OSError):
                        path.unlink()
                else:
                    found[record.key] = record, path
        with self._lock:
            self._known |= {key: record for key, (record, _) in found.items()}
            self._inherited |= {key: path for key, (_, path) in found.items() if key not in self._files}
        return tuple(sorted((record for record, _ in found.values()), key=lambda record: (record.begun, record.key)))


def _content(path: Path) -> bytes:
    """Return what is in a file; empty for one that is gone. Raises OSError, with a remedy."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        return b""
    except OSError as error:
        problem = (
            f"{error.strerror}. This file records an action of an earlier daemon, whose agent may be running: make it "
            "readable, or end that agent (or boot this machine), and remove the file"
        )
        raise OSError(error.errno, problem, str(path)) from error


class _RecordFile:
    """One file of this process. Its methods raise OSError."""

    def __init__(self, path: Path) -> None:
        """Make it, blank."""
        self.path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._body = b""

    def write(self, head: bytes, body: bytes) -> None:
        """Let it hold a record; if only the process is new, by one write in place."""
        body = body.ljust(len(self._body))
        if body != self._body:
            self.blank()
            self._body = BLANK * len(body)  # Should the write fail, it is not taken for done.
            self._put(body, HEAD_BYTES)
            self._body = body
        self._put(head, 0)

    def blank(self) -> None:
        """Let it hold no record."""
        self._put(BLANK, 0)

    def is_removed(self) -> bool:
        """Return whether somebody has removed it."""
        return not os.fstat(self._descriptor).st_nlink

    def close(self) -> None:
        """Use it no more."""
        os.close(self._descriptor)

    def _put(self, data: bytes, at: int) -> None:
        if os.pwrite(self._descriptor, data, at) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def find_process(record: ActionRecord) -> ActionRecord | None:
    """Return the record with the process that runs its action; None when there is no such process.

    Raises OSError when that cannot be found out: for want of descriptors or memory a process looks like none.

    A service inherits its agent's environment, including the marks, so they alone are not enough: the agent is the
    one whose arguments end with its path and action, for a fence agent (which has no resource) with its path; a
    subshell of it has the same, so the oldest is chosen.
    """
    if record.pid is not None and record.start_time is not None:
        return record if _is_there(record.pid, record.start_time) else None
    expected = [record.path, record.action] if record.resource else [record.path]
    found = []
    for pid in list_pids():
        if record.is_borne_by(look_at_marks(pid)) and look_at_arguments(pid)[-len(expected) :] == expected:
            stat = look_at(pid)
            if stat is not None:
                found.append((stat.start_time, pid))
    if not found:
        return None
    start_time, pid = min(found)
    return replace(record, pid=pid, start_time=start_time)


def _is_there(pid: int, start_time: int) -> bool:
    stat = look_at(pid)
    if stat is None or stat.start_time != start_time:
        return False
    return not stat.is_dead or stat.parent == os.getpid()  # A zombie of ours is to be reaped.


def _head(record: ActionRecord) -> bytes:
    pid, start_time = ("null" if number is None else number for number in (record.pid, record.start_time))
    head = f'{{"pid": {pid}, "start_time": {start_time},'.encode().ljust(HEAD_BYTES)
    assert len(head) == HEAD_BYTES
    return head


def _body(record: ActionRecord) -> bytes:
    fields = {
        "key": record.key,
        "resource": record.resource,
        "action": record.action,
        "incarnation": str(record.incarnation),
        "path": record.path,
        "begun": record.begun,
        "deadline": record.deadline,
        "seal": record.seal,
    }
    return json.dumps(fields).encode()[1:]


def _from_json(data: Mapping[str, object]) -> ActionRecord:
    pid, start_time = data["pid"], data["start_time"]
    return ActionRecord(
        key=str(data["key"]),
        resource=ResourceId(str(data["resource"])),
        action=str(data["action"]),
        incarnation=Incarnation.parse(str(data["incarnation"])),
        path=str(data["path"]),
        begun=Instant(_integer(data["begun"])),
        deadline=Instant(_integer(data["deadline"])),
        pid=None if pid is None else _integer(pid),
        start_time=None if start_time is None else _integer(start_time),
        seal=str(data.get("seal", "")),
    )


def _integer(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"not an integer: {value!r}")
    return value
