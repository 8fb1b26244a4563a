"""Which databases and which faults a list of words asks for: each word names some of the one or of the other."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple


class Selection(NamedTuple):
    """Names, in the order of the whole."""

    databases: tuple[str, ...]
    faults: tuple[str, ...]


def selected(words: Sequence[str], databases: Sequence[str], faults: Sequence[str]) -> Selection:
    """Return what the words name, * allowed; of what none of them names, all. Raises ValueError on another word."""
    for word in words:
        if not any(fnmatchcase(name, word) for name in (*databases, *faults)):
            known = ", ".join((*databases, *faults))
            raise ValueError(f"neither a database nor a fault: {word} (known: {known})")

    def those(names: Sequence[str]) -> tuple[str, ...]:
        found = tuple(name for name in names if any(fnmatchcase(name, word) for word in words))
        return found or tuple(names)

    return Selection(those(databases), those(faults))
