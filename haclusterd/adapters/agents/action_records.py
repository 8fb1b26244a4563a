"""Actions in progress, on disk: by them a later incarnation finds what an earlier one started (safety.md §1).

One small file for each action in the runtime directory: written before the exec, completed with the process id just
after it, removed when no process is left. Nothing is synced: the files are valid in this boot only.

Invariant: whatever an earlier incarnation started and still runs is found here, by process id and start time or, when
the daemon died before it could write them, by the mark in the agent's environment.
"""

import hashlib
import json
import os
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from haclusterd.adapters.machine.ready_threads import ReadyThreads
from haclusterd.agents.process_table import (
    ORDER_MARK,
    is_running,
    list_pids,
    read_arguments,
    read_marks,
    read_stat,
)
from haclusterd.model.ids import Incarnation, ResourceId
from haclusterd.model.instants import Instant
from haclusterd.model.records import dataclass, replace


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


class ActionRecords:
    """The records in one directory. Only `remove_soon` does not wait for the file system. Any thread may call them."""

    def __init__(self, directory: Path, threads: ReadyThreads) -> None:
        self._directory = directory
        self._threads = threads
        self._known: dict[str, ActionRecord] = {}
        """The records on disk, as far as this process wrote or read them."""
        self._lock = threading.Lock()
        self._ended: deque[str] = deque()
        """The records that a thread is about to remove."""
        self._is_removing = False
        self._removing = threading.Lock()
        """Guards these two; it is never held during a file system call."""

    def write(self, record: ActionRecord) -> None:
        """Write or replace a record, atomically. Raises OSError."""
        with self._lock:
            self._known[record.key] = record
            self._put(record)

    def write_again(self) -> int:
        """Write again the records that others removed (an emptied run directory); return how many. Raises OSError."""
        with self._lock:
            missing = [record for key, record in self._known.items() if not self._path(key).exists()]
            for record in missing:
                self._put(record)
        return len(missing)

    def _put(self, record: ActionRecord) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(record.key)
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(_to_json(record)))
        os.replace(temporary, path)

    def remove(self, key: str) -> None:
        """Remove a record; an unknown key is ignored."""
        with self._lock, suppress(OSError):
            self._known.pop(key, None)
            self._path(key).unlink()

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
        """Return all records, ordered by start and key. Incomplete records are removed."""
        records = []
        with suppress(FileNotFoundError):
            for path in self._directory.iterdir():
                try:
                    if path.suffix != ".json":
                        raise ValueError("a replacement that was never put in place")
                    records.append(_from_json(json.loads(path.read_text())))
                except (OSError, ValueError, KeyError, TypeError):
                    with suppress(OSError):
                        path.unlink()
        with self._lock:
            self._known |= {record.key: record for record in records}
        return tuple(sorted(records, key=lambda record: (record.begun, record.key)))

    def _path(self, key: str) -> Path:
        return self._directory / (hashlib.sha256(key.encode()).hexdigest()[:32] + ".json")


def find_process(record: ActionRecord) -> ActionRecord | None:
    """Return the record with the process that runs its action; None when there is no such process.

    A service inherits its agent's environment, including the mark, so the mark alone is not enough: the agent is the
    one whose arguments end with its path and action, for a fence agent (which has no resource) with its path; a
    subshell of it has the same, so the oldest is chosen.
    """
    if record.pid is not None and record.start_time is not None:
        return record if _is_there(record.pid, record.start_time) else None
    expected = [record.path, record.action] if record.resource else [record.path]
    found = []
    for pid in list_pids():
        if read_marks(pid).get(ORDER_MARK) == record.key and read_arguments(pid)[-len(expected) :] == expected:
            stat = read_stat(pid)
            if stat is not None:
                found.append((stat.start_time, pid))
    if not found:
        return None
    start_time, pid = min(found)
    return replace(record, pid=pid, start_time=start_time)


def _is_there(pid: int, start_time: int) -> bool:
    stat = read_stat(pid)
    if stat is not None and stat.start_time == start_time and stat.parent == os.getpid():
        return True  # It may be a zombie; it is ours to reap.
    return is_running(pid, start_time)


def _to_json(record: ActionRecord) -> dict[str, object]:
    return {
        "key": record.key,
        "resource": record.resource,
        "action": record.action,
        "incarnation": str(record.incarnation),
        "path": record.path,
        "begun": record.begun,
        "deadline": record.deadline,
        "pid": record.pid,
        "start_time": record.start_time,
    }


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
    )


def _integer(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"not an integer: {value!r}")
    return value
