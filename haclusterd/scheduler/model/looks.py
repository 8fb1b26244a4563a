"""Which node attributes a plan has looked at: one that it has not is free to change.

Monitors and clients write attributes far more often than anything else changes, and most of them are named nowhere in
the configuration. So the names are noted as they are asked for, at the one place through which plans read attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping


class Looks:
    """What one plan has looked at so far."""

    __slots__ = ("are_all", "names")

    def __init__(self) -> None:
        self.names: set[str] = set()
        """Asked for by name, on whatever node."""
        self.are_all = False
        """Whether it went through all that a node has."""


class NodeAttributes(Mapping[str, str]):
    """A node's attributes; each name that is asked for is noted."""

    __slots__ = ("_looks", "_values")

    def __init__(self, values: dict[str, str], looks: Looks) -> None:
        self._values = values
        self._looks = looks

    def __getitem__(self, name: str) -> str:
        self._looks.names.add(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        self._looks.are_all = True
        return iter(self._values)

    def __len__(self) -> int:
        self._looks.are_all = True
        return len(self._values)

    def __bool__(self) -> bool:
        """Return True: a node has a name at least."""
        return True

    def put(self, values: Mapping[str, str]) -> None:
        """Add what becomes known later, as of a remote node once it is reached; such plans are not kept."""
        self._looks.are_all = True
        self._values.update(values)
