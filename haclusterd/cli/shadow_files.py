"""Where a person's shadow CIBs are, and which of them answers."""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from haclusterd.model.records import dataclass
from haclusterd.ports.control import CommandClient

if TYPE_CHECKING:
    from pathlib import Path

LIVE = "live"
VARIABLE = "CIB_shadow"
"""Names the copy that answers, as for Pacemaker's tools."""


def directory_of(environment: Mapping[str, str]) -> str:
    """Return where a person's copies are kept."""
    base = environment.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(base, "haclusterd", "shadow")


@dataclass(slots=True)
class Shadows:
    """A person's copies, and which of them answers."""

    place: str
    """The directory that they are in."""
    open_file: Callable[[str], CommandClient]
    live: CommandClient
    used: str = ""
    """Empty: the cluster itself."""

    @property
    def directory(self) -> "Path":
        """The directory that they are in; most calls of `crm` have no use for pathlib, which is slow to import."""
        from pathlib import Path

        return Path(self.place)

    def path(self, name: str) -> "Path":
        """Return a copy's file."""
        return self.directory / f"{name}.cib"

    def base(self, name: str) -> "Path":
        """Return the file with the version of the configuration from which a copy was made."""
        return self.directory / f"{name}.base"

    def names(self) -> list[str]:
        """Return all copies."""
        return sorted(path.stem for path in self.directory.glob("*.cib"))

    def client(self, name: str) -> CommandClient:
        """Return who answers from a copy."""
        return self.open_file(str(self.path(name)))
