"""The findings of lint."""

from enum import StrEnum

from haclusterd.model.records import dataclass


class Severity(StrEnum):
    """The severity of a finding."""

    ERROR = "error"
    """The cluster will do something wrong, or nothing."""
    WARNING = "warning"
    """It does harm under some circumstances, or leaves users without information."""
    NOTE = "note"
    """It could be better."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One defect of an agent."""

    severity: Severity
    code: str
    message: str
    line: int = 0
    """Line of the program; 0: the whole program, or its meta-data."""


def error(code: str, message: str, line: int = 0) -> Finding:
    """Return a finding that is an error."""
    return Finding(Severity.ERROR, code, message, line)


def warning(code: str, message: str, line: int = 0) -> Finding:
    """Return a finding that is a warning."""
    return Finding(Severity.WARNING, code, message, line)


def note(code: str, message: str, line: int = 0) -> Finding:
    """Return a finding that is a note."""
    return Finding(Severity.NOTE, code, message, line)
