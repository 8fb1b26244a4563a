"""Writes files as a whole: a new one, or one in the place of another; what fails leaves nothing half written."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path


def write_new_file(path: "Path | str", write: Callable[[BinaryIO], object], mode: int = 0o600) -> None:
    """Make a file that there must not be yet, of what `write` puts into it. Raises OSError, and then there is none."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with open(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(handle)
    except BaseException:
        os.unlink(path)
        raise


def replace_file(path: "Path", content: bytes, mode: int = 0o600) -> None:
    """Write a file, or what it links to; whatever happens, it has its old content or the new one. Raises OSError."""
    import tempfile

    path = path.resolve()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
