"""The records of actions in a runtime directory, as a later daemon would find them."""

from pathlib import Path


def recorded_in(directory: Path) -> list[Path]:
    """Return the files in which there is a record; blank ones wait for the next action.

    A daemon may remove a file between its listing and its reading: then there is no record in it.
    """
    return [path for path in directory.glob("*") if _is_record(path)]


def _is_record(path: Path) -> bool:
    try:
        return path.read_bytes().startswith(b"{")
    except FileNotFoundError:
        return False
