"""Scores: integers that saturate at ±INFINITY (Pacemaker Explained, "Constraints": infinity math)."""

import re

INFINITY = 1_000_000

_NUMBER = re.compile(r"[+-]?[0-9]+\Z")
_LEADING = re.compile(r"\s*[+-]?[0-9]+")
_DIGITS_MAX = 18
_PACEMAKERS_WORDS = {"INFINITY": INFINITY, "+INFINITY": INFINITY, "-INFINITY": -INFINITY}
_WORDS = {"infinity": INFINITY, "inf": INFINITY, "mandatory": INFINITY, "advisory": 0}


def add(left: int, right: int) -> int:
    """Add two scores: -INFINITY wins over everything, INFINITY over the rest."""
    if left <= -INFINITY or right <= -INFINITY:
        return -INFINITY
    if left >= INFINITY or right >= INFINITY:
        return INFINITY
    return max(-INFINITY, min(INFINITY, left + right))


def parse(text: str) -> int:
    """Read a score as users write it (`100`, `-inf`, `INFINITY`, `mandatory`); raise ValueError otherwise."""
    word = text.strip()
    if _NUMBER.match(word):
        is_huge = len(word.lstrip("+-0")) > _DIGITS_MAX
        number = INFINITY if is_huge else abs(int(word))
        return min(INFINITY, number) * (-1 if word.startswith("-") else 1)
    sign = -1 if word.startswith("-") else 1
    value = _WORDS.get(word.lstrip("+-").lower())
    if value is None or len(word) - len(word.lstrip("+-")) > 1:
        raise ValueError(f"not a score: {text!r}")
    return sign * value


def as_in_pacemaker(text: str) -> int:
    """Read a score as Pacemaker does (seen with crm_simulate 2.1.5 and 3.0.0).

    INFINITY is written in capitals, with at most a sign; of anything else the whole number counts with which it begins
    (`5.0` is 5), and 0 where there is none (`inf`, `mandatory`). More digits than fit are INFINITY, as in 3.0.0; 2.1.5
    reads 0.
    """
    return found_in_pacemaker(text) or 0


def found_in_pacemaker(text: str) -> int | None:
    """Read a score as `as_in_pacemaker` does; None where there is none, and a default may count."""
    if text in _PACEMAKERS_WORDS:
        return _PACEMAKERS_WORDS[text]
    found = _LEADING.match(text)
    return parse(found[0]) if found is not None else None


def render(score: int) -> str:
    """Write a score as Pacemaker does."""
    if score >= INFINITY:
        return "INFINITY"
    return "-INFINITY" if score <= -INFINITY else str(score)
