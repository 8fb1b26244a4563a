"""A coded report: what a person is told, with where, and what to do about it.

Invariant: tests and programs look at `code`; people read `message` and `remedy`. Nothing below the command line prints.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from haclusterd.reports.codes import Code


class Severity(StrEnum):
    """How bad it is. An ERROR refuses the whole request."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a text; lines and columns count from 1, 0 is unknown."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return ":".join([self.source, *(str(part) for part in (self.line, self.column) if part)])


@dataclass(frozen=True, slots=True)
class ReportItem:
    """One thing to tell."""

    severity: Severity
    code: Code
    message: str
    remedy: str = ""
    """What to do, as a sentence or a command."""
    subject: str = ""
    """The id or name that it is about."""
    place: Place | None = None


def error(
    code: Code, message: str, *, remedy: str = "", subject: str = "", place: Place | None = None
) -> ReportItem:
    """Make an error."""
    return ReportItem(Severity.ERROR, code, message, remedy, subject, place)


def warning(
    code: Code, message: str, *, remedy: str = "", subject: str = "", place: Place | None = None
) -> ReportItem:
    """Make a warning."""
    return ReportItem(Severity.WARNING, code, message, remedy, subject, place)


def info(code: Code, message: str, *, remedy: str = "", subject: str = "") -> ReportItem:
    """Make a piece of information."""
    return ReportItem(Severity.INFO, code, message, remedy, subject)


def has_errors(reports: Iterable[ReportItem]) -> bool:
    """Tell whether anything refuses the request."""
    return any(report.severity is Severity.ERROR for report in reports)
