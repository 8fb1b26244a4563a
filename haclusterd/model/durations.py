"""Durations as users write them: `10`, `10s`, `500ms`, `2min`, `1h`, `PT30S` (Pacemaker Explained, "Time")."""

import re
from functools import lru_cache

_PLAIN = re.compile(r"\s*([0-9]+)\s*([a-zA-Z]*)\s*\Z")
_UNITS_MS = {
    "": 1000, "s": 1000, "sec": 1000, "second": 1000, "seconds": 1000, "ms": 1, "msec": 1,
    "m": 60_000, "min": 60_000, "minute": 60_000, "minutes": 60_000,
    "h": 3_600_000, "hr": 3_600_000, "hour": 3_600_000, "hours": 3_600_000, "d": 86_400_000,
}  # fmt: skip
_ISO = re.compile(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?=\d)|(?=\d+[HS])|\Z)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?\Z")
"""The `T` is often forgotten where only it could be meant: `P10S`."""
_ISO_MS = (604_800_000, 86_400_000, 3_600_000, 60_000, 1000)


_LONGEST_TEXT = 200
LONGEST_MS = 10**14
"""About 3,000 years: what is longer is a mistake, and would not fit where a time less it is kept."""


@lru_cache(maxsize=1024)
def parse(text: str) -> int:
    """Return milliseconds; raise ValueError when it is not a duration, or longer than any can be meant."""
    found = _parse(text)
    if found > LONGEST_MS:
        raise ValueError(f"longer than {LONGEST_MS // _UNITS_MS['d']} days: {text[:40]!r}")
    return found


def _parse(text: str) -> int:
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f"not a duration: {text[:40]!r}... (write it like 30s, 500ms, 2min)")
    plain = _PLAIN.match(text)
    if plain:
        unit = plain.group(2).lower()
        if unit in ("us", "usec"):
            return int(plain.group(1)) // 1000
        if unit in _UNITS_MS:
            return int(plain.group(1)) * _UNITS_MS[unit]
    iso = _ISO.match(text.strip())
    if iso and any(iso.groups()):
        return sum(int(part) * unit for part, unit in zip(iso.groups(), _ISO_MS, strict=True) if part)
    raise ValueError(f"not a duration: {text!r} (write it like 30s, 500ms, 2min)")


Spellings = tuple[tuple[str, str], ...]
"""Durations by name as somebody wrote them, where that is not how `render` writes them."""


def spellings(**texts: str | None) -> Spellings:
    """Return what is to be kept of how durations were written (`start_delay` is the name `start-delay`).

    Nothing of one that is not there, is no duration, or is as `render` writes it; nor of an `interval` or `timeout` of
    0 without a unit.
    """
    kept = ((name.replace("_", "-"), text) for name, text in texts.items() if text is not None)
    return tuple((name, text) for name, text in kept if _is_kept(name, text))


def _is_kept(name: str, text: str) -> bool:
    try:
        return text != render(parse(text)) and (text != "0" or name == "start-delay")
    except ValueError:
        return False


def spell(written: Spellings, name: str, span_ms: int) -> str:
    """Write a duration as it was written, if that is what it is still."""
    text = next((text for each, text in written if each == name), "")
    try:
        return text if text and parse(text) == span_ms else render(span_ms)
    except ValueError:
        return render(span_ms)


def render(span_ms: int) -> str:
    """Write milliseconds in the largest unit that keeps them whole."""
    for unit, size in (("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if span_ms and span_ms % size == 0:
            return f"{span_ms // size}{unit}"
    return "0s" if span_ms == 0 else f"{span_ms}ms"
