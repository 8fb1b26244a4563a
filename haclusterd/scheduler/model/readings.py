"""Values of attributes as Pacemaker reads them: what is invalid counts as unset, never as an error."""

import re

from haclusterd.model import durations, scores
from haclusterd.model.properties import read_boolean_or

boolean = read_boolean_or


def score(text: str | None, default: int) -> int:
    """Read a score; of one that continues after its digits, those count."""
    if text is None:
        return default
    try:
        return scores.parse(text)
    except ValueError:
        return max(-scores.INFINITY, min(scores.INFINITY, integer(text, default)))


def pacemakers_score(text: str | None, default: int) -> int:
    """Read a score of a CIB that Pacemaker reads: `inf` is 0 there, and INFINITY in a cluster of our own."""
    return default if text is None else scores.as_in_pacemaker(text)


def duration_ms(text: str | None, default: int) -> int:
    """Read a duration in ms."""
    if text is None:
        return default
    try:
        return durations.parse(text)
    except ValueError:
        return default


_TIMEOUT = re.compile(r"\s*([0-9]+)(?:\.[0-9]*)?\s*([a-zA-Z]*)")


def pacemakers_timeout_ms(text: str) -> int:
    """Read a timeout of a CIB that Pacemaker reads, in ms; 0 when it is none there.

    What counts is the number with which it begins, without a fraction, and the unit after that; ISO 8601, which counts
    where an interval stands, is none (seen with crm_simulate 2.1.5).
    """
    found = _TIMEOUT.match(text)
    return 0 if found is None else duration_ms(f"{found[1]}{found[2]}", 0)


_INTEGER = re.compile(r"\s*([+-]?[0-9]{1,18})(?![0-9])")


def integer(text: str | None, default: int) -> int:
    """Read the whole number with which a text begins, as strtoll(3) does: `1.5` is 1."""
    found = _INTEGER.match(text) if text is not None else None
    return int(found[1]) if found is not None else default


def at_least(text: str | None, minimum: int, default: int) -> int:
    """Read a whole number that must not be less; what is invalid counts as the least."""
    return default if text is None else max(minimum, integer(text, minimum))
