"""`Files` on a real directory.

Invariant: whenever the machine stops, a name has either its old content or its new one, and after `sync` and `replace`
have returned the content survives a power loss. Directory 0700, files 0600.
It must never retry a failed fsync: the kernel drops the dirty pages, and the second call would falsely succeed.
"""

import errno
import fcntl
import os
from pathlib import Path

LOCK_NAME = "lock"
TEMPORARY_SUFFIX = ".new"


class FilesDirectory:
    """One directory of one process. File descriptors of appended files stay open until `close`."""

    def __init__(self, path: Path) -> None:
        """Make the directory (mode 0700) if there is none; raises OSError."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = path
        self._open: dict[str, int] = {}
        self._lock: int | None = None

    def require_room(self, size: int) -> None:
        """Raise OSError (ENOSPC) when the file system has less than `size` bytes for ordinary users.

        The superuser's reserve (5 % on ext4) does not count: services that run as the superuser use it up, and a daemon
        that joined with it would soon end.
        """
        found = os.statvfs(self._path)
        available = found.f_bavail * found.f_frsize
        if available < size:
            why = f"{os.strerror(errno.ENOSPC)}: {available} bytes are available, {size} are needed to start"
            raise OSError(errno.ENOSPC, why, str(self._path))

    def read(self, name: str) -> bytes | None:
        """See `Files.read`."""
        try:
            return (self._path / name).read_bytes()
        except FileNotFoundError:
            return None

    def append(self, name: str, data: bytes) -> None:
        """See `Files.append`."""
        _write_all(self._descriptor(name), data)

    def sync(self, name: str) -> None:
        """See `Files.sync`."""
        os.fdatasync(self._descriptor(name))

    def replace(self, name: str, data: bytes) -> None:
        """See `Files.replace`."""
        temporary = self._path / (name + TEMPORARY_SUFFIX)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            _write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.rename(self._path / name)
        self._sync_directory()
        self._forget(name)

    def remove(self, name: str) -> None:
        """See `Files.remove`."""
        self._forget(name)
        try:
            (self._path / name).unlink()
        except FileNotFoundError:
            return
        self._sync_directory()

    def lock(self) -> None:
        """See `Files.lock`."""
        if self._lock is not None:
            return
        descriptor = os.open(self._path / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise
        self._lock = descriptor
        # A predecessor may have been killed between a rename and the sync that makes the new name durable.
        self._sync_directory()

    def describe(self, name: str) -> str:
        """See `Files.describe`."""
        return str(self._path / name)

    def close(self) -> None:
        """Release the lock and the open files."""
        for name in list(self._open):
            self._forget(name)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _descriptor(self, name: str) -> int:
        descriptor = self._open.get(name)
        if descriptor is None:
            path = self._path / name
            is_new = not path.exists()
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            if is_new:
                self._sync_directory()
            self._open[name] = descriptor
        return descriptor

    def _forget(self, name: str) -> None:
        descriptor = self._open.pop(name, None)
        if descriptor is not None:
            os.close(descriptor)

    def _sync_directory(self) -> None:
        descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
