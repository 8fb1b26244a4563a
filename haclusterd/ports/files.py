"""A directory on stable storage, as the store needs it.

Contract: what was appended or replaced may be lost, wholly or in part, in a crash until `sync` (of that name) or
`replace` has returned; afterwards it is kept. Every OSError from here means that memory may be ahead of the disk: the
caller ends the process and never retries (a second fsync after a failed one proves nothing).
"""

from typing import Protocol


class Files(Protocol):
    """One directory, owned by one process at a time. Names are plain file names."""

    def read(self, name: str) -> bytes | None:
        """Return the whole content; None when there is no such file."""
        ...

    def append(self, name: str, data: bytes) -> None:
        """Write at the end, creating the file (mode 0600) when there is none."""
        ...

    def sync(self, name: str) -> None:
        """Return when everything appended so far is on stable storage. May be called on a worker thread."""
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Replace the content atomically and durably (temporary file, fsync, rename, fsync of the directory).

        May be called on a worker thread, for another name than those in use on the Raft thread at that time.
        """
        ...

    def remove(self, name: str) -> None:
        """Remove the file durably; nothing happens when there is none."""
        ...

    def lock(self) -> None:
        """Own the directory until the process ends; raise BlockingIOError when another process does."""
        ...

    def describe(self, name: str) -> str:
        """Return how to name the file to a person: its full path."""
        ...
