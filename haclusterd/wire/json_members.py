"""Objects of JSON whose names stand once: Python's reader keeps the last of two members of one name without a word."""

from collections import Counter
from collections.abc import Sequence
from typing import Any


class NamedTwiceError(ValueError):
    """Two members of an object have one name."""


def members(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, for `object_pairs_hook` of `json.loads`; raise NamedTwiceError."""
    found = dict(pairs)
    if len(found) < len(pairs):
        times = Counter(name for name, _ in pairs)
        raise NamedTwiceError(f"{next(name for name in times if times[name] > 1)[:60]!r} stands twice")
    return found
