"""Log lines for journald, for a terminal and for programs.

A line is `kind name=value ...` on standard error, with journald's priority prefix if journald reads it (sd-daemon(3)),
otherwise with the time of day; and, on request, the same as JSON in a file. Lines are written on a thread behind a
bounded queue, since a full pipe or a failed disk must not stop the main loop.
"""

import json
import os
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, TextIO

from haclusterd.adapters.machine.real_time import run_first
from haclusterd.model.records import dataclass
from haclusterd.ports.event_log import FieldValue, Priority

LINES_QUEUED_MAX: Final = 10_000
VALUE_CHARACTERS_MAX: Final = 2_000
LEVEL_VARIABLE: Final = "HACLUSTERD_LOG"
"""`debug`: journald gets lines of priority debug too; other readers always do."""
REDACTED: Final = "(redacted)"

_SECRET = re.compile(r"(?:\A|[-_.])(?:passw\w*|passphrase|secret|token)\Z|[-_]key\Z", re.IGNORECASE)
_BARE = re.compile(r"[A-Za-z0-9_.:/@%+,#()*-]+\Z")


@dataclass(frozen=True, slots=True)
class Line:
    """One line, before it is formatted."""

    at_ms: int
    """Milliseconds since the epoch."""
    kind: str
    priority: Priority
    fields: tuple[tuple[str, str | int | bool], ...]


def make_line(at_ms: int, kind: str, priority: Priority, fields: Mapping[str, FieldValue]) -> Line:
    """Return a line with the fields flattened, redacted and shortened."""
    return Line(at_ms, kind, priority, tuple(_flat(fields)))


def _flat(fields: Mapping[str, FieldValue]) -> Iterator[tuple[str, str | int | bool]]:
    for name, value in fields.items():
        if isinstance(value, Mapping):
            for inner, text in value.items():
                yield f"{name}.{inner}", _presentable(inner, text)
        elif value is not None:
            yield name, _presentable(name, value)


def _presentable(name: str, value: str | int | bool) -> str | int | bool:
    if _SECRET.search(name):
        return REDACTED
    return value if isinstance(value, int) else str(value)[:VALUE_CHARACTERS_MAX]


def line_as_text(line: Line, *, for_journal: bool) -> str:
    """Return a line for people; it holds no control character, whatever the fields hold."""
    start = f"<{line.priority}>" if for_journal else f"{_time_of_day(line.at_ms)} "
    return start + " ".join((line.kind, *(f"{name}={_quoted(value)}" for name, value in line.fields)))


def line_as_json(line: Line) -> str:
    """Return a line for programs."""
    return json.dumps({"at": line.at_ms, "kind": line.kind, "priority": int(line.priority), **dict(line.fields)})


def _quoted(value: str | int | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    if _BARE.match(text):
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _time_of_day(at_ms: int) -> str:
    seconds, ms = divmod(at_ms, 1000)
    return f"{time.strftime('%H:%M:%S', time.localtime(seconds))}.{ms:03d}"


class StreamEventLog:
    """Lines to a text stream and, when `json_file` is given, to that file."""

    def __init__(
        self, stream: TextIO, *, for_journal: bool, wall: Callable[[], int],
        json_file: Path | None = None, least: Priority = Priority.DEBUG,
    ) -> None:  # fmt: skip
        """`least`: lines of lower priority are not written."""
        self._least = least
        self._stream = stream
        self._for_journal = for_journal
        self._wall = wall
        self._json_file = json_file
        self._waiting: deque[Line] = deque()
        self._dropped = 0
        self._is_writing = False
        self._changed = threading.Condition()
        threading.Thread(target=self._run, name="event-log", daemon=True).start()

    def write(self, kind: str, /, *, priority: Priority = Priority.INFO, **fields: FieldValue) -> None:
        """Queue one line."""
        if priority > self._least:
            return
        line = make_line(self._wall(), kind, priority, fields)
        with self._changed:
            if len(self._waiting) >= LINES_QUEUED_MAX:
                self._dropped += 1
                return
            self._waiting.append(line)
            self._changed.notify_all()

    def flush(self, timeout_ms: int) -> bool:
        """Wait until everything queued is written, at most `timeout_ms`; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._is_writing, timeout_ms / 1000)

    def _run(self) -> None:
        run_first()
        while True:
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting)
                lines = tuple(self._take())
            self._put(lines)

    def _take(self) -> Iterator[Line]:
        yield from self._waiting
        if self._dropped:
            yield make_line(self._wall(), "log.lines-dropped", Priority.WARNING, {"count": self._dropped})
        self._waiting.clear()
        self._dropped = 0
        self._is_writing = True

    def _put(self, lines: Iterable[Line]) -> None:
        texts = [line_as_text(line, for_journal=self._for_journal) for line in lines]
        try:
            self._stream.write("".join(f"{text}\n" for text in texts))
            self._stream.flush()
        except (OSError, ValueError):
            pass  # The reader is gone, and there is no other place to report it.
        if self._json_file is not None:
            _append(self._json_file, "".join(f"{line_as_json(line)}\n" for line in lines))


def _append(file: Path, text: str) -> None:
    try:
        with file.open("a", encoding="utf-8") as opened:
            opened.write(text)
    except OSError:
        pass  # The stream has the lines; a failure of the file must not disturb the daemon.


def standard_event_log(*, json_file: Path | None = None) -> StreamEventLog:
    """Return the log of this process: standard error, in journald's format if journald reads it."""
    stream = open(os.dup(sys.stderr.fileno()), "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115 (lives on)
    is_journal = "JOURNAL_STREAM" in os.environ
    return StreamEventLog(
        stream,
        for_journal=is_journal,
        least=Priority.INFO if is_journal and os.environ.get(LEVEL_VARIABLE) != "debug" else Priority.DEBUG,
        wall=lambda: time.time_ns() // 1_000_000,
        json_file=json_file,
    )
