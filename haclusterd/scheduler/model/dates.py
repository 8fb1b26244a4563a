"""Dates as Pacemaker reads them: ISO 8601 with calendar, ordinal and week dates, and spans counted on the calendar.

Everything is whole seconds since the epoch; what names no offset is UTC, so that every node reads the same. What is
not a date is None, never an exception. Source: Pacemaker Explained, "Rules", "Date/Time Expressions"; ISO 8601:2004.
"""

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from haclusterd.model.instants import WallTime

_DAY_S = 86_400
_EPOCH_DAY = date(1970, 1, 1).toordinal()

_DATE = re.compile(
    r"(?P<year>\d{4})"
    r"(?:-?W(?P<week>\d{2})(?:-?(?P<weekday>\d))?"
    r"|-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?"
    r"|-?(?P<yearday>\d{3})"
    r"|(?P<compact_month>\d{2})(?P<compact_day>\d{2}))?\Z"
)
_TIME = re.compile(
    r"(?P<hour>\d{1,2})(?::?(?P<minute>\d{2})(?::?(?P<second>\d{2})(?:[.,]\d+)?)?)?"
    r"\s*(?P<offset>Z|[+-]\d{2}(?::?\d{2})?)?\Z"
)


_ALWAYS = WallTime(-(2**62))
_FOR_EVER = WallTime(2**62)


class EffectiveTime:
    """The time that a plan is made for, and when time alone may next change the answer."""

    __slots__ = ("_now", "holds_from", "holds_until", "recheck_at")

    def __init__(self, now: WallTime) -> None:
        self._now = now
        self.holds_from = _ALWAYS
        self.holds_until = _FOR_EVER
        """Everything that was asked so far has the same answer from the one time on, before the other."""
        self.recheck_at: WallTime | None = None

    @property
    def now(self) -> WallTime:
        """Milliseconds since the epoch. Where it is enough to know whether a time has come, ask that."""
        self.holds_from, self.holds_until = self._now, WallTime(self._now + 1)
        return self._now

    def has_come(self, moment: WallTime) -> bool:
        """Tell whether that time is now, or is over."""
        is_over = moment <= self._now
        if is_over:
            self.holds_from = max(self.holds_from, moment)
        else:
            self.holds_until = min(self.holds_until, moment)
        return is_over

    @property
    def now_s(self) -> int:
        """Whole seconds since the epoch."""
        return self.now // 1000

    def look_again_at(self, moment_s: int) -> None:
        """Let the plan be made again at that second; the earliest counts."""
        self.look_again(WallTime(moment_s * 1000))

    def look_again(self, moment: WallTime) -> None:
        """Let the plan be made again at that time; the earliest counts."""
        if not self.has_come(moment) and (self.recheck_at is None or moment < self.recheck_at):
            self.recheck_at = moment


@lru_cache(maxsize=1024)
def parse_date(text: str) -> int | None:
    """Return the seconds since the epoch of an ISO 8601 date with or without a time; None when it is none."""
    words = text.strip()
    if words.lower() == "epoch":
        return 0
    day_text, *times = re.split(r"[T ]", words, maxsplit=1)
    day = _day(day_text)
    if day is None:
        return None
    second = _second_of_day(times[0].strip()) if times and times[0] else 0
    return None if second is None else (day.toordinal() - _EPOCH_DAY) * _DAY_S + second


def _day(text: str) -> date | None:
    found = _DATE.match(text)
    if found is None:
        return None
    part = {name: int(value) for name, value in found.groupdict().items() if value is not None}
    year = part["year"]
    try:
        if "week" in part:
            return date.fromisocalendar(year, part["week"], part.get("weekday", 1))
        if "yearday" in part:
            day = date(year, 1, 1) + timedelta(days=part["yearday"] - 1)
            return day if day.year == year else None
        month = part.get("month", part.get("compact_month", 1))
        return date(year, month, part.get("day", part.get("compact_day", 1)))
    except (ValueError, OverflowError):
        return None


def _second_of_day(text: str) -> int | None:
    """Seconds after midnight UTC; an offset may make it negative or more than a day."""
    found = _TIME.match(text)
    if found is None:
        return None
    hour, minute, second = (int(found[name] or 0) for name in ("hour", "minute", "second"))
    if hour > 24 or minute > 59 or second > 60 or (hour == 24 and (minute or second)):
        return None
    return hour * 3600 + minute * 60 + second - _offset_s(found["offset"])


def _offset_s(text: str | None) -> int:
    if text is None or text == "Z":
        return 0
    digits = text[1:].replace(":", "")
    span = int(digits[:2]) * 3600 + int(digits[2:] or "0") * 60
    return -span if text[0] == "-" else span


def add_span(moment_s: int, unit: str, count: int) -> int | None:
    """Return the moment `count` units later; of years and months the day is clipped to the month's length.

    None beyond the calendar's end, or when there is no such unit.
    """
    if unit in _FIXED_S:
        return moment_s + count * _FIXED_S[unit]
    if unit not in ("years", "months"):
        return None
    moment = calendar_time(moment_s)
    if moment is None:
        return None
    months = moment.year * 12 + moment.month - 1 + (count * 12 if unit == "years" else count)
    year, month = months // 12, months % 12 + 1
    if not 1 <= year <= 9999:
        return None
    day = date(year, month, min(moment.day, monthrange(year, month)[1]))
    return (day.toordinal() - _EPOCH_DAY) * _DAY_S + moment_s % _DAY_S


_FIXED_S = {"weeks": 7 * _DAY_S, "days": _DAY_S, "hours": 3600, "minutes": 60, "seconds": 1}


def calendar_time(moment_s: int) -> datetime | None:
    """Return a moment on the calendar, in UTC; None when the calendar does not reach that far."""
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=moment_s)
    except OverflowError:
        return None


def calendar_fields(moment_s: int) -> dict[str, int]:
    """Return what a `date_spec` can ask of a moment, by name; empty when the calendar does not reach that far."""
    moment = calendar_time(moment_s)
    if moment is None:
        return {}
    iso = moment.isocalendar()
    return {
        "years": moment.year,
        "months": moment.month,
        "monthdays": moment.day,
        "hours": moment.hour,
        "minutes": moment.minute,
        "seconds": moment.second,
        "yeardays": moment.timetuple().tm_yday,
        "weekyears": iso.year,
        "weeks": iso.week,
        "weekdays": iso.weekday,
    }
