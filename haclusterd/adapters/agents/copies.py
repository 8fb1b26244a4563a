"""The daemon's own copy of the agents and their files: an upgrade of the package cannot remove it.

`pip install --upgrade` removes the old files before it writes the new ones, and a power loss in between leaves half of
them. A monitor without its agent fails; so does the stop that follows, and the node is fenced. So agents, their tools
and their library are copied at the daemon's start, and agents run from there until a reload.

Invariant: a copy is named by the digest of its content and gets its name by one rename, so a copy with its name is
complete. After a power loss it is read again before it is used. The previous copy stays: its agents may still run. Each
start of a daemon, of whatever version, changes the time of the copy that it uses, by which the next one sees it.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

DIRECTORY: Final = "agents"
KEPT: Final = 2
_PARTS: Final = ("resource_agents", "shims")
_LIBRARY: Final = ("haclusterd/__init__.py", "haclusterd/agents")
_LIBRARY_PLACES: Final = ("python", ".")
"""Below the share directory: of an installation, and of a source checkout. Agents look for it in both (see there)."""


def copy_agents(share: Path, state_directory: Path) -> Path:
    """Return the directory of a complete copy of `share`'s agents, which is made if there is none. Raises OSError."""
    wanted = dict(_files(share))
    name = _digest(wanted)
    home = state_directory / DIRECTORY
    made = home / name
    if not _is_whole(made, name):
        shutil.rmtree(made, ignore_errors=True)
        temporary = home / f".{name}.new"
        shutil.rmtree(temporary, ignore_errors=True)
        for relative, source in wanted.items():
            (temporary / relative).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, temporary / relative)
        temporary.rename(made)
    os.utime(made)
    _forget_old(home)
    return made


def last_start(state_directory: Path) -> int:
    """Return when the newest daemon that has copied its agents began, in ns since the epoch; 0: none has."""
    try:
        return max((each.stat().st_mtime_ns for each in (state_directory / DIRECTORY).iterdir()), default=0)
    except OSError:
        return 0


def _files(share: Path) -> Iterable[tuple[str, Path]]:
    """Yield each file's path in the copy, and its source."""
    for part in _PARTS:
        yield from ((f"{part}/{path.relative_to(share / part)}", path) for path in _below(share / part))
    library = next((share / place for place in _LIBRARY_PLACES if (share / place / _LIBRARY[0]).is_file()), share)
    for part in _LIBRARY:
        for path in _below(library / part):
            yield f"python/{path.relative_to(library)}", path


def _below(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(each for each in path.rglob("*") if each.is_file() and "__pycache__" not in each.parts)


def _digest(files: dict[str, Path]) -> str:
    found = hashlib.sha256()
    for relative, path in sorted(files.items()):
        content = path.read_bytes()
        found.update(f"{relative}\0{os.access(path, os.X_OK)}\0{len(content)}\0".encode())
        found.update(content)
    return found.hexdigest()[:16]


def _is_whole(made: Path, name: str) -> bool:
    if not made.is_dir():
        return False
    return _digest({str(path.relative_to(made)): path for path in _below(made)}) == name


def _forget_old(home: Path) -> None:
    copies = sorted((each for each in home.iterdir() if each.is_dir()), key=lambda each: -each.stat().st_mtime_ns)
    for old in copies[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
