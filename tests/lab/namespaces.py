"""A machine of the lab as the kernel knows it: one set of net, mount, UTS, IPC and PID namespaces.

Two processes hold it. The shepherd, outside, makes the namespaces and watches a pipe from the lab: when the lab ends,
by whatever means, the pipe closes and the shepherd kills the machine. The init, process 1 inside, mounts what is
private, starts the machine's services, starts them again 200 ms after they end, until it must shut down, and
reaps orphans.

Nothing is mounted or named outside those namespaces, and nothing outlives the lab.
"""

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
RESTART_DELAY_S = 0.2
SHUT_DOWN = signal.SIGUSR1
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/root", "TZ": "UTC"}
LIBC = ctypes.CDLL(None, use_errno=True)


class LabError(Exception):
    """The lab itself could not do what it should; says nothing about the cluster."""


def enter_network(pid: int) -> None:
    """Bring the calling thread, for the rest of its life, into the network of a process."""
    handle = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        _check(LIBC.setns(handle, CLONE_NEWNET), "setns")
    finally:
        os.close(handle)


class Namespaces:
    """One shepherd and one init. `spec`: hostname, groups (directories of cgroups), mounts, directories, services."""

    def __init__(self, spec: dict[str, Any]) -> None:
        lifeline, self._lifeline = os.pipe()
        status, noted = os.pipe()
        self._shepherd = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, json.dumps({**spec, "lifeline": lifeline, "status": noted})],
            pass_fds=(lifeline, noted),
            stdin=subprocess.DEVNULL,
            env=ENVIRONMENT,
        )
        os.close(lifeline)
        os.close(noted)
        self.init = 0
        answer: dict[str, Any] = {}
        with os.fdopen(status) as lines:
            for line in lines:
                answer |= json.loads(line)
                if "error" in answer or {"init", "is_ready"} <= set(answer):
                    break
        if "is_ready" not in answer:
            self.end()
            raise LabError(f"{spec['hostname']} did not start: {answer.get('error', 'no reason given')}")
        self.init = int(answer["init"])

    @property
    def lives(self) -> bool:
        return self._shepherd.poll() is None

    def keep_ended(self) -> None:
        """Let a service that ends from now on stay so, as in a machine that shuts down."""
        os.kill(self.init, SHUT_DOWN)

    def end(self) -> None:
        """Kill everything inside at once, and return when nothing of it is left."""
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        self._shepherd.wait()

    def run(self, *command: str, stdin: str = "", is_checked: bool = True, only_network: bool = False,
            wait_s_max: float = 30) -> str:  # fmt: skip
        """Run a command inside, or only with the network of it; return its output. Raises LabError."""
        namespaces = ("-n",) if only_network else ("-m", "-u", "-i", "-n", "-p")
        done = subprocess.run(
            ["nsenter", "-t", str(self.init), *namespaces, "--", *command],
            env=ENVIRONMENT, input=stdin, capture_output=True, text=True, timeout=wait_s_max,
            check=False,
        )  # fmt: skip
        if is_checked and done.returncode:
            raise LabError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout


def _check(code: int, what: str) -> None:
    if code != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    arguments = (source.encode(), target.encode(), kind.encode() or None, flags, data.encode() or None)
    _check(LIBC.mount(*arguments), f"mount {source} on {target}")


def _shepherd(spec: dict[str, Any]) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    status: int = spec["status"]
    lifeline: int = spec["lifeline"]
    _check(LIBC.unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET), "unshare")
    pid = os.fork()
    if pid == 0:
        os.close(lifeline)
        try:
            _prepare(spec)
            _tell(status, is_ready=True)
        except OSError as error:
            _tell(status, error=str(error))
            os._exit(1)
        _serve(spec)
    _tell(status, init=pid)
    os.close(status)
    ended = os.pidfd_open(pid)
    poller = select.poll()
    for handle in (lifeline, ended):
        poller.register(handle, select.POLLIN | select.POLLHUP)
    poller.poll()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _tell(status: int, **message: Any) -> None:
    os.write(status, json.dumps(message).encode() + b"\n")


def _prepare(spec: dict[str, Any]) -> None:
    for group in spec["groups"]:
        Path(group, "cgroup.procs").write_text("0")
    _mount("none", "/", flags=MS_REC | MS_PRIVATE)
    for source, target, kind, data in spec["mounts"]:
        if kind == "tmpfs":
            # On an empty /run there is nothing yet to mount on.
            os.makedirs(target, exist_ok=True)
        _mount(source, target, kind, 0 if kind else MS_BIND, data)
    _mount("sysfs", "/sys", "sysfs")
    _mount("proc", "/proc", "proc")
    for directory in spec["directories"]:
        os.makedirs(directory, mode=0o700, exist_ok=True)
    name = spec["hostname"].encode()
    _check(LIBC.sethostname(name, len(name)), "sethostname")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True, env=ENVIRONMENT)


def _serve(spec: dict[str, Any]) -> None:
    """Keep the services running, for ever. A service: name, arguments, environment, log."""
    awaited = {signal.SIGCHLD, SHUT_DOWN}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.closerange(3, 1024)
    due = {service["name"]: 0.0 for service in spec["services"]}
    services = {service["name"]: service for service in spec["services"]}
    running: dict[int, str] = {}
    is_shutting_down = False
    while True:
        now = time.monotonic()
        for name in [name for name, at in due.items() if at <= now]:
            del due[name]
            running[_start(services[name])] = name
        wait_s = min(due.values(), default=now + 3600) - now
        noted = signal.sigtimedwait(awaited, max(wait_s, 0.001))
        is_shutting_down = is_shutting_down or (noted is not None and noted.si_signo == SHUT_DOWN)
        for pid in _ended():
            if pid in running and not is_shutting_down:
                due[running.pop(pid)] = time.monotonic() + RESTART_DELAY_S


def _start(service: dict[str, Any]) -> int:
    log = os.open(service["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    actions = [(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
    arguments = service["arguments"]
    pid = os.posix_spawn(
        arguments[0], arguments, service["environment"], file_actions=actions, setsid=True, setsigmask=()
    )
    os.close(log)
    return pid


def _ended() -> list[int]:
    pids = []
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return pids
        if pid == 0:
            return pids
        pids.append(pid)


if __name__ == "__main__":
    _shepherd(json.loads(sys.argv[1]))
