"""Agents whose resource is a process: started in the foreground by the agent, in a session of its own.

Invariants: a service process is identified by process id and start time, written by that very process before its exec,
so none can exist unrecorded; its whole family is known by a mark in the environment, and by its session. Where that
record was taken away (an emptied run directory), the service is found by its mark, and recorded again: it must never be
started beside itself. Stop returns only when none of the family is left. Names and command lines are never searched.
Any user can begin processes with any mark: the record is the superuser's to read, since the mark in it cannot be
guessed, and without a record a process counts only with the seal that the daemon has given this agent. A record that
another user can have written is none: with its words the superuser would end whatever process that user likes.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from haclusterd.agents import claim
from haclusterd.agents.cluster_link import INTERPRETER_VARIABLE, LIBRARY_VARIABLE, SOCKET_VARIABLE
from haclusterd.agents.ocf import ActionError, Agent, ConfigurationError, NodeError, NotRunningError, Parameter
from haclusterd.agents.process_table import (
    ORDER_MARK,
    ORDER_SEAL_MARK,
    SEAL_MARK,
    Marks,
    boot_id,
    is_genuine,
    list_pids,
    look_at,
    read_marks,
    read_stat,
)

SERVICE_MARK = "HACLUSTERD_SERVICE"
"""In the environment of a service and all that it starts: which start of which instance it is, and where recorded."""
POLL_S = 0.01
LONGEST_POLL_S = 0.1
LINKS_MAX = 40
"""As many symbolic links as the kernel follows."""
RECORD_MAX = 4096
"""Characters of a record that are read."""
STOP_RESERVE_S = 5.0
"""How much of a stop's timeout is kept for SIGKILL."""

_Account = tuple[str, int, int]
"""Name, user id and group id that a service runs as; None: those of the agent."""

COMMON_PARAMETERS = (
    Parameter("user", shortdesc="Run as this user", longdesc="User that the service runs as; unchanged when empty."),
    Parameter("group", shortdesc="Run as this group", longdesc="Group; the user's own when empty."),
    Parameter(
        "env",
        shortdesc="Environment",
        longdesc='Additional environment: NAME=VALUE words, quoted as in a shell: A=1 B="two words".',
    ),
    Parameter("cwd", shortdesc="Working directory", default="/"),
    Parameter(
        "log_file",
        shortdesc="Output file",
        longdesc="The service's standard output and error are appended to this file; dropped when empty.",
    ),
    Parameter(
        "ready_timeout",
        shortdesc="Longest start",
        longdesc="How long the service may take to be ready; when empty, as long as the start action's timeout allows.",
    ),
    Parameter(
        "stop_signal",
        shortdesc="Signal that asks to end",
        longdesc="Name of the signal that asks the service to end, as TERM, INT or QUIT.",
        default="TERM",
    ),
    Parameter(
        "stop_timeout",
        shortdesc="Time until SIGKILL",
        longdesc="How long after stop_signal the service gets SIGKILL; at most what the stop action's timeout allows.",
        content="time",
        default="20s",
    ),
    Parameter(
        "pidfile",
        shortdesc="Identity file",
        longdesc="Where the process id and start time are kept; in the cluster's state directory when empty.",
        is_unique=True,
    ),
)


class Identity:
    """Which process a service is, and the mark of its family."""

    __slots__ = ("boot", "mark", "pid", "start_time")

    def __init__(self, pid: int, start_time: int, mark: str, boot: str) -> None:
        self.pid = pid
        self.start_time = start_time
        self.mark = mark
        self.boot = boot

    @property
    def is_alive(self) -> bool:
        """Tell whether the main process runs. Raises OSError when that cannot be found out."""
        stat = look_at(self.pid)
        return stat is not None and stat.start_time == self.start_time and not stat.is_dead


