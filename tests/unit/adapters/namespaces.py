"""A process that outlives SIGKILL for a while, as one does that sleeps in a system call: of a namespace, the first."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from haclusterd.agents.process_table import read_stat

_MADE = subprocess.run(["unshare", "--pid", "--fork", "true"], check=False, capture_output=True)
needs_namespaces = pytest.mark.skipif(_MADE.returncode != 0, reason="needs root, unshare")


def children_of(pid: int) -> list[int]:
    try:
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except FileNotFoundError:
        return []


def first_below(pid: int) -> int:
    """Return the first process of a namespace that a shell has made by `unshare --pid --fork`; 0: it is not there."""
    made = [child for each in children_of(pid) for child in children_of(each)]
    return made[0] if made else 0


class HeldBack:
    """Keeps such a process from ending until it is let go.

    It waits for every process in there to be reaped, and one has a parent outside that is stopped (pid_namespaces(7)).
    """

    def __init__(self) -> None:
        self._helpers: list[subprocess.Popen[bytes]] = []

    def hold(self, first: int) -> None:
        helper = subprocess.Popen(["nsenter", "-t", str(first), "-p", "sleep", "5013"], stderr=subprocess.DEVNULL)
        self._helpers.append(helper)
        end = time.monotonic() + 10
        while not children_of(helper.pid):
            assert helper.poll() is None
            assert time.monotonic() < end
        helper.send_signal(signal.SIGSTOP)
        while (found := read_stat(helper.pid)) is not None and found.state != "T":
            assert time.monotonic() < end

    def let_go(self) -> None:
        for helper in self._helpers:
            helper.send_signal(signal.SIGCONT)
            helper.wait(10)
        self._helpers.clear()
