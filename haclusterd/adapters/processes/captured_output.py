"""What a program writes, kept within limits.

One memory file for one stream. The beginning and the end are kept, the middle is dropped while the program runs, so
that endless output costs no memory. After `finish` the file is sealed: a service that inherited it can neither grow it
nor be killed by it (its writes fail with EPERM).
"""

import fcntl
import os


class CapturedOutput:
    """One output stream of one program; keeps at most `limit` bytes."""

    def __init__(self, name: str, limit: int) -> None:
        self._half = limit // 2
        self._head = b""
        self._tail = b""
        self._dropped = 0
        self._memory = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        # Opened again to append: `> /dev/stderr` in an agent truncates the file under the writers' feet.
        self.write_end = os.open(f"/proc/self/fd/{self._memory}", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def trim(self) -> None:
        """Take what was written so far out of the memory file once it is more than is kept."""
        if os.fstat(self._memory).st_size > 2 * self._half:
            self._take()
            os.ftruncate(self._memory, 0)

    def finish(self) -> str:
        """Return what is kept, with a line in the place of what was dropped, and let go of the file. Call once."""
        self._take()
        os.ftruncate(self._memory, 0)
        fcntl.fcntl(self._memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
        os.close(self.write_end)
        os.close(self._memory)
        note = f"\n[{self._dropped} bytes left out]\n".encode() if self._dropped else b""
        return (self._head + note + self._tail).decode("utf-8", "replace")

    def _take(self) -> None:
        size = os.fstat(self._memory).st_size
        take = min(size, self._half - len(self._head))
        self._head += os.pread(self._memory, take, 0)
        rest = size - take
        keep = min(rest, self._half)
        tail = self._tail + os.pread(self._memory, keep, size - keep)
        self._dropped += rest - keep + max(0, len(tail) - self._half)
        self._tail = tail[-self._half :] if tail else b""
