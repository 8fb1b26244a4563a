"""What /proc says of processes: identity, family and marks.

A process is identified by its id together with its start time, because ids are used again. This room only reads; it
must never kill, and it imports nothing but `os`, so that agents which use it start fast.
"""

from __future__ import annotations

import os
from _collections_abc import Iterator, Mapping  # Loaded with `os`; `collections.abc` would load more.

ORDER_MARK = "HACLUSTERD_ORDER"
"""In the environment of an agent: the key of the action that it runs. Services must not carry it."""
NODE_MARK = "HACLUSTERD_NODE"
"""In the environment of agents and services: the node they run for. Several nodes may share one kernel."""
LOCAL_CLUSTER_MARK = "HACLUSTERD_LOCAL_CLUSTER"
"""In the environment of everything that belongs to a node of a local development cluster: which cluster."""
ORDER_SEAL_MARK = "HACLUSTERD_ORDER_SEAL"
"""In the environment of an agent: a word that is in the record of its action too, and that nobody can guess."""
INSTANCE_MARK = "OCF_RESOURCE_INSTANCE"
SEAL_MARK = "HACLUSTERD_SEAL"
"""In the environment of agents and services: what this node's daemon alone knows of their instance (`is_genuine`)."""
SEAL_BYTES = 16
PART_BYTES = 64 * 1024


class ProcessStat:
    """One line of /proc/PID/stat (proc(5)), its fields from the state on; `start_time` is in ticks since boot."""

    __slots__ = ("group", "parent", "pid", "session", "start_time", "state")

    def __init__(self, pid: int, fields: list[bytes]) -> None:
        self.pid = pid
        self.state = fields[0].decode()
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.start_time = int(fields[19])

    @property
    def is_dead(self) -> bool:
        """Tell whether it is a zombie or on its way out: it runs no code any more."""
        return self.state in "ZXx"


def read_stat(pid: int) -> ProcessStat | None:
    """Return what the kernel says of a process; None when there is none."""
    return _stat_of(pid, read_file(f"/proc/{pid}/stat"))


def look_at(pid: int) -> ProcessStat | None:
    """Return the same; raise OSError when it cannot be found out, for want of descriptors or memory."""
    return _stat_of(pid, read_certainly(f"/proc/{pid}/stat"))


def look_at_threads(pid: int) -> list[ProcessStat]:
    """Return the same of each thread of a process; empty when there is none. Raises OSError as `look_at` does."""
    try:
        threads = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except (FileNotFoundError, ProcessLookupError):
        return []
    stats = (_stat_of(thread, read_certainly(f"/proc/{pid}/task/{thread}/stat")) for thread in threads)
    return [stat for stat in stats if stat is not None]


def _stat_of(pid: int, data: bytes) -> ProcessStat | None:
    return ProcessStat(pid, data[data.rindex(b")") + 2 :].split()) if data else None


def is_running(pid: int, start_time: int) -> bool:
    """Tell whether that very process still runs code."""
    stat = read_stat(pid)
    return stat is not None and stat.start_time == start_time and not stat.is_dead


class Marks(Mapping[str, str]):
    """An environment, in which only what is asked for is looked up.

    Any user may begin thousands of processes with a hundred thousand variables each. To read all of them would take an
    agent longer than its stop may take.
    """

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        """`data`: NAME=VALUE, each ended by a zero byte; of two with one name the first counts."""
        self._data = b"\0" + data

    def __getitem__(self, name: str) -> str:
        start = f"\0{name}=".encode()
        at = self._data.find(start)
        if at < 0:
            raise KeyError(name)
        at += len(start)
        end = self._data.find(b"\0", at)
        return self._data[at : end if end >= 0 else None].decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str]:
        names = (item.partition(b"=") for item in self._data.split(b"\0"))
        return iter(dict.fromkeys(name.decode("utf-8", "replace") for name, equals, _ in names if equals))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def read_marks(pid: int) -> Marks:
    """Return the environment a process was given; empty for one that is gone, a zombie, or not ours to read."""
    return Marks(read_environment(pid))


def look_at_marks(pid: int) -> Marks:
    """Return the same; raise OSError when it cannot be found out, for want of descriptors or memory."""
    return Marks(_read_ours(f"/proc/{pid}/environ"))


def is_genuine(marks: Mapping[str, str], start_time: int, seal: str) -> bool:
    """Tell whether the daemon of this node has given a process its marks, and not some user of this machine.

    `seal` is that of the instance: a word, `@`, and since when (in ticks since boot) all that is begun has it. What
    began before is believed. Without a seal, as where a person calls an agent, all are.
    """
    word, _, since = seal.rpartition("@")
    has_it = marks.get(SEAL_MARK, "").rpartition("@")[0] == word
    return not seal or has_it or (since.isdigit() and start_time < int(since))


def seal_of(instance: str, key: bytes, since: int) -> str:
    """Return the seal of an instance, as `is_genuine` reads it."""
    import hashlib  # It takes milliseconds to import; agents compute none.

    digest = hashlib.blake2b(instance.encode(), key=key, digest_size=SEAL_BYTES)
    return f"{digest.hexdigest()}@{since}"


def read_environment(pid: int) -> bytes:
    """Return the same as the kernel has it: NAME=VALUE, each ended by a zero byte."""
    return read_file(f"/proc/{pid}/environ")


def read_arguments(pid: int) -> list[str]:
    """Return a process's argument vector; empty for one that is gone."""
    return _arguments_in(read_file(f"/proc/{pid}/cmdline"))


def look_at_arguments(pid: int) -> list[str]:
    """Return the same; raise OSError when it cannot be found out, for want of descriptors or memory."""
    return _arguments_in(_read_ours(f"/proc/{pid}/cmdline"))


def _arguments_in(data: bytes) -> list[str]:
    return [item.decode("utf-8", "surrogateescape") for item in data.split(b"\0")[:-1]]


def list_pids() -> list[int]:
    """Return the ids of all processes visible here."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def boot_id() -> str:
    """Return the kernel's boot id."""
    return read_file("/proc/sys/kernel/random/boot_id").decode().strip()


def read_file(path: str) -> bytes:
    """Return what is in a file of /proc; empty for one that is gone or not ours to read."""
    try:
        return read_certainly(path)
    except OSError:
        return b""


def _read_ours(path: str) -> bytes:
    try:
        return read_certainly(path)
    except PermissionError:
        return b""


def read_certainly(path: str) -> bytes:
    """Return the same; empty only for one that is gone. Raises OSError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError):
        return b""
    parts = []
    try:
        while part := os.read(descriptor, PART_BYTES):
            parts.append(part)
    except ProcessLookupError:
        return b""
    finally:
        os.close(descriptor)
    return b"".join(parts)
