"""Measurements in a child process with a deadline, because a broken device does not answer: it hangs.

A call into a driver or a stuck file system may never return, and cannot be ended from within its own process. So it is
made in a child that names what it touches before it touches it (a line `{"at": NAME}`), and tells what it found in
further lines of JSON. When it is silent for too long it is ended, and the name says what hung.

Invariants: this returns in time whatever the child does, also when the child cannot be killed (uninterruptible sleep);
of such children at most one is left behind: while it lives no other is started. It must never wait for a child without
a deadline.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

from haclusterd.agents.cluster_link import INTERPRETER_VARIABLE
from haclusterd.agents.process_table import is_running, read_stat

TERM_WAIT_S = 1.0
KILL_WAIT_S = 1.0
LONGEST_OUTPUT = 4 * 1024 * 1024
START = "start"
"""What a child is at before it says so."""


class Findings:
    """What a child reported, and how it ended."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.hung_at = ""
        """What it was at when it fell silent; empty: it ended by itself."""
        self.problem = ""
        """Why it ended early; empty: it did not."""
        self.orphan: tuple[int, int] | None = None
        """Process id and start time of a child that could not be killed."""


def interpreter() -> str:
    """Return the Python that has this program's dependencies: the daemon's, else the first on the path."""
    return os.environ.get(INTERPRETER_VARIABLE, "") or "python3"


def is_left(orphan: Any) -> bool:
    """Tell whether a child that could not be killed is still there."""
    return bool(orphan) and is_running(int(orphan[0]), int(orphan[1]))


def run_child(
    script: str,
    question: dict[str, Any],
    *,
    silence_s_max: Callable[[str], float],
    total_s: float,
    environment: dict[str, str] | None = None,
) -> Findings:
    """Run a script of this room with a question, as JSON in its argument.

    It may be silent for `silence_s_max(what it is at)`, START at first, and take `total_s` in all.
    """
    findings = Findings()
    with open(os.memfd_create("stderr", 0), "w+b") as errors:
        try:
            child = subprocess.Popen(
                [interpreter(), "-E", script, json.dumps(question)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **(environment or {})},
                cwd="/",
            )
        except OSError as error:
            findings.problem = f"{interpreter()}: {error.strerror}"
            return findings
        assert child.stdout is not None
        _listen(child, findings, silence_s_max, time.monotonic() + total_s)
        child.stdout.close()
        _end(child, findings)
        if not findings.hung_at and child.returncode:
            errors.seek(0)
            lines = errors.read(LONGEST_OUTPUT).decode("utf-8", "replace").strip().split("\n")
            findings.problem = f"the measurement ended with status {child.returncode}: {lines[-1][:300]}"
    return findings


def _listen(
    child: subprocess.Popen[bytes], findings: Findings, silence_s_max: Callable[[str], float], deadline: float
) -> None:
    """Collect lines until the child ends, is silent for too long, or says too much."""
    assert child.stdout is not None
    descriptor = child.stdout.fileno()
    at, buffer, size = START, b"", 0
    while size < LONGEST_OUTPUT:
        left_s = deadline - time.monotonic()
        ready, _, _ = select.select([descriptor], [], [], max(0.0, min(silence_s_max(at), left_s)))
        if not ready:
            findings.hung_at = at
            return
        data = os.read(descriptor, 65536)
        if not data:
            return
        size += len(data)
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            item = json.loads(line)
            if "at" in item:
                at = item["at"]
            else:
                findings.items.append(item)
    findings.problem = "the measurement printed too much"


def _end(child: subprocess.Popen[bytes], findings: Findings) -> None:
    """Wait for a child that has finished, end one that has not; in a bounded time."""
    if not findings.hung_at and not findings.problem and _is_gone(child, TERM_WAIT_S):
        return
    for number, wait_s in ((signal.SIGTERM, TERM_WAIT_S), (signal.SIGKILL, KILL_WAIT_S)):
        child.send_signal(number)
        if _is_gone(child, wait_s):
            return
    stat = read_stat(child.pid)
    findings.orphan = (child.pid, stat.start_time) if stat is not None else None
    child.returncode = -signal.SIGKILL


def _is_gone(child: subprocess.Popen[bytes], wait_s: float) -> bool:
    try:
        child.wait(wait_s)
    except subprocess.TimeoutExpired:
        return False
    return True
