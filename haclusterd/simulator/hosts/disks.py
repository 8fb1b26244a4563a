"""Disks: what was written, what of it is on stable storage, and how both go wrong.

SIGKILL loses nothing, since the kernel keeps what was written. The kernel writes whole pages: a power loss leaves each
page that was not synced old, new or ruined, whatever stable bytes share it. After an fsync that failed (EIO) the pages
stay readable and count as clean, so that the next fsync succeeds and writes nothing of them, as on Linux. A disk that
lies says that it synced, and loses it with its power. A disk can be put back to an older copy while its host is off.
The `Files` contract (`ports/files.py`) is all that the store may rely on.
"""

import errno
import random
import re
from collections.abc import Callable

from haclusterd.model.records import dataclass, field
from haclusterd.raft.journal import FRAME_MARK
from haclusterd.simulator.hosts.world import MS, Life, World, between

PAGE_BYTES = 4096


@dataclass(slots=True)
class CachedFile:
    """One file as the kernel has it in memory, and as the medium has it."""

    content: bytearray = field(default_factory=bytearray)
    """What a read returns."""
    stable: bytearray = field(default_factory=bytearray)
    """What is on the medium; written in place, so a reader that keeps it copies it."""
    dirty_from: int | None = None
    """Where the pages begin that the next sync writes; None: all are clean."""

    @classmethod
    def synced(cls, data: bytes | bytearray) -> "CachedFile":
        """Return a file that is the same in memory and on the medium."""
        return cls(bytearray(data), bytearray(data))

    def append(self, data: bytes) -> None:
        """Write at the end: from the page on in which the file ends, all is dirty."""
        page = len(self.content) // PAGE_BYTES * PAGE_BYTES
        self.dirty_from = page if self.dirty_from is None else min(self.dirty_from, page)
        self.content += data

    def flush(self) -> None:
        """Write the dirty pages to the medium."""
        if self.dirty_from is not None:
            self.stable += bytes(max(0, self.dirty_from - len(self.stable)))
            self.stable[self.dirty_from :] = self.content[self.dirty_from :]
        self.dirty_from = None

    def fail_to_flush(self) -> None:
        """Forget which pages are dirty and write none of them, as Linux does when the device reports an error."""
        self.dirty_from = None

    def lose_power(self, chance: random.Random) -> None:
        """Leave what is on the medium; each dirty page is there in its old state, in its new one, or ruined."""
        if self.dirty_from is not None:
            shortest, longest = sorted((len(self.stable), len(self.content)))
            size = chance.randint(shortest, longest)
            torn = self.stable[:size].ljust(size, b"\0")
            for start in range(self.dirty_from, size, PAGE_BYTES):
                end = min(start + PAGE_BYTES, size)
                drawn = chance.random()
                if drawn < 0.5:
                    torn[start:end] = self.content[start:end].ljust(end - start, b"\0")
                elif drawn < 0.75:
                    torn[start:end] = chance.randbytes(end - start)
            self.stable = torn
        self.dirty_from = None
        self.content = bytearray(self.stable)


