"""A recovery that has begun: old files are set aside, new ones take their places, and a kill in between is no end.

What is to be done is in a plan beside the new files, before anything is renamed. The configuration directory goes
first and comes last, so that between the two no daemon starts: either the old node is there, or the new one. Each step
can be seen to be done, so that the verb continues where it was killed.

It must never touch a directory of the old cluster but by renaming it.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from haclusterd.adapters.machine.files_directory import FilesDirectory
from haclusterd.adapters.network.authority_files import AUTHORITY_DIRECTORY
from haclusterd.entry_points.cluster_setup import initialize
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass
from haclusterd.ports.store import StoreRefusedError
from haclusterd.raft.identity import IDENTITY_NAME, require_identity
from haclusterd.runtime.settings import CONFIGURATION_FILE, load

PLAN: Final = "recovery.json"
_MADE: Final = "recovering"


@dataclass(frozen=True, slots=True)
class BegunRecovery:
    """What is to be done with which directories."""

    made: Path
    """Where the new node's files and its authority are, until they get their places."""
    node: str
    directory: Path
    """Of the node's configuration and keys."""
    state: Path
    old_directory: Path
    """Where the old ones are set aside."""
    old_state: Path
    authority: Path
    """Where the new authority is to be."""
    term: int
    """The newest that the old log knows."""
    answer: Json
    """What the verb answers when all is done."""

    @property
    def bundle(self) -> Path:
        """The new node's files, until they are in place."""
        return self.made / self.node

    def write(self) -> None:
        """Make the new files and the plan durable; from then on the recovery can begin. Raises OSError."""
        text = json.dumps({
            "node": self.node, "directory": str(self.directory), "state": str(self.state),
            "old_directory": str(self.old_directory), "old_state": str(self.old_state),
            "authority": str(self.authority), "term": self.term, "answer": self.answer,
        })  # fmt: skip
        temporary = self.made / f"{PLAN}.new"
        temporary.write_text(text)
        for path in (*self.made.rglob("*"), self.made):
            _sync(path)
        temporary.rename(self.made / PLAN)
        _sync(self.made)

    def complete(self) -> None:
        """Do what is not done yet; raises StoreRefusedError while another process does it, OSError."""
        with self._alone():
            if not self.old_directory.exists():
                _rename(self.directory, self.old_directory)
            if not self.old_state.exists():
                self._set_state_aside()
            if self.bundle.exists():
                self._put_in_place()
        for path in self.made.iterdir():
            if path.name != PLAN:
                path.unlink()
        (self.made / PLAN).unlink()
        self.made.rmdir()

    def has_run(self) -> bool:
        """Tell whether the new node has been started since: then only the plan was left behind."""
        if self.bundle.exists():
            return False
        installation = load(self.directory / CONFIGURATION_FILE)
        return require_identity(FilesDirectory(self.state), installation.cluster_uuid, installation.node).is_started

    def _set_state_aside(self) -> None:
        try:
            _rename(self.state, self.old_state)
        except OSError:
            _rename(self.old_directory, self.directory)
            raise

    def _put_in_place(self) -> None:
        if not (self.state / IDENTITY_NAME).exists():
            # What is there was begun by this recovery: the old state is set aside.
            shutil.rmtree(self.state, ignore_errors=True)
            initialize(load(self.bundle / CONFIGURATION_FILE), self.term)
            _sync(self.state.parent)
        if (self.made / AUTHORITY_DIRECTORY).exists():
            _rename(self.made / AUTHORITY_DIRECTORY, self.authority)
        _rename(self.bundle, self.directory)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with open(self.made / PLAN, encoding="utf-8") as plan:
            try:
                fcntl.flock(plan, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreRefusedError(f"{self.made}: another crm cluster recover is at work") from None
            yield


def find_begun(directory: Path) -> BegunRecovery | None:
    """Return the recovery of a node's configuration directory that has begun and is not complete.

    Raises OSError; SettingsError, StoreRefusedError or StoreDamagedError where the new node is damaged already.
    """
    for made in _all_made(directory):
        with suppress(FileNotFoundError):
            found = _read(made)
            if found.old_directory.exists() and not found.has_run():
                return found
    return None


def discard_prepared(directory: Path) -> None:
    """Remove what recoveries have left that were killed before they began, or when all was done."""
    for made in _all_made(directory):
        shutil.rmtree(made, ignore_errors=True)


def make_place(directory: Path) -> Path:
    """Return where new files for a configuration directory are to be made."""
    return free_name(directory, _MADE)


def free_name(path: Path, what: str) -> Path:
    """Return a name beside a path that nothing has."""
    path, number = path.absolute(), 1
    while (free := path.with_name(f"{path.name}.{what}-{number}")).exists():
        number += 1
    return free


def _all_made(directory: Path) -> list[Path]:
    directory = directory.absolute()
    start = f"{directory.name}.{_MADE}-"
    with suppress(FileNotFoundError):
        return sorted(path for path in directory.parent.iterdir() if path.name.startswith(start))
    return []


def _read(made: Path) -> BegunRecovery:
    plan = json.loads((made / PLAN).read_text(encoding="utf-8"))
    places = {name: Path(plan[name]) for name in ("directory", "state", "old_directory", "old_state", "authority")}
    return BegunRecovery(made=made, node=plan["node"], term=plan["term"], answer=plan["answer"], **places)


def _rename(path: Path, name: Path) -> None:
    path.rename(name)
    for parent in {path.parent, name.parent}:
        _sync(parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