class ServiceAgent(Agent):
    """An agent for one foreground process; subclasses say which, and when it is ready."""

    def arguments(self) -> list[str]:
        """Return the service's argument vector."""
        raise NotImplementedError

    def check_ready(self, timeout_s: float) -> None:
        """Return when the service does its work now; raise `ActionError` when it does not."""

    def start(self) -> None:
        """Start the service unless it runs; return when it is ready, and leave nothing running when it never is."""
        identity = self._identity()
        if identity is None or not identity.is_alive:
            self._end_family(identity, 9, 0)
            identity = self._spawn(self.arguments())
        try:
            self._wait_ready(identity)
        except ActionError:
            self._end_family(identity, 9, 0)
            raise

    def stop(self) -> None:
        """End the service and everything that it started."""
        identity = self._identity()
        remaining = self.remaining()
        grace = min(self.seconds("stop_timeout"), max(remaining - STOP_RESERVE_S, remaining / 2))
        self._end_family(identity, self._stop_signal(), grace)

    def monitor(self) -> None:
        """Level 0: the process is there. From level 10 on: it is ready."""
        identity = self._identity()
        if identity is None:
            raise NotRunningError("no service process")
        if not identity.is_alive:
            left = list(_family(identity))
            if left:
                raise ActionError(f"the main process {identity.pid} is gone, and {len(left)} of its processes are left")
            raise NotRunningError(f"the service process {identity.pid} is gone")
        if self.check_level >= 10:
            self.check_ready(max(0.5, self.remaining() - 1))

    def validate(self) -> None:
        """Refuse parameters that cannot work."""
        self._stop_signal()
        self.seconds("stop_timeout")
        if self.text("ready_timeout"):
            self.seconds("ready_timeout")
        split_words("env", self.text("env"))

    # Identity

    @property
    def _identity_path(self) -> str:
        name = f"{self.name}-{self.instance.replace('/', '_')}.pid"
        return self.text("pidfile") or os.path.join(self.state_directory, name)

    def _identity(self) -> Identity | None:
        """Return what is recorded of the service, or what its own processes say when no record can be read."""
        try:
            return self._read_identity()
        except (OSError, ValueError):
            # It was taken away, is on a disk that no longer answers, or the service writes a file of its own there.
            return self._find_identity()

    def _find_identity(self) -> Identity | None:
        found = []
        seal = os.environ.get(SEAL_MARK, "")
        for pid in list_pids():
            marks = read_marks(pid)
            stat = read_stat(pid) if self._is_own(marks) else None
            if stat is not None and not stat.is_dead and is_genuine(marks, stat.start_time, seal):
                found.append((stat.pid != stat.session, stat.start_time, stat.pid, marks[SERVICE_MARK]))
        if not found:
            return None
        _, start_time, pid, mark = min(found)
        with suppress(OSError):
            self._record(pid, start_time, mark)
        return Identity(pid, start_time, mark, boot_id())

    def _is_own(self, marks: Marks) -> bool:
        """Tell whether marks are those of a start of this instance, which was recorded at the same place."""
        return marks.get(SERVICE_MARK, "").startswith(self._mark_start)

    @property
    def _mark_start(self) -> str:
        return f"{self.instance}@{self._identity_path}/".replace(" ", "_")

    def _read_identity(self) -> Identity | None:
        """Return what is recorded in this boot. Raises OSError, and ValueError for anything but a record of this agent.

        Others may put files where it is: only one that they cannot have written, about this instance, is believed.
        """
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(self._identity_path, flags), encoding="utf-8") as stream:
            if not _is_ours_alone(os.fstat(stream.fileno())):
                raise ValueError(f"{self._identity_path} may be anybody's")
            pid, start_time, mark, boot = stream.read(RECORD_MAX).split()
        if not mark.startswith(self._mark_start):
            raise ValueError(f"{self._identity_path} is about another service")
        identity = Identity(int(pid), int(start_time), mark, boot)
        return identity if identity.boot == boot_id() else None

    def _write_identity(self, mark: str, action: int) -> None:
        """Record the process that is to become the service, unless the action that started it was killed meanwhile.

        Asked before and after: either the stop that comes next finds the record, or there will be no service. So a log
        on a disk that hangs, and answers later, starts nothing behind the cluster's back.
        """
        stat = read_stat(os.getpid())
        assert stat is not None
        if os.getppid() == action:
            self._record(stat.pid, stat.start_time, mark, does_replace=False)
        if os.getppid() != action:
            os._exit(127)

    def _record(self, pid: int, start_time: int, mark: str, *, does_replace: bool = True) -> None:
        """Write who the service is. What a later start has recorded is not replaced by an earlier one."""
        os.makedirs(os.path.dirname(self._identity_path), mode=0o755, exist_ok=True)
        temporary = f"{self._identity_path}.{os.getpid()}"
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as stream:
            stream.write(f"{pid} {start_time} {mark} {boot_id()}\n")
        if does_replace:
            os.replace(temporary, self._identity_path)
            return
        try:
            os.link(temporary, self._identity_path)
        finally:
            os.unlink(temporary)

    # Start

    def _spawn(self, arguments: list[str]) -> Identity:
        import signal  # Only a start needs it, and it takes milliseconds to import.

        mark = f"{self._mark_start}{os.getpid()}/{os.urandom(16).hex()}"
        environment = self._service_environment(mark)
        account = self._account(environment)
        os.makedirs(os.path.dirname(self._identity_path), mode=0o755, exist_ok=True)
        read_end, write_end = os.pipe()
        action = os.getpid()
        pid = os.fork()
        if pid == 0:
            problem = "unknown"
            try:
                os.setsid()
                for number in signal.valid_signals():
                    if signal.getsignal(number) is signal.SIG_IGN:  # Also what a shell has ignored: `nohup`, `&`.
                        signal.signal(number, signal.SIG_DFL)
                self._redirect(account)
                self._write_identity(mark, action)
                _become(account)
                os.chdir(self.text("cwd"))
                os.execvpe(arguments[0], arguments, environment)
            except OSError as error:
                problem = f"{os.fsdecode(error.filename or arguments[0])}: {error.strerror}"
            finally:
                os.write(write_end, problem.encode())
                os._exit(127)
        os.close(write_end)
        with open(read_end, "rb") as stream:
            problem_text = stream.read().decode("utf-8", "replace")
        if problem_text:
            os.waitpid(pid, 0)
            self._forget()
            raise NodeError(problem_text)
        identity = self._identity()
        if identity is None:
            raise ActionError(f"{self._identity_path} was taken away")
        return identity

    def _service_environment(self, mark: str) -> dict[str, str]:
        """Return the service's environment: the marks, and none of what was meant for the agent alone."""
        agents_own = (
            ORDER_MARK, ORDER_SEAL_MARK, SOCKET_VARIABLE, INTERPRETER_VARIABLE, LIBRARY_VARIABLE, "OCF_CHECK_LEVEL",
            "OCF_EXIT_REASON_PREFIX",
        )  # fmt: skip
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in agents_own and not name.startswith(("OCF_RESKEY_", "HA_"))
        }
        shims = os.environ.get("HA_SBIN_DIR")
        path = environment.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").split(":")
        environment["PATH"] = ":".join(directory for directory in path if directory != shims)
        environment.update(claim.gang())
        for word in split_words("env", self.text("env")):
            name, equals, value = word.partition("=")
            if not equals or not name:
                raise ConfigurationError(f"env: not NAME=VALUE: {word!r}")
            environment[name] = value
        environment[SERVICE_MARK] = mark
        return environment

    def _account(self, environment: dict[str, str]) -> _Account | None:
        user, group = self.text("user"), self.text("group")
        if not user and not group:
            return None
        import grp
        import pwd

        try:
            entry = pwd.getpwnam(user) if user else pwd.getpwuid(os.getuid())
            group_id = grp.getgrnam(group).gr_gid if group else entry.pw_gid
        except KeyError as error:
            raise NodeError(f"no such account: {error}") from None
        environment.update(HOME=entry.pw_dir, USER=entry.pw_name, LOGNAME=entry.pw_name)
        return entry.pw_name, entry.pw_uid, group_id

    def _redirect(self, account: _Account | None) -> None:
        null = os.open("/dev/null", os.O_RDWR)
        log = self.text("log_file")
        output = _open_log(log, account) if log else null
        for source, target in ((null, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        for descriptor in {null, output}:
            if descriptor > 2:
                os.close(descriptor)

    def _wait_ready(self, identity: Identity) -> None:
        wait_s = self.remaining() - 1
        if self.text("ready_timeout"):
            wait_s = min(wait_s, self.seconds("ready_timeout"))
        deadline = time.monotonic() + wait_s
        pause = POLL_S
        while True:
            if not identity.is_alive:
                raise ActionError(f"the service ended while starting{self._last_words()}")
            try:
                self.check_ready(max(0.1, min(2.0, deadline - time.monotonic())))
            except ActionError as failure:
                if time.monotonic() + pause > deadline:
                    raise ActionError(f"not ready in time: {failure}") from None
            else:
                break
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST_POLL_S)
        if not identity.is_alive:
            raise ActionError(f"the service ended while starting{self._last_words()}")

    def _last_words(self) -> str:
        if not self.text("log_file"):
            return "; what it printed is lost: set log_file"
        words = self._last_lines()
        return f"; its log ends with: {words[-1][:300]}" if words else ""

    def _last_lines(self) -> list[str]:
        """Return the last lines that it wrote into its log."""
        try:
            with _acting(self._account({})), open(self.text("log_file"), "rb") as stream:
                stream.seek(-min(os.fstat(stream.fileno()).st_size, 2000), 2)
                lines = stream.read().decode("utf-8", "replace").split("\n")
        except (OSError, NodeError):
            return []
        return [line.strip() for line in lines if line.strip()]

    # Stop

    def _stop_signal(self) -> int:
        import signal

        name = self.text("stop_signal").upper()
        name = name if name.startswith("SIG") else f"SIG{name}"
        try:
            return signal.Signals[name].value
        except KeyError:
            raise ConfigurationError(f"stop_signal: no such signal: {self.text('stop_signal')!r}") from None

    def _end_family(self, identity: Identity | None, number: int, grace_s: float) -> None:
        """Send `number` to the whole family, after `grace_s` SIGKILL; return when nobody is left."""
        if identity is None:
            self._forget()
            return
        family = list(_family(identity))
        for pid in family:
            _send(pid, number)
            _send(pid, 18)  # SIGCONT: a stopped process cannot end by itself.
        deadline = time.monotonic() + grace_s
        while family:
            if time.monotonic() >= deadline:
                for pid in family:
                    _send(pid, 9)
            if self.remaining() < 0.5:
                raise ActionError(f"processes do not die: {family}")
            time.sleep(POLL_S)
            family = list(_family(identity))
        self._forget()

    def _forget(self) -> None:
        try:
            os.unlink(self._identity_path)
        except OSError:
            return


def split_words(name: str, text: str) -> list[str]:
    """Split a parameter into words as a shell does; nothing is expanded."""
    if not any(character in text for character in "\"'\\#"):
        return text.split()
    import shlex  # It takes milliseconds to import; most values need no quotes.

    try:
        return shlex.split(text)
    except ValueError as error:
        raise ConfigurationError(f"{name}: {error}") from None




def _is_ours_alone(found: os.stat_result) -> bool:
    """Tell whether a file is one that only the superuser, or who runs this agent, can have written."""
    return stat.S_ISREG(found.st_mode) and found.st_uid in (0, os.geteuid()) and not found.st_mode & 0o022


def _family(identity: Identity) -> Iterator[int]:
    """Yield the live processes of a service: those with its mark, and those of its session."""
    leader = read_stat(identity.pid)
    is_own_session = leader is None or leader.start_time == identity.start_time
    for pid in list_pids():
        stat = read_stat(pid)
        if stat is None or stat.is_dead or pid == os.getpid():
            continue
        is_in_session = is_own_session and stat.session == identity.pid
        if is_in_session or read_marks(pid).get(SERVICE_MARK) == identity.mark:
            yield pid


@contextmanager
def _acting(account: _Account | None) -> Iterator[None]:
    """Open files with the rights of a service's account alone: where that may write, it may have put a link."""
    if account is None or os.getuid() != 0:
        yield
        return
    name, user_id, group_id = account
    groups, own_group = os.getgroups(), os.getegid()
    os.initgroups(name, group_id)
    os.setegid(group_id)
    os.seteuid(user_id)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(own_group)
        os.setgroups(groups)


def _open_log(path: str, account: _Account | None) -> int:
    """Open a log to append to, as the service's account or, where that may not, as the superuser. Raises OSError.

    The superuser makes no file where the account, or everybody, could put a link, and follows none there.
    """
    flags = os.O_WRONLY | os.O_APPEND
    try:
        with _acting(account):
            return os.open(path, flags | os.O_CREAT, 0o640)
    except PermissionError:
        if account is None or _is_out_of_reach(path, account):
            return os.open(path, flags | os.O_CREAT, 0o640)
    descriptor = os.open(path, flags | os.O_NOFOLLOW)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(descriptor)
        raise PermissionError(errno.EPERM, f"no file that user {account[0]} may write", path)
    return descriptor


def _is_out_of_reach(path: str, account: _Account, links: int = 0) -> bool:
    """Tell whether an account can change no directory and no link on the way to a file."""
    name, _, group_id = account
    groups = os.getgrouplist(name, group_id)
    at, *parts = os.path.join(os.getcwd(), path).split("/")
    is_shared = False
    for place, part in enumerate(parts, start=1):
        at = f"{at}/{part}"
        try:
            found = os.lstat(at)
        except FileNotFoundError:
            return place == len(parts) and not is_shared
        is_roots = found.st_uid == 0
        if stat.S_ISLNK(found.st_mode):
            target = os.path.join(os.path.dirname(at), os.readlink(at), *parts[place:])
            return is_roots and links < LINKS_MAX and _is_out_of_reach(target, account, links + 1)
        if not is_roots and (is_shared or place < len(parts)):
            return False
        is_shared = bool(found.st_mode & 0o002 or (found.st_mode & 0o020 and found.st_gid in groups))
        if place < len(parts) and is_shared and not found.st_mode & stat.S_ISVTX:
            return False  # In one with the sticky bit nobody replaces what is the superuser's.
    return True


def _become(account: _Account | None) -> None:
    if account is not None:
        name, user_id, group_id = account
        if os.getuid() == 0:
            os.initgroups(name, group_id)
        os.setgid(group_id)
        os.setuid(user_id)


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return