class Disk:
    """One host's data directory; it outlives processes and boots."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self.is_full = False
        self.is_damaged = False
        """A bit is not what was written: a store that is opened here must refuse."""
        self.fails_syncs = False
        """Every fsync reports EIO."""
        self.lies = False
        """Every fsync reports success and writes nothing."""
        self.when_it_forgets: Callable[[], None] | None = None
        """Called when power is lost while it lies."""
        self.sync_us: tuple[int, int] = (300, 3 * MS)
        """How long an fsync takes."""
        self.chance: random.Random = world.chance(f"disk/{name}")
        self._files: dict[str, CachedFile] = {}
        self._owner: Life | None = None
        self._is_interrupted = False

    def lose_power(self) -> None:
        """Lose what is not on the medium; see `CachedFile.lose_power`."""
        for _, file in sorted(self._files.items()):
            file.lose_power(self.chance)
        if self.lies and self.when_it_forgets is not None:
            self.when_it_forgets()

    def stop_lying(self) -> None:
        """Lie no more, and write what was held back; one that does not lie keeps it in memory until the next fsync."""
        if not self.lies:
            return
        self.lies = False
        for file in self._files.values():
            file.flush()

    def empty(self) -> None:
        """Remove every file."""
        self._files = {}

    def copy(self) -> Callable[[], None]:
        """Copy what is on the medium; return how to put the copy in its place, while the host is off."""
        copied = {name: bytes(file.stable) for name, file in self._files.items()}

        def put_back() -> None:
            self._files = {name: CachedFile.synced(stable) for name, stable in copied.items()}

        return put_back

    def copy_to(self, other: "Disk") -> None:
        """Let another disk hold what is on this medium."""
        other._files = {name: CachedFile.synced(file.stable) for name, file in self._files.items()}

    def damage(self, name: str, place: float) -> Callable[[], None]:
        """Flip one bit of what nobody can take for a torn write; return how to flip it back.

        `place` is a share of the file. Damage to a journal's last frame cannot be distinguished from a torn write
        (docs/design/0002-store.md), and the one before it is last when a torn one follows: both are spared.
        """
        file = self._files.get(name)
        if file is None or self.is_damaged or not file.content:
            return lambda: None
        position = int(place * _certain_bytes(bytes(file.content)))
        flip(file, position)
        self.is_damaged = True

        def repair() -> None:
            flip(file, position)
            self.is_damaged = False

        return repair

    def names(self) -> list[str]:
        """Return the names of the files."""
        return sorted(self._files)

    def files(self, process: Life) -> "SimulatedFiles":
        """Return the directory as a process sees it."""
        return SimulatedFiles(self, process)


def flip(file: CachedFile, position: int) -> None:
    """Flip a bit of a file, in memory and on the medium."""
    file.content[position] ^= 16
    file.stable = bytearray(file.content)


def _certain_bytes(content: bytes) -> int:
    """Return how much of a journal was surely synced; of any other file, all."""
    frames = [found.start() for found in re.finditer(re.escape(FRAME_MARK), content)]
    if len(frames) < 2:
        return len(content)
    return frames[1] if len(frames) == 2 else frames[-2]


class SimulatedFiles:
    """`Files` of one process on a simulated disk."""

    def __init__(self, disk: Disk, process: Life) -> None:
        self._disk = disk
        self._process = process

    def read(self, name: str) -> bytes | None:
        """See `Files.read`."""
        file = self._disk._files.get(name)
        return None if file is None else bytes(file.content)

    def append(self, name: str, data: bytes) -> None:
        """See `Files.append`; a full disk takes a part of it."""
        file = self._disk._files.setdefault(name, CachedFile())
        if self._disk.is_full:
            file.append(data[: len(data) // 2])
            self._refuse()
        if self._disk._is_interrupted:
            file.append(data[: self._disk.chance.randint(0, len(data))])
            self._stop_if_interrupted()
        file.append(data)

    def sync(self, name: str) -> None:
        """See `Files.sync`."""
        file = self._disk._files[name]
        self._stop_if_interrupted()
        if self._disk.fails_syncs:
            file.fail_to_flush()
            raise OSError(errno.EIO, "Input/output error")
        if not self._disk.lies:
            file.flush()

    def replace(self, name: str, data: bytes) -> None:
        """See `Files.replace`."""
        if self._disk.is_full:
            self._refuse()
        self._stop_if_interrupted()
        if self._disk.fails_syncs:
            raise OSError(errno.EIO, "Input/output error")
        before = self._disk._files.get(name)
        if self._disk.lies and before is not None:
            # The new name reached the medium before the new content, or not at all.
            self._disk._files[name] = CachedFile(bytearray(data), before.stable, 0)
        else:
            self._disk._files[name] = CachedFile.synced(data)

    def remove(self, name: str) -> None:
        """See `Files.remove`."""
        self._stop_if_interrupted()
        self._disk._files.pop(name, None)

    def lock(self) -> None:
        """See `Files.lock`."""
        owner = self._disk._owner
        if owner is not None and owner is not self._process and owner.is_alive:
            raise BlockingIOError(f"{self._disk.name} is in use by {owner.name}")
        self._disk._owner = self._process

    def describe(self, name: str) -> str:
        """See `Files.describe`."""
        return f"{self._disk.name}:{name}"

    def _stop_if_interrupted(self) -> None:
        if self._disk._is_interrupted:
            raise _InterruptedError

    def _refuse(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


class _InterruptedError(OSError):
    """The process ended in the middle of its work."""


class SyncWorker:
    """The thread that waits for the disk: work happens at the end of the wait, so a crash before it prevents it.

    A crash in the middle of the work may leave a part of what was to be written, and nothing of it synced.
    """

    def __init__(self, disk: Disk, life: Life) -> None:
        self._disk = disk
        self._life = life
        self._under_way: list[Callable[[], object]] = []
        life.at_end(self._interrupt)

    def run(self, work: Callable[[], object], done: Callable[[object], None]) -> None:
        """See `raft.worker.Worker.run`."""
        self._under_way.append(work)

        def finish() -> None:
            self._under_way.remove(work)
            done(work())

        self._life.after(between(self._disk.chance, self._disk.sync_us), finish)

    def _interrupt(self) -> None:
        """Let what is under way come as far as it may have come."""
        disk = self._disk
        for work in self._under_way:
            if disk.chance.random() < 0.5:
                disk._is_interrupted = True
                try:
                    work()
                except _InterruptedError:
                    pass
                finally:
                    disk._is_interrupted = False
        self._under_way.clear()
