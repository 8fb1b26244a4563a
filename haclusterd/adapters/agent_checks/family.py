"""The processes that agents leave behind, found as descendants of this very process.

This process becomes the subreaper (prctl(2)) of its descendants, so that a daemon whose parents have ended is still one
of them. Processes that another daemon starts for an agent (systemd, docker, libvirt) are not. A subreaper has to reap
its orphans, as init does: for an agent that calls `kill -0`, a service that ended and was not reaped still runs.
"""

import ctypes
import functools
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
PR_GET_CHILD_SUBREAPER = 37
GONE_TIMEOUT_S = 2.0
LOOK_S = 0.01
REAP_S = 0.003


def adopt_orphans() -> None:
    """Make this process the subreaper of its descendants, for the rest of its incarnation.

    Raises OSError when the kernel refuses.
    """
    if _libc().prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl PR_SET_CHILD_SUBREAPER")


def _is_subreaper() -> bool:
    """Return whether orphans below this process become its children."""
    answer = ctypes.c_int()
    if _libc().prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl PR_GET_CHILD_SUBREAPER")
    return answer.value != 0


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def wait(process: "subprocess.Popen[bytes]", timeout_s: float) -> bool:
    """Wait for a child for at most `timeout_s` seconds; return whether it has ended.

    A subreaper also reaps every other child that ends meanwhile; any other process leaves its children to those who
    started them.
    """
    if not _is_subreaper():
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
    """Return the descendants of this process, the oldest first; zombies are reaped and left out."""
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
    """Return the ids of all descendants of a process, from the kernel's lists of each thread's children."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(word) for word in children.read_text().split()]
    return [each for child in found for each in (child, *_descendants(child))]


def lasting() -> list[Process]:
    """Return the descendants of this process that do not end by themselves within `GONE_TIMEOUT_S`."""
    deadline = time.monotonic() + GONE_TIMEOUT_S
    while members() and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    return members()


def end(processes: Sequence[Process], number: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to processes; after SIGKILL wait until they have ended, at most `GONE_TIMEOUT_S`."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
    deadline = time.monotonic() + GONE_TIMEOUT_S
    wanted = {process.pid for process in processes}
    while number == signal.SIGKILL and time.monotonic() < deadline:
        if not wanted & {process.pid for process in members()}:
            return
        time.sleep(LOOK_S)


def names(processes: Sequence[Process]) -> str:
    """Return names and ids of the first five processes, and how many more there are."""
    process_names = []
    for process in processes[:5]:
        with suppress(psutil.NoSuchProcess):
            process_names.append(f"{process.name()}[{process.pid}]")
    return " ".join(process_names) + (f" and {len(processes) - 5} more" if len(processes) > 5 else "")


def listening(processes: Sequence[Process]) -> list[Address]:
    """Return the TCP addresses on which the processes listen, sorted."""
    found = set()
    for process in processes:
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            for connection in process.net_connections(kind="tcp"):
                if connection.status == psutil.CONN_LISTEN:
                    found.add((connection.family, connection.laddr.ip, connection.laddr.port))
    return sorted(found)
