"""The page file that daemon and pacer map: made by the pacer alone, and complete before it is visible.

Invariant: the file of the final name always has the present layout. A page of another layout is replaced by a new
file, never changed in place, since another process may have it mapped. Stdlib only: the pacer imports this.
"""

import mmap
import os
from pathlib import Path

from haclusterd.model.records import dataclass
from haclusterd.protocol.pacer_page import PAGE_SIZE, PacerPage

PAGE_NAME = "pacer.page"
SOCKET_NAME = "pacer.sock"


@dataclass(frozen=True, slots=True)
class MappedPage:
    """A page in this process's memory, and the identity of its file."""

    page: PacerPage
    path: Path
    identity: tuple[int, int]
    """Device and inode."""

    def is_in_place(self) -> bool:
        """Return whether the file of that name is still the mapped one."""
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            return False
        return (status.st_dev, status.st_ino) == self.identity


def open_page(directory: Path) -> MappedPage | None:
    """Map the page of a runtime directory; None when there is none of this layout. Raises OSError for other reasons."""
    path = directory / PAGE_NAME
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        mapped = _map(descriptor, path)
    finally:
        os.close(descriptor)
    if mapped is None or not mapped.page.is_formatted():
        return None
    return mapped


def make_page(directory: Path, *, is_empty: bool = False) -> MappedPage:
    """Map the page of a runtime directory; make a new, safe one if there is none of this layout. Raises OSError.

    `is_empty`: a new one says that nothing runs here, as is true after a boot.
    """
    found = open_page(directory)
    if found is not None:
        return found
    path = directory / PAGE_NAME
    unfinished = directory / f"{PAGE_NAME}.new"
    descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.ftruncate(descriptor, PAGE_SIZE)
        made = _map(descriptor, path)
    finally:
        os.close(descriptor)
    assert made is not None
    made.page.format()
    made.page.set_empty(is_empty=is_empty)
    os.rename(unfinished, path)
    return made


def _map(descriptor: int, path: Path) -> MappedPage | None:
    status = os.fstat(descriptor)
    if status.st_size < PAGE_SIZE:
        return None
    memory = mmap.mmap(descriptor, PAGE_SIZE)
    return MappedPage(PacerPage(memoryview(memory)), path, (status.st_dev, status.st_ino))
