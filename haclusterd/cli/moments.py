"""Times as a person writes them: how far back, a time of today, or a date, in the forms that crmsh's manual has."""

import re
from datetime import datetime, timedelta

from haclusterd.model import durations

_SLASHES = re.compile(r"\A(\d{4})/(\d{1,2})/(\d{1,2})", re.ASCII)
_AGO = re.compile(r"-?(\d{1,6}) ?(second|sec|minute|min|hour|day|week|[smhdw])s?(?: ago)?", re.ASCII | re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?", re.ASCII)
_HALF_OF_THE_DAY = re.compile(r"(\d{1,2})(?::(\d\d))?\s?([ap])m", re.ASCII | re.IGNORECASE)
_WITH_A_YEAR = ("%d%b%y %H:%M", "%d-%b-%y %H:%M", "%d%b%Y %H:%M", "%d-%b-%Y %H:%M")
_OF_LOGS = ("%Y %b %d %H:%M", "%Y %b %d %H:%M:%S")
"""As syslog writes times, with a year before it."""
FORMS = "1h or '2 days ago', 10:15 or 2pm (today), yesterday, 2026-06-01, or 2026-06-01T12:00:00Z"
"""What is said to who wrote none of them."""


def moment(written: str, now: datetime | None = None) -> str | None:
    """Return a time as the verb takes it; None: it is none. `now` is this machine's own where it is not given."""
    if not written:
        return ""
    try:
        durations.parse(written)
    except ValueError:
        pass
    else:
        return written
    if ago := _AGO.fullmatch(written):
        return f"{int(ago[1]) * _SECONDS[ago[2][0].lower()]}s"
    found = _today(written, now or _now()) or _day(written, now or _now())
    if found is None:
        return None
    # Who is asked takes a time without a zone for UTC; what is printed here is this machine's time.
    return (found if found.tzinfo is not None else found.astimezone()).isoformat()


def _now() -> datetime:
    from haclusterd.cli.without_cluster import wall_clock

    return datetime.fromtimestamp(wall_clock() / 1000).astimezone()


def _today(written: str, now: datetime) -> datetime | None:
    """Return the last time when the clock showed that."""
    if clock := _CLOCK.fullmatch(written):
        hour, minute, second = (int(part or 0) for part in clock.groups())
    elif half := _HALF_OF_THE_DAY.fullmatch(written):
        hour, minute, second = int(half[1]), int(half[2] or 0), 0
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half[3] in "pP" else 0)
    else:
        return None
    try:
        at = now.replace(hour=hour, minute=minute, second=second, microsecond=0)
    except ValueError:
        return None
    return at if at <= now else at - timedelta(days=1)


def _day(written: str, now: datetime) -> datetime | None:
    if written in ("today", "yesterday"):
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight - timedelta(days=written == "yesterday")
    try:
        return datetime.fromisoformat(_SLASHES.sub(_as_iso, written))
    except ValueError:
        pass
    for form in _WITH_A_YEAR:
        if found := _read(written, form):
            return found
    years = (now.year, now.year - 1)
    found_in = (_read(f"{year} {written}", form) for form in _OF_LOGS for year in years)
    return next((found for found in found_in if found is not None and found.astimezone() <= now), None)


def _as_iso(day: re.Match[str]) -> str:
    year, month, number = day.groups()
    return f"{year}-{month:0>2}-{number:0>2}"


def _read(written: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(written, form)  # noqa: DTZ007 (of this machine's own zone, as what is written without one is)
    except ValueError:
        return None
