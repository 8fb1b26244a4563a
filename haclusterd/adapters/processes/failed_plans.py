"""Keeps the CIBs for which the scheduler failed, for diagnosis: `crm --cib-file FILE simulate` reads them.

They are written on a separate thread. A full disk costs the file and nothing else.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from haclusterd.adapters.machine.ready_threads import ReadyThreads
from haclusterd.model.cluster import Cib

KEPT = 3


class FailedPlans:
    """A directory of the newest CIBs without a plan."""

    def __init__(self, directory: Path, fragments: Callable[[Cib], Iterator[bytes]]) -> None:
        """`fragments` encodes a CIB piece by piece."""
        self._directory = directory
        self._fragments = fragments
        self._threads = ReadyThreads(1)
        self._writing = threading.Lock()
        """Only one thread writes at a time, so that none counts a file that another is about to remove."""

    def keep(self, cib: Cib) -> Path:
        """Start writing a CIB; return its future path."""
        path = self._directory / f"index-{cib.index}.cib"
        self._threads.do(lambda: self._write(cib, path))
        return path

    def _write(self, cib: Cib, path: Path) -> None:
        with self._writing, suppress(OSError):
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            unfinished = path.with_suffix(".unfinished")
            with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
                stream.writelines(self._fragments(cib))
            unfinished.replace(path)
            kept = sorted(self._directory.glob("index-*.cib"), key=lambda each: each.stat().st_mtime_ns)
            for old in kept[:-KEPT]:
                old.unlink(missing_ok=True)
