"""Puts a file in the place of another one, as a whole."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


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
