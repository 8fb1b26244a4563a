"""The chained digest of the history: what two nodes compare to know that theirs are the same.

Each log entry that left rows has a link: the digest of the link before it and of what its rows say. Who knows one link
therefore knows whether everything before it is right, no matter who hands it over. The newest link is in the CIB,
so it travels with every snapshot, and a node that skipped entries can tell what it is given in their place.

Invariant: a link is made of facts (time, kind, node, resource, detail), never of wording: two versions of this program
that word an entry differently still agree. It must stay a pure function of the log.
"""

import hashlib
import json
from collections.abc import Iterable

NO_LINK = ""
"""The digest before the first entry that left rows."""

Fact = tuple[int, str, str | None, str | None, str]
"""What a row says: (time in ms, kind, node, resource, detail as JSON)."""

_encoder = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True)


def chained(before: str, index: int, facts: Iterable[Fact]) -> str:
    """Return the link after an entry: SHA-256 in hexadecimal digits; an entry without facts adds none."""
    listed = [list(fact) for fact in facts]
    if not listed:
        return before
    return hashlib.sha256(_encoder.encode([before, index, listed]).encode()).hexdigest()
