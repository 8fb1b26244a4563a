"""iso8601: dates, periods and durations as the rules of this cluster read them.

Options and output are those of iso8601(8) of Pacemaker 2.1.5. A time is UTC, so that every node reads the same, and
`--local` is refused.
"""

import re

from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.tools.call import Given, Tool, ToolCall, ToolUsageError, printed
from haclusterd.scheduler.model.dates import add_span, calendar_time, parse_date
from haclusterd.verbs.answers.cluster import ToolOutput

INVALID, UNEXPECTED = 2, 1
_BEFORE_EPOCH_S = 719_162 * 86_400
"""From where `--seconds` counts to 1970: the year 0, which it takes for as long as no year."""
_DURATION = re.compile(
    r"P(?=[0-9T])(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)W)?(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)S)?)?"
)
_UNITS = ("years", "months", "weeks", "days", "hours", "minutes", "seconds")
_LONGEST_DIGITS = 9


def dates(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """iso8601: say when a date is, what a period or a duration comes to, and whether that is what was expected."""
    if "local" in given:
        raise ToolUsageError("--local: every node reads dates as UTC, whatever its time zone")
    lines: list[str] = []
    moment: int | None = None
    shown = ""
    if "now" in given or "date" in given:
        text = "now" if "now" in given else given.text("date")
        moment = context.now // 1000 if text == "now" else _date(context, text)
        if moment is None:
            return _invalid(call, "date/time", text)
        shown = _written(moment, given)
        lines.append(f"{'Current date/time' if text == 'now' else 'Date'}: {shown}")
    if "period" in given:
        ends = _period(given.text("period"))
        if ends is None:
            return _invalid(call, "interval", given.text("period"))
        lines.append(f"Period: {_written(ends[0], given)} to {_written(ends[1], given)}")
    if "duration" in given:
        span = _duration(given.text("duration"))
        if span is None:
            return _invalid(call, "duration", given.text("duration"))
        lines.append(f"Duration: {_spelled(span)}")
        if moment is not None:
            end = _after(moment, span)
            shown = "" if end is None else _written(end, given)
            lines.append(f"Duration ends at: {shown}")
    is_other = "expected" in given and shown != given.text("expected")
    return printed("".join(f"{line}\n" for line in lines), status=UNEXPECTED if is_other else 0)


def _invalid(call: ToolCall, what: str, text: str) -> Outcome[ToolOutput]:
    return printed(err=f"{call.tool}: Invalid {what} specified: {text}\n", status=INVALID)


def _date(context: Context, text: str) -> int | None:
    if re.match(r"[0-9]{1,2}:", text):
        today = calendar_time(context.now // 1000)
        return None if today is None else parse_date(f"{today:%Y-%m-%d}T{text}")
    return parse_date(text)


def _written(moment: int, given: Given) -> str:
    """Write a moment in the form that was asked for."""
    form = given.any_of("seconds", "epoch", "ordinal", "week")
    time = calendar_time(moment)
    if form == "seconds":
        return str(moment + _BEFORE_EPOCH_S)
    if form == "epoch" or time is None:
        return str(moment)
    if form == "week":
        year, week, day = time.isocalendar()
        return f"{year:04}-W{week:02}-{day} {time:%H:%M:%S}Z"
    day_text = f"{time.timetuple().tm_yday:03}" if form == "ordinal" else f"{time:%m-%d}"
    return f"{time.year:04}-{day_text} {time:%H:%M:%S}Z"


def _duration(text: str) -> tuple[int, ...] | None:
    """Return years, months, weeks, days, hours, minutes and seconds; None: it is no duration."""
    found = _DURATION.fullmatch(text)
    if found is None or any(len(each or "") > _LONGEST_DIGITS for each in found.groups()):
        return None
    return tuple(int(each or 0) for each in found.groups())


def _after(moment: int, span: tuple[int, ...]) -> int | None:
    end: int | None = moment
    for unit, count in zip(_UNITS, span, strict=True):
        end = None if end is None else add_span(end, unit, count)
    return end


def _period(text: str) -> tuple[int, int] | None:
    """Return the start and the end of `START/END`, `START/DURATION` or `DURATION/END`; None: it is no period."""
    first, slash, second = text.partition("/")
    if not slash:
        return None
    start, end = parse_date(first), parse_date(second)
    if start is not None and end is None and (span := _duration(second)) is not None:
        end = _after(start, span)
    elif end is not None and start is None and (span := _duration(first)) is not None:
        start = _after(end, tuple(-count for count in span))
    return None if start is None or end is None else (start, end)


def _spelled(span: tuple[int, ...]) -> str:
    """Write a duration in words: `   1 year  2 months 90 seconds (1 minute 30 seconds)`."""
    years, months, weeks, days, hours, minutes, seconds = span
    large = ((4, years, "year"), (2, months, "month"), (2, weeks * 7 + days, "day"))
    words = "".join(f"{count:{wide}} {unit}{'' if count == 1 else 's'} " for wide, count, unit in large if count)
    whole = hours * 3600 + minutes * 60 + seconds
    if not whole:
        return words or "0 seconds"
    small = ((whole // 3600, "hour"), (whole // 60 % 60, "minute"), (whole % 60, "second"))
    parts = " ".join(f"{count} {unit}{'' if count == 1 else 's'}" for count, unit in small if count)
    inside = f" ({parts})" if whole > 59 else ""
    return f"{words}{whole} second{'' if whole == 1 else 's'}{inside}"


TOOLS = {
    "iso8601": Tool(dates, {
        "now": "n now", "date": "d: date:", "period": "p: period:", "duration": "D: duration:",
        "expected": "E: expected:", "seconds": "s seconds", "epoch": "S epoch", "local": "L local",
        "ordinal": "O ordinal", "week": "W week",
    }),
}  # fmt: skip
