"""The processes that agents leave behind, found as the descendants of this very process.

This process becomes the subreaper (prctl(2)) of all that it starts, so that a daemon which leaves its parents stays in
its family. What an agent asks another daemon to start (systemd, docker, libvirt) is not in it. From then on it has to
do init's work as well: a dead service that nobody reaps looks alive to an agent that asks `kill -0`.
"""

import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
from psutil import Process as Process

Address = tuple[socket.AddressFamily, str, int]
PR_SET_CHILD_SUBREAPER = 36
GONE_PATIENCE_S = 2.0
LOOK_S = 0.01
REAP_S = 0.003


_adopts = False


def adopt_orphans() -> None:
    """Make every process that loses its parent below this one a child of this one, from now on."""
    global _adopts  # noqa: PLW0603 (as the kernel has it: of the whole process, and never taken back)
    _adopts = True
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def wait(process: "subprocess.Popen[bytes]", timeout_s: float) -> bool:
    """Wait for a child, and reap whatever else dies meanwhile; False: it did not end in time."""
    if not _adopts:
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout_s)
        return process.poll() is not None
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if dead is None:
            time.sleep(REAP_S)
        elif dead.si_pid == process.pid:
            process.wait()
            return True
        else:
            os.waitpid(dead.si_pid, 0)
    return False


def members() -> list[Process]:
    """Return what runs below this process, the eldest first."""
    found = []
    for pid in _descendants(os.getpid()):
        with suppress(psutil.NoSuchProcess):
            process = Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                with suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)
                continue
            found.append((process.create_time(), process.pid, process))
    return [process for _, _, process in sorted(found, key=lambda each: each[:2])]


def _descendants(pid: int) -> list[int]:
    """Return the ids of all that descends from a process. The kernel tells it without reading the whole of /proc."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(word) for word in children.read_text().split()]
    return [each for child in found for each in (child, *_descendants(child))]


def lasting() -> list[Process]:
    """Return what runs below this process and does not end by itself at once."""
    deadline = time.monotonic() + GONE_PATIENCE_S
    while members() and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    return members()


def end(processes: Sequence[Process], number: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to processes, and after SIGKILL wait until they are gone."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
    deadline = time.monotonic() + GONE_PATIENCE_S
    wanted = {process.pid for process in processes}
    while number == signal.SIGKILL and time.monotonic() < deadline:
        if not wanted & {process.pid for process in members()}:
            return
        time.sleep(LOOK_S)


def names(processes: Sequence[Process]) -> str:
    """Return the processes' names and ids, for people."""
    said = []
    for process in processes[:5]:
        with suppress(psutil.NoSuchProcess):
            said.append(f"{process.name()}[{process.pid}]")
    return " ".join(said) + (f" and {len(processes) - 5} more" if len(processes) > 5 else "")


def listening(processes: Sequence[Process]) -> list[Address]:
    """Return the addresses at which the processes listen (TCP)."""
    found = set()
    for process in processes:
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            for connection in process.net_connections(kind="tcp"):
                if connection.status == psutil.CONN_LISTEN:
                    found.add((connection.family, connection.laddr.ip, connection.laddr.port))
    return sorted(found)
