"""The daemon's running account of itself: one line for each event, command and effect.

Machines do not log; they return reasons, and the runtime writes them here. What a person must know reaches them
through status and reports: a line here is never the only trace of a decision.

Contract: `write` returns at once and never raises, whatever becomes of the line; lines come out in the order of the
calls, of which some may be missing under load (then the account says how many). A field whose name says that it is
a secret (`passw*`, `*_key`, `token`, ...) is never written with its value. Any thread may write.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Protocol, TypeAlias

FieldValue: TypeAlias = str | int | bool | None | Mapping[str, str]
"""What a field may hold. A mapping becomes one field for each of its names; None and empty mappings are left out."""


class Priority(IntEnum):
    """How urgent a line is: syslog's numbers (RFC 5424 §6.2.1)."""

    CRITICAL = 2
    ERROR = 3
    WARNING = 4
    NOTICE = 5
    INFO = 6
    DEBUG = 7


class EventLog(Protocol):
    """Where lines go."""

    def write(self, kind: str, /, *, priority: Priority = Priority.INFO, **fields: FieldValue) -> None:
        """Write one line: its kind (as `effect.run-agent`), then the fields in their order."""
        ...

    def flush(self, timeout_ms: int) -> bool:
        """Wait until everything written so far is out, but no longer than this; return whether it is."""
        ...
