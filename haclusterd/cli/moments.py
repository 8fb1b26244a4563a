"""Times as a person writes them: how far back, a time of today, or a date, with dashes or slashes."""

import re
from datetime import datetime, timedelta

from haclusterd.model import durations

_SLASHES = re.compile(r"\A(\d{4})/(\d{1,2})/(\d{1,2})", re.ASCII)


def _as_iso(day: re.Match[str]) -> str:
    year, month, number = day.groups()
    return f"{year}-{month:0>2}-{number:0>2}"


def moment(written: str) -> str | None:
    """Return a time as the verb takes it; None: it is none."""
    from haclusterd.cli.without_cluster import wall_clock

    if not written:
        return ""
    try:
        durations.parse(written)
    except ValueError:
        pass
    else:
        return written
    clock = re.fullmatch(r"(\d{1,2}):(\d\d)(?::(\d\d))?", written)
    try:
        if clock is None:
            return datetime.fromisoformat(_SLASHES.sub(_as_iso, written)).isoformat()
        hour, minute, second = (int(part or 0) for part in clock.groups())
        now = datetime.fromtimestamp(wall_clock() / 1000).astimezone()
        at = now.replace(hour=hour, minute=minute, second=second, microsecond=0)
        return (at if at <= now else at - timedelta(days=1)).isoformat()
    except ValueError:
        return None
