"""Asks the installed program whether it could continue this process's work, before this process is replaced by it.

The answer comes from another process: nothing of a package that may be broken is imported here.
"""

import os
import select
import signal
import time
from typing import Final

from haclusterd.adapters.processes.own_command import own_command
from haclusterd.adapters.processes.spawning import spawn

CHECK: Final = "--check"
TIMEOUT_S: Final = 60.0
LONGEST_ANSWER: Final = 4_000


def why_not_to_go_on() -> str:
    """Run this process's own command line with `--check`; return its objection, empty: there is none. May block."""
    command = [*own_command(), CHECK]
    reader, writer = os.pipe()
    try:
        try:
            pid = spawn(command, os.environ, stdin=None, stdout=writer, stderr=writer)
        except OSError as error:
            return f"{command[0]}: {error.strerror}"
        finally:
            os.close(writer)
        answer = _heard(reader)
        if answer is None:
            os.killpg(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(reader)
    if answer is None:
        return f"{' '.join(command)} did not answer within {TIMEOUT_S:g} s"
    if status:
        return answer.strip() or f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}"
    return ""


def _heard(descriptor: int) -> str | None:
    """Return all output until the other end is closed; None when that takes too long."""
    deadline = time.monotonic() + TIMEOUT_S
    found = b""
    while True:
        if not select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return None
        part = os.read(descriptor, 65536)
        if not part:
            return found.decode(errors="replace")
        found = (found + part)[-LONGEST_ANSWER:]
