"""Disks: what was written, what of it is on stable storage, and how both go wrong.

SIGKILL loses nothing, since the kernel keeps what was written. A power loss keeps what was synced and, of the rest, a
random part of its beginning: a torn tail. The `Files` contract (`ports/files.py`) is all that the store may rely on.
"""

import errno
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from haclusterd.adapters.raft_journal import FRAME_MARK
from haclusterd.simulator.world import MS, Life, World


@dataclass(slots=True)
class _File:
    content: bytearray = field(default_factory=bytearray)
    synced: int = 0
    """How many bytes from the beginning survive a power loss."""


class Disk:
    """One host's data directory; it outlives processes and boots."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self.is_full = False
        self.is_damaged = False
        """A bit is not what was written: whoever opens the store here must refuse."""
        self.sync_us: tuple[int, int] = (300, 3 * MS)
        """How long an fsync takes."""
        self.chance: random.Random = world.chance(f"disk/{name}")
        self._files: dict[str, _File] = {}
        self._owner: Life | None = None
        self._is_interrupted = False

    def lose_power(self) -> None:
        """Lose what was not synced, except for a part of its beginning; zeros or rubbish may stand in for the rest."""
        for _, file in sorted(self._files.items()):
            unsynced = len(file.content) - file.synced
            if unsynced > 0:
                kept = self.chance.randint(0, unsynced)
                gone = unsynced - kept
                del file.content[file.synced + kept :]
                file.content += self.chance.choice((b"", bytes(gone), self.chance.randbytes(gone)))
            file.synced = len(file.content)

    def damage(self, name: str, place: float) -> Callable[[], None]:
        """Flip one bit of what nobody can take for a torn write; return how to flip it back.

        `place` is a share of the file. Damage to a journal's last frame cannot be told from a torn write
        (docs/design/0002-store.md), and the one before it is last when a torn one follows: both are spared.
        """
        file = self._files.get(name)
        if file is None or self.is_damaged or not file.content:
            return lambda: None
        position = int(place * _certain_bytes(bytes(file.content)))
        file.content[position] ^= 16
        self.is_damaged = True

        def mend() -> None:
            file.content[position] ^= 16
            self.is_damaged = False

        return mend

    def names(self) -> list[str]:
        """Return the names of the files."""
        return sorted(self._files)

    def files(self, process: Life) -> "SimulatedFiles":
        """Return the directory as a process sees it."""
        return SimulatedFiles(self, process)


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
        file = self._disk._files.setdefault(name, _File())
        if self._disk.is_full:
            file.content += data[: len(data) // 2]
            self._refuse()
        if self._disk._is_interrupted:
            file.content += data[: self._disk.chance.randint(0, len(data))]
            self._stop_if_interrupted()
        file.content += data

    def truncate(self, name: str, size: int) -> None:
        """See `Files.truncate`."""
        self._stop_if_interrupted()
        file = self._disk._files[name]
        del file.content[size:]
        file.synced = len(file.content)

    def sync(self, name: str) -> None:
        """See `Files.sync`."""
        file = self._disk._files[name]
        self._stop_if_interrupted()
        file.synced = len(file.content)

    def replace(self, name: str, data: bytes) -> None:
        """See `Files.replace`."""
        if self._disk.is_full:
            self._refuse()
        self._stop_if_interrupted()
        self._disk._files[name] = _File(bytearray(data), len(data))

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
        """See `raft_worker.Worker.run`."""
        self._under_way.append(work)

        def finish() -> None:
            self._under_way.remove(work)
            done(work())

        self._life.after(self._disk.chance.randint(*self._disk.sync_us), finish)

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
