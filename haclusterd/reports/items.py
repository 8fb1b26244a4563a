"""What is reported to a user: coded messages, each with a place and a remedy.

A report is a value: code that finds a fault makes one and continues to look, so that all faults are shown at once; only
the command line and the API turn it into text. Tests look at codes and parameters, never at prose. Nothing here prints.
"""

import re
from collections.abc import Iterable, Mapping

from haclusterd.model.records import dataclass, field
from haclusterd.reports.codes import CODES, Code, CodeRow, Severity
from haclusterd.reports.exit_codes import ExitStatus


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where in a text; lines and columns count from 1, in characters. Column 0: the line as a whole."""

    file: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class ReportItem:
    """One message to the user."""

    code: Code
    severity: Severity
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Fills the code's template; every name of the template is there."""
    place: Place | None = None
    remedy: str = ""
    """What to do about it; empty: nothing."""

    @property
    def message(self) -> str:
        """The code's template, filled in."""
        return CODES[self.code].template.format_map(self.parameters)

    @property
    def exit_status(self) -> ExitStatus:
        """What a program ends with when this is its gravest message."""
        return CODES[self.code].exit_status if self.severity is Severity.ERROR else ExitStatus.OK


def report(
    code: Code,
    /,
    *,
    place: Place | None = None,
    remedy: str | None = None,
    severity: Severity | None = None,
    **parameters: object,
) -> ReportItem:
    """Make a report with the code's own severity and remedy where none are given; parameters become text."""
    return report_with(code, parameters, place=place, remedy=remedy, severity=severity)


def report_with(
    code: Code,
    parameters: Mapping[str, object],
    *,
    place: Place | None = None,
    remedy: str | None = None,
    severity: Severity | None = None,
) -> ReportItem:
    """Do the same with the parameters in a mapping."""
    row = CODES[code]
    texts = {name: _shortened(_quoted(str(value))) for name, value in parameters.items()}
    assert set(texts) == row.names, f"{code}: {sorted(texts)} given, {sorted(row.names)} wanted"
    return ReportItem(
        code=code,
        severity=row.severity if severity is None else severity,
        parameters=texts,
        place=place,
        remedy=_usual(row, texts) if remedy is None else _shortened(remedy),
    )


LONGEST_TEXT = 1000
"""Characters of one parameter: it may quote what somebody wrote."""
LONGEST_WORD, SHOWN_OF_WORD = 300, 80
"""Of a word with more characters than any name of a file, so many are shown."""
_LONG_WORD = re.compile(rf"\S{{{LONGEST_WORD},}}")


def _usual(row: CodeRow, texts: Mapping[str, str]) -> str:
    """Return the code's remedy; nothing when the problem says itself what to write, as in `(write it like 30s)`."""
    says_it = texts.get("problem", "").endswith(")") and "(write " in texts["problem"]
    return "" if says_it else row.remedy.format_map(texts)


def _quoted(text: str) -> str:
    return text if len(text) < LONGEST_WORD else _LONG_WORD.sub(lambda found: f"{found[0][:SHOWN_OF_WORD]}...", text)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."


def has_errors(items: Iterable[ReportItem]) -> bool:
    """Tell whether anything was refused."""
    return any(item.severity is Severity.ERROR for item in items)


def exit_status(items: Iterable[ReportItem], *, is_strict: bool = False) -> ExitStatus:
    """Return what a program should end with: the first error's status.

    With `is_strict` a warning without any error is FAILED (cli.md §3.6, `verify --strict`).
    """
    listed = tuple(items)
    for item in listed:
        if item.severity is Severity.ERROR:
            return item.exit_status
    has_warnings = any(item.severity is Severity.WARNING for item in listed)
    return ExitStatus.FAILED if is_strict and has_warnings else ExitStatus.OK


FAULTS_MAX = 200
"""Reports that are shown at once; where there are more, the wrong file was loaded."""


def each_once(items: Iterable[ReportItem]) -> tuple[ReportItem, ...]:
    """Leave out reports that repeat an earlier one: equal words, equal place."""
    found: dict[object, ReportItem] = {}
    for item in items:
        key = (item.code, item.severity, item.place, tuple(sorted(item.parameters.items())), item.remedy)
        found.setdefault(key, item)
    return tuple(found.values())


def in_reading_order(items: Iterable[ReportItem]) -> tuple[ReportItem, ...]:
    """Sort by file, line and column, each once; what has no place comes last, as found.

    Of more than FAULTS_MAX the first ones are kept (errors before warnings), with a report that says so.
    """
    listed = list(each_once(items))
    if len(listed) > FAULTS_MAX:
        listed.sort(key=lambda item: item.severity is not Severity.ERROR)
        listed = [*listed[:FAULTS_MAX], report(Code.MORE_FAULTS, severity=listed[0].severity, limit=FAULTS_MAX)]
    nowhere = Place("\U0010ffff", 0)
    return tuple(sorted(listed, key=lambda item: item.place or nowhere))
