"""The table of what can be wrong with a GPU (gpu-faults.toml): read, laid under an administrator's, and checked.

One judgement for all who judge: the watcher, the agent gpu-health and `crm gpu explain` read the same rows. A table
with a mistake is refused whole and by name; who asked continues with the one that came with the program. Stands
alone, like all of this room.
"""

from __future__ import annotations

import json
import os
import re

TYPE_CHECKING = False  # As typing says it; importing that takes half a megabyte.
if TYPE_CHECKING:
    from typing import Any

OWN = os.path.join(os.path.dirname(os.path.realpath(__file__)), "gpu-faults.toml")
LEVELS = ("ok", "degraded", "unknown", "drain", "failed")
"""degraded: use others first. unknown: it does not answer. drain: nothing new, move what can be moved. failed: gone."""
OK, DEGRADED, UNKNOWN, DRAIN, FAILED = range(len(LEVELS))
APPLICATION, IGNORED = "application", "ignored"
SEVERITIES = ("failed", "drain", "unknown", "degraded", APPLICATION, IGNORED)
SCOPES = ("device", "node", "fabric", "resource")
RUNGS = ("none", "restart", "other-device", "reset", "reload", "reboot", "operator")
ACTIONS = (
    "reset-gpu", "restart-app", "restart-node", "restart-vm", "check-mechanicals", "update-firmware", "check-uvm",
    "workflow", "ignore", "contact-support",
)  # fmt: skip
STICKY = 10**9
"""Good samples that never come: it ends with a reboot, a reset, or when the resource is stopped."""
LOOKS_MAX = 10_000
BYTES_MAX = 1_000_000
FORMAT = 1


class TableError(Exception):
    """A table cannot be used; `problems` says each reason: the line (0: none) and what to do."""

    def __init__(self, problems: list[tuple[int, str]]) -> None:
        super().__init__("; ".join(f"line {line}: {text}" if line else text for line, text in problems))
        self.problems = problems


class Fault:
    """One row: the name of a fault and all that is said of it."""

    __slots__ = ("advice", "back", "clear_after", "is_watched", "level", "level_with_verdict", "name", "number",
                 "raise_after", "rung", "scope", "severity", "signal", "text")  # fmt: skip

    def __init__(self, name: str, row: dict[str, Any]) -> None:
        self.name = name
        self.number: int = row["class"]
        self.text: str = row["text"]
        self.signal: str = row["signal"]
        self.severity: str = row["severity"]
        self.level = level(self.severity)
        self.level_with_verdict = level(row.get("severity-with-verdict", self.severity))
        self.scope: str = row["scope"]
        self.raise_after: int = row.get("raise-after", 1)
        self.clear_after: int = row.get("clear-after", 1) or STICKY
        self.back: str = row["back"]
        self.rung: str = row["rung"]
        self.advice: str = row["advice"]
        self.is_watched: bool = row.get("watched", True)


class XidRow:
    """One number of NVIDIA's catalogue."""

    __slots__ = ("action", "after", "code", "severity", "text")

    def __init__(self, code: int, row: dict[str, Any]) -> None:
        self.code = code
        self.severity: str = row["severity"]
        self.action: str = row.get("action", "contact-support")
        self.text: str = row.get("text", "")
        self.after: int = row.get("after", 1)


