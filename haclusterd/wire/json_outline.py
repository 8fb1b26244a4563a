"""How many values a text of JSON has at most, found before any of it is read.

Many small values take hundreds of times as long to be read as one long text of the same length: a reader that others
can send anything bounds them by their number. Invariant: finding it takes time in proportion to the length, whatever
the bytes are.
"""

import re
from typing import Final

VALUES_MAX: Final = 50_000
"""Of one request: commas and opening brackets outside texts. What is read then takes some 0.1 s at the most."""
_QUOTES_MAX: Final = 4 * VALUES_MAX + 4
"""As many quotes as the names and texts have of which each has a comma or bracket beside it, and more."""
_TEXT: Final = re.compile(rb'"[^"]*"?')
"""One without escapes. It may lack its end: else each of its quotes would be tried as another beginning."""


def has_too_many_values(payload: bytes) -> bool:
    """Return whether there are more than VALUES_MAX, or it is no JSON at all."""
    if len(payload) <= VALUES_MAX:
        return False
    bare = payload.replace(rb"\\", b"").replace(rb"\"", b"")
    if bare.count(b'"') > _QUOTES_MAX:
        return True
    outline = _TEXT.sub(b"", bare)
    return sum(map(outline.count, (b",", b"[", b"{"))) > VALUES_MAX
