"""Disks: what was written, what of it is on stable storage, and how both go wrong.

SIGKILL loses nothing, since the kernel keeps what was written. A power loss keeps what was synced and, of the rest, a
random part of its beginning: a torn tail. The `Files` contract (`ports/files.py`) is all that the store may rely on.
"""

import errno
import random
from collections.abc import Callable
from dataclasses import dataclass, field

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
        self.sync_us: tuple[int, int] = (300, 3 * MS)
        """How long an fsync takes."""
        self.chance: random.Random = world.chance(f"disk/{name}")
        self._files: dict[str, _File] = {}
        self._owner: Life | None = None
        self._sync_limits: dict[str, int] | None = None

    def lose_power(self) -> None:
        """Lose what was not synced, except for a part of its beginning."""
        for _, file in sorted(self._files.items()):
            unsynced = len(file.content) - file.synced
            if unsynced > 0:
                del file.content[file.synced + self.chance.randint(0, unsynced) :]
            file.synced = len(file.content)

    def flip_bit(self, name: str) -> None:
        """Change one bit of a file that has content."""
        content = self._files[name].content
        position = self.chance.randrange(len(content))
        content[position] ^= 1 << self.chance.randrange(8)

    def names(self) -> list[str]:
        """Return the names of the files."""
        return sorted(self._files)

    def wipe(self) -> None:
        """Remove everything, as a replaced disk."""
        self._files.clear()

    def files(self, process: Life) -> "SimulatedFiles":
        """Return the directory as a process sees it."""
        return SimulatedFiles(self, process)


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
        file.content += data

    def truncate(self, name: str, size: int) -> None:
        """See `Files.truncate`."""
        file = self._disk._files[name]
        del file.content[size:]
        file.synced = len(file.content)

    def sync(self, name: str) -> None:
        """See `Files.sync`."""
        file = self._disk._files[name]
        limits = self._disk._sync_limits
        limit = len(file.content) if limits is None else limits.get(name, 0)
        file.synced = max(file.synced, min(len(file.content), limit))

    def replace(self, name: str, data: bytes) -> None:
        """See `Files.replace`."""
        if self._disk.is_full:
            self._refuse()
        self._disk._files[name] = _File(bytearray(data), len(data))

    def remove(self, name: str) -> None:
        """See `Files.remove`."""
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

    def _refuse(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


class SyncWorker:
    """The thread that waits for the disk: work happens at the end of the wait, so a crash before it prevents it.

    An fsync promises only what was written before it began; so what is appended during the wait stays unsynced.
    """

    def __init__(self, disk: Disk, life: Life) -> None:
        self._disk = disk
        self._life = life

    def run(self, work: Callable[[], object], done: Callable[[object], None]) -> None:
        """See `raft_core.Worker.run`."""
        disk = self._disk
        written = {name: len(file.content) for name, file in disk._files.items()}

        def finish() -> None:
            disk._sync_limits = written
            try:
                result = work()
            finally:
                disk._sync_limits = None
            done(result)

        self._life.after(disk.chance.randint(*disk.sync_us), finish)
