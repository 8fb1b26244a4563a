"""The unit files of this machine, by their names: what can be a resource of class systemd.

They are searched without systemd, so that they can be listed without a bus. How systemd interprets them is known only
when it is asked.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from haclusterd.adapters.agents.systemd_units import unit_name

DIRECTORIES: Final = tuple(
    map(
        Path,
        (
            "/etc/systemd/system", "/run/systemd/system", "/run/systemd/generator", "/usr/local/lib/systemd/system",
            "/usr/lib/systemd/system", "/lib/systemd/system", "/run/systemd/generator.late",
        ),
    )
)  # fmt: skip
"""Where systemd looks for units of the machine (systemd.unit(5), "Unit File Load Path")."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9:_.\\@-]+\Z")
_LISTED: Final = (".service", ".socket", ".mount", ".timer", ".path", ".target")


class UnitFiles:
    """The unit files; see the module."""

    def __init__(self, directories: Sequence[Path] = DIRECTORIES) -> None:
        self._directories = directories

    def exists(self, type_: str) -> bool:
        """Return whether the unit that an agent's type names has a file; for an instance, its template's counts."""
        unit = unit_name(type_)
        if _PLAIN.match(unit) is None:
            return False
        stem, _, suffix = unit.rpartition(".")
        names = {unit, f"{stem.partition('@')[0]}@.{suffix}"} if "@" in stem else {unit}
        return any((directory / name).exists() for directory in self._directories for name in names)

    def listing(self) -> tuple[str, ...]:
        """Return the types that exist: services without their suffix."""
        names = {
            file.name
            for directory in self._directories
            if directory.is_dir()
            for file in directory.iterdir()
            if file.name.endswith(_LISTED) and _PLAIN.match(file.name)
        }
        return tuple(sorted(name.removesuffix(".service") for name in names))