class Table:
    """All rows."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.faults = {name: Fault(name, row) for name, row in document["fault"].items()}
        self.xids = {int(code): XidRow(int(code), row) for code, row in document["xid"].items()}

    def xid(self, code: int) -> XidRow:
        """Return what is known of an Xid; one that is not in the table is judged as the row `xid-unknown` says."""
        known = self.xids.get(code)
        return known or XidRow(code, {"severity": self.faults["xid-unknown"].severity})

    def text_of(self, name: str) -> str:
        """Return in words what a fault (`lost`, `xid-79`) is."""
        fault = self.faults.get(name)
        if fault is not None:
            return fault.text
        code = code_of(name)
        return "" if code is None else self.xid(code).text or self.faults["xid-unknown"].text

    def rules(self) -> dict[str, tuple[int, int]]:
        """Return, for each fault, after how many looks it is believed, and after how many without it it is over."""
        return {name: (fault.raise_after, fault.clear_after) for name, fault in self.faults.items()}


def code_of(name: str) -> int | None:
    """Return the number of `xid-NUMBER`; None for another name."""
    word, _, number = name.partition("-")
    return int(number) if word == "xid" and number.isdigit() else None


def level(severity: str) -> int:
    """Return the level of a severity; what condemns no device is OK."""
    return LEVELS.index(severity) if severity in LEVELS else OK


def load(override: str = "") -> Table:
    """Return the table that came with the program, with the rows of another file over it, if there is one.

    Raises TableError, with what is wrong with that file.
    """
    return Table(_merged(override))


def load_apart(override: str = "") -> Table:
    """Return what `load` does, read by another process: the reader of TOML takes 1.5 MB for as long as a process lives.

    Raises TableError likewise, and OSError where no process can be begun.
    """
    source, target = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            _write_document(override, target)
        finally:
            os._exit(0)
    os.close(target)
    with open(source, "rb") as stream:
        found = json.loads(stream.read() or b"{}")
    os.waitpid(pid, 0)
    if "document" not in found:
        raise TableError([(line, text) for line, text in found.get("problems", [(0, "it could not be read")])])
    return Table(found["document"])


def _write_document(override: str, target: int) -> None:
    try:
        found: dict[str, Any] = {"document": _merged(override)}
    except TableError as error:
        found = {"problems": error.problems}
    with open(target, "wb") as stream:
        stream.write(json.dumps(found).encode())


def _merged(override: str) -> dict[str, Any]:
    document = _parse(_read(OWN))
    if override and os.path.exists(override):
        text = _read(override)
        problems = lint(text)
        if problems:
            raise TableError(problems)
        other = _parse(text)
        for kind in ("fault", "xid"):
            for name, row in other.get(kind, {}).items():
                document[kind][name] = {**document[kind].get(name, {}), **row}
    return document


def lint(text: str) -> list[tuple[int, str]]:
    """Return what is wrong with a table of an administrator, in order of lines: the line (0: none), and the reason."""
    try:
        document = _parse(text)
    except TableError as error:
        return error.problems
    known = _parse(_read(OWN))
    problems = [
        (_line_of(text, key), f"{key!r} is none of: format, fault, xid")
        for key in document
        if key not in ("format", "fault", "xid")
    ]
    if document.get("format", FORMAT) != FORMAT:
        problems.append((_line_of(text, "format"), f"format: this program reads {FORMAT}"))
    for kind, check in (("fault", _fault_problems), ("xid", _xid_problems)):
        rows = document.get(kind, {})
        if not isinstance(rows, dict):
            problems.append((_line_of(text, kind), f"{kind}: expected a table of rows"))
            continue
        for name, row in rows.items():
            heading = f"fault.{name}" if kind == "fault" else name
            problems += [(_line_of(text, heading), each) for each in check(name, row, known[kind].get(name))]
    return sorted(problems)


def rows_in(text: str) -> int:
    """Return how many rows a table has that can be used."""
    try:
        document = _parse(text)
    except TableError:
        return 0
    return sum(len(document[kind]) for kind in ("fault", "xid") if isinstance(document.get(kind), dict))


def _fault_problems(name: str, row: Any, known: dict[str, Any] | None) -> list[str]:
    place = f"fault.{name}"
    if known is None:
        return [f"{place}: no such fault; `crm gpu explain` lists them"]
    if not isinstance(row, dict):
        return [f"{place}: expected keys, as severity = \"drain\""]
    found = [_value_problem(key, value, known) for key, value in row.items()]
    return [f"{place}: {problem}" for problem in found if problem]


def _value_problem(key: str, value: Any, known: dict[str, Any]) -> str:
    choices = _CHOICES.get(key)
    if choices is not None:
        return "" if value in choices else f"{key}: {value!r} is none of: {', '.join(choices)}"
    if key in ("raise-after", "clear-after"):
        least = 1 if key == "raise-after" else 0
        is_good = _is_number(value) and least <= value <= LOOKS_MAX
        return "" if is_good else f"{key}: expected a number of looks, {least} to {LOOKS_MAX}"
    if key in ("text", "signal", "back", "advice"):
        return "" if isinstance(value, str) and value else f"{key}: expected a text"
    # Of a copy of the whole table what cannot be set is as it was.
    return "" if value == known.get(key) else f"{key!r} is not a key that can be set here"


_CHOICES = {"severity": SEVERITIES, "severity-with-verdict": SEVERITIES, "scope": SCOPES, "rung": RUNGS}


def _xid_problems(name: str, row: Any, known: dict[str, Any] | None) -> list[str]:
    place = f"xid.{name}"
    if not name.isdigit():
        return [f"{place}: an Xid is a number"]
    if not isinstance(row, dict):
        return [f"{place}: expected keys, as {{ severity = \"degraded\" }}"]
    found = [] if known or "severity" in row else [f"{place}: a new row needs severity"]
    for key, value in row.items():
        choices = {"severity": SEVERITIES, "action": ACTIONS}.get(key)
        if choices is not None:
            if value not in choices:
                found.append(f"{place}: {key}: {value!r} is none of: {', '.join(choices)}")
        elif key == "after":
            if not _is_number(value) or not 1 <= value <= LOOKS_MAX:
                found.append(f"{place}: after: expected a number of errors, 1 to {LOOKS_MAX}")
        elif key != "text" or not isinstance(value, str):
            found.append(f"{place}: {key!r} is none of: severity, action, text, after")
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _line_of(text: str, heading: str) -> int:
    """Return the first line with a heading `[fault.NAME]`, or a key; 0: it is written in another way."""
    quoted = re.escape(heading)
    pattern = re.compile(rf"\s*(\[+\s*{quoted}\s*\]|\[+\s*xid\.{quoted}\s*\]|\"?{quoted}\"?\s*=)")
    return next((number for number, line in enumerate(text.split("\n"), 1) if pattern.match(line)), 0)


def _read(path: str) -> str:
    try:
        with open(path, "rb") as stream:
            data = stream.read(BYTES_MAX + 1)
    except OSError as error:
        raise TableError([(0, f"{path}: {error.strerror}")]) from None
    if len(data) > BYTES_MAX:
        raise TableError([(0, f"{path}: longer than {BYTES_MAX} bytes")])
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise TableError([(line, "not UTF-8")]) from None


def _parse(text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        found = re.search(r"at line (\d+)", str(error))
        raise TableError([(int(found[1]) if found else 0, f"not TOML: {error}")]) from None
