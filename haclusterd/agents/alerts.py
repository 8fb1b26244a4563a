"""What alert agents in Python share: the events that they are called for, files with secrets, one bound on all they do.

An alert agent finds everything in its environment (Pacemaker Administration, "Alert Agents"), under Pacemaker and here;
what only haclusterd says is missing there, and counts as empty.
"""

import json
import os
import signal
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import FrameType
from typing import Any

OK, FAILED, MISCONFIGURED = 0, 1, 2
"""Exit codes."""
SECRET_BYTES_MAX = 64 * 1024
PREFIX = "CRM_alert_"
_NUMBERS = {"interval": "interval_ms", "rc": "exit_code", "target_rc": "target_exit_code", "exec_time": "executed_ms"}
_WORDS = {"kind": "kind", "node": "node", "desc": "description", "rsc": "resource", "task": "task",
          "attribute_name": "attribute", "attribute_value": "value", "incident": "incident"}  # fmt: skip


class WrongSettingError(Exception):
    """Something that an administrator has to correct; the text says what."""


class FailedError(Exception):
    """It could not be delivered; the text says why."""


@dataclass(frozen=True)
class Alert:
    """What the agent was called for."""

    recipient: str
    is_repeated: bool
    """It may have been delivered before."""
    is_test: bool
    alike: int
    """How many events like it were left out since the last call."""
    events: tuple[Mapping[str, Any], ...]
    """Oldest first: `sequence`, `at`, `kind`, `node`, ...; what an event does not say is not there."""

    @property
    def newest(self) -> Mapping[str, Any]:
        """The newest event."""
        return self.events[-1]

    @property
    def incident(self) -> str:
        """The incident of the newest event; empty: of none, or not known."""
        return str(self.newest.get("incident", ""))

    @property
    def subject(self) -> str:
        """The incident, else the moment of the newest event: sequence numbers alone are those of other clusters too."""
        return self.incident or "".join(filter(str.isdigit, str(self.newest.get("at", "")))) or "alert"


def read_alert(environment: Mapping[str, str]) -> Alert:
    """Read what the agent was called for; raise WrongSettingError where it was not called by a cluster."""
    values = {name.removeprefix(PREFIX): value for name, value in environment.items() if name.startswith(PREFIX)}
    if not values.get("kind"):
        raise WrongSettingError("CRM_alert_kind is not set: this is called by the cluster, see --help")
    try:
        listed = json.loads(values["events"]) if values.get("events") else [values]
    except ValueError as error:
        raise WrongSettingError(f"CRM_alert_events is no JSON: {error}") from None
    return Alert(
        recipient=values.get("recipient", ""),
        is_repeated=values.get("repeated") == "true",
        is_test=values.get("test") == "true",
        alike=_number(values.get("alike", "")) or 0,
        events=tuple(_event(each) for each in listed),
    )


def _event(values: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in (
        ("sequence", _number(values.get("node_sequence", ""))),
        ("at", _moment(values)),
        *((_WORDS[name], values.get(name)) for name in _WORDS),
        *((_NUMBERS[name], _number(values.get(name, ""))) for name in _NUMBERS),
    ):
        if value not in (None, ""):
            found[name] = value
    return found


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.removeprefix("-").isdigit() else None


def _moment(values: Mapping[str, str]) -> str | None:
    """Return when it happened, in ISO 8601, UTC, with milliseconds."""
    seconds = _number(values.get("timestamp_epoch", ""))
    if seconds is None:
        return None
    microseconds = _number(values.get("timestamp_usec", "")) or 0
    at = datetime.fromtimestamp(seconds, UTC).replace(microsecond=min(999_999, max(0, microseconds)))
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def in_words(event: Mapping[str, Any]) -> str:
    """Return one line for people."""
    kind, node, said = event.get("kind"), event.get("node", ""), event.get("description", "")
    if kind == "node":
        return f"node {node}: {said}"
    if kind == "fencing":
        return f"fencing: {said}"
    if kind == "attribute":
        return f"attribute {event.get('attribute', '')} of {node} is {event.get('value', '')!r}"
    interval = event.get("interval_ms")
    task = f"{event.get('task', '')}{f' ({interval} ms)' if interval else ''}"
    return f"{event.get('resource', '')} on {node}: {task}: {said}"


def secret_of(path: str, setting: str) -> bytes:
    """Read a file with a secret; raise WrongSettingError where others may read it, too, or it cannot be read."""
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno())
            data = file.read(SECRET_BYTES_MAX + 1)
    except OSError as error:
        raise WrongSettingError(f"{setting}={path}: {error.strerror}") from None
    if not stat.S_ISREG(mode.st_mode) or mode.st_mode & 0o077:
        raise WrongSettingError(f"{setting}={path}: others may read it (chmod 600 {path})")
    if not data.strip() or len(data) > SECRET_BYTES_MAX:
        raise WrongSettingError(f"{setting}={path}: it is empty, or larger than {SECRET_BYTES_MAX} bytes")
    return data


def seconds_of(environment: Mapping[str, str], setting: str, default: float, *, most: float) -> float:
    """Read a setting in seconds (`5`, `2.5`, `5s`); raise WrongSettingError for what is none, or out of its bounds."""
    text = environment.get(setting, "").strip().removesuffix("s")
    try:
        found = float(text) if text else default
    except ValueError:
        found = 0.0
    if not 0 < found <= most:
        raise WrongSettingError(f"{setting}={environment[setting]}: expected seconds, up to {most:g}")
    return found


def run(deliver: Callable[[Mapping[str, str]], str], usage: str, *, deadline_setting: str, deadline_s: float) -> int:
    """Be an agent: deliver within one bound, whatever the other side does; say how it ended; return the exit code."""
    if sys.argv[1:] in (["--help"], ["-h"]):
        sys.stdout.write(usage)
        return OK
    if sys.argv[1:]:
        sys.stderr.write("it takes no arguments; see --help\n")
        return MISCONFIGURED
    bound_s = deadline_s
    try:
        bound_s = seconds_of(os.environ, deadline_setting, deadline_s, most=3600)
        signal.signal(signal.SIGALRM, _too_late)
        signal.setitimer(signal.ITIMER_REAL, bound_s)
        said = deliver(os.environ)
    except WrongSettingError as error:
        sys.stderr.write(f"{error}\n")
        return MISCONFIGURED
    except TimeoutError:
        sys.stderr.write(f"not delivered within {bound_s:g} s\n")
        return FAILED
    except FailedError as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    sys.stdout.write(f"{said}\n")
    return OK


def _too_late(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError
