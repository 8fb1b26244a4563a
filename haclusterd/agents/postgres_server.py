"""One PostgreSQL server on this machine, known by its data directory: its processes, its files, what its copy holds.

The processes of a server are those that run the program `postgres` in the data directory: every one of them works
there, and a backend that outlived its main process does, too. Neither names nor a file that says a process id are
believed. What is written into the directory is written as the server's user: that user owns the directory, and could
lead root astray there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from haclusterd.agents.bounded import Ended, run_program
from haclusterd.agents.ocf import ActionError, NodeError
from haclusterd.agents.postgres_copies import Copy, read_history, read_lsn
from haclusterd.agents.postgres_session import Session
from haclusterd.agents.process_table import list_pids, read_stat

PROGRAM = "postgres"
DELETED = " (deleted)"
"""What the kernel appends to the name of a program that was replaced: by an upgrade of the package."""
OLDEST = 13
"""Since then the address of the primary changes without a restart."""
SETTINGS_FILE = "postgresql.auto.conf"
STANDBY_FILE = "standby.signal"
NO_PROCESS = str(2**31 - 1)
"""A process id above every one that the kernel gives."""
FAST, IMMEDIATE, KILL, GO_ON = 2, 3, 9, 18
"""SIGINT, SIGQUIT (PostgreSQL, "Shutting Down the Server"), SIGKILL, and SIGCONT for what was stopped."""
RESERVED = "this number was taken on another node"
POLL_S = 0.02
LONGEST_POLL_S = 0.2


class Account:
    """Who the server runs as."""

    def __init__(self, name: str) -> None:
        import pwd

        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            raise NodeError(f"user: this node has no user {name!r}") from None
        self.name = name
        self.user_id = entry.pw_uid
        self.group_id = entry.pw_gid

    @contextmanager
    def acting(self) -> Iterator[None]:
        """Let this process open files and sockets as that user."""
        if os.geteuid() != 0 or self.user_id == 0:
            yield
            return
        os.setegid(self.group_id)
        os.seteuid(self.user_id)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(0)

    def run(self, words: Sequence[str], timeout_s: float) -> Ended:
        """Run a program as that user to its end."""
        prefix = []
        if os.geteuid() == 0 and self.user_id:
            prefix = ["setpriv", f"--reuid={self.user_id}", f"--regid={self.group_id}", "--init-groups", "--"]
        own = ("OCF_", "HA_", "HACLUSTERD_")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        return run_program([*prefix, *words], timeout_s, environment={**environment, "LC_ALL": "C"})


class Server:
    """The server of one data directory, and the directory."""

    def __init__(self, directory: str, account: Account) -> None:
        self.directory = os.path.realpath(directory)
        self.account = account

    # Processes

    def members(self) -> list[int]:
        """Return the ids of its processes.

        Those of a directory that is gone, or whose disk no longer answers, are known by its name.
        """
        try:
            place = os.stat(self.directory)
        except OSError:
            return [pid for pid in list_pids() if _is_said_to_work_in(pid, self.directory)]
        return [pid for pid in list_pids() if _works_in(pid, self.directory, place)]

    def main_process(self, members: Sequence[int]) -> int:
        """Return that of its processes which the others are children of; 0 when it is gone."""
        recorded = self._pid_file()[:1]
        return next((pid for pid in members if [str(pid)] == recorded), 0)

    def state_of(self, pid: int) -> str:
        """Return the letter that the kernel has for what a process does (proc(5)); T: stopped, D: waits for a disk."""
        stat = read_stat(pid)
        return stat.state if stat is not None else "?"

    def is_being_started(self, members: Sequence[int]) -> bool:
        """Tell whether a process is there that has not written its id down yet."""
        return bool(members) and not self._pid_file()

    def _pid_file(self) -> list[str]:
        try:
            with self.account.acting(), open(os.path.join(self.directory, "postmaster.pid"), encoding="utf-8") as file:
                return [line.strip() for line in file.read().split("\n")]
        except OSError:
            return []

    def forget_process(self) -> None:
        """Forget the id of a main process that is gone, where another process has it, or nobody reaps it: a server that
        starts takes whatever process it finds for a running server. What it asks of shared memory stays in the file.
        """
        words = self._pid_file()
        if not words or not words[0].isdigit() or self.members() or read_stat(int(words[0])) is None:
            return
        self._write("postmaster.pid", "\n".join([NO_PROCESS, *words[1:]]))
        if len(words) > 5 and words[4]:
            socket = os.path.join(words[4], f".s.PGSQL.{words[3]}")
            with self.account.acting(), suppress(OSError):
                with open(f"{socket}.lock", encoding="utf-8") as file:
                    is_same = file.readline().strip() == words[0]
                if is_same:
                    os.unlink(f"{socket}.lock")

    def end(self, fast_s: float, immediate_s: float, remaining: Callable[[], float]) -> None:
        """End it: fast, after so many seconds at once, after so many more by SIGKILL. Return when nobody is left."""
        began = time.monotonic()
        pause, last = POLL_S, 0
        while members := self.members():
            main, elapsed_s = self.main_process(members), time.monotonic() - began
            number = FAST if elapsed_s < fast_s else IMMEDIATE if elapsed_s < fast_s + immediate_s else KILL
            if not main and not self.is_being_started(members):
                number = KILL  # Without the main process nothing writes any more that a new one would not repeat.
            if number != last or number == KILL:
                for pid in [main] if main and number != KILL else members:
                    _send(pid, number)
                for pid in members:
                    _send(pid, GO_ON)  # What is stopped cannot end by itself.
                last = number
            if remaining() < 0.5:
                raise ActionError(f"not-stopped: processes do not die: {members}")
            time.sleep(pause)
            pause = min(pause * 1.3, LONGEST_POLL_S)

    # Connections

    def connect(self, user: str, database: str, timeout_s: float) -> Session:
        """Return a session on its socket; raises what Session does, NoServerError too when it has none yet."""
        words = self._pid_file()
        port, place = (words[3], words[4]) if len(words) > 5 else ("0", "")
        with self.account.acting():
            return Session(os.path.join(place or "/nonexistent", f".s.PGSQL.{port}"), user, database, timeout_s)

    # Files

    @property
    def is_standby_by_file(self) -> bool:
        """Whether it starts as a standby, or did and was not promoted."""
        return os.path.exists(os.path.join(self.directory, STANDBY_FILE))

    def version(self) -> int:
        """Return the major version that made the directory. Raises NodeError when there is none."""
        try:
            with self.account.acting(), open(os.path.join(self.directory, "PG_VERSION"), encoding="utf-8") as file:
                text = file.read().strip()
        except OSError as error:
            raise NodeError(f"pgdata: no database in {self.directory}: {error.strerror}") from None
        if not text.isdigit() or int(text) < OLDEST:
            raise NodeError(f"pgdata: {self.directory} is of PostgreSQL {text}; {OLDEST} is the oldest that will do")
        return int(text)

    def mark_standby(self) -> None:
        """Let the next start be one of a standby."""
        self._write(STANDBY_FILE, "")

    def write_settings(self, settings: Mapping[str, str]) -> None:
        """Put settings into the file that overrules all others; only while no server runs."""
        path = os.path.join(self.directory, SETTINGS_FILE)
        try:
            with self.account.acting(), open(path, encoding="utf-8") as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            lines = []
        kept = [line for line in lines if line.partition("=")[0].strip().lower() not in settings]
        own = [f"{name} = '{_escaped(value)}'" for name, value in settings.items()]
        self._write(SETTINGS_FILE, "\n".join([*kept, *own, ""]))

    def reserve_timelines(self, copy: Copy, first_free: int) -> None:
        """Make the next promotion take the number `first_free`, whatever other nodes used.

        PostgreSQL takes the number after the newest history file that it finds. Those that are missing in between are
        written: histories that left this copy's before its position, so that it never follows one.
        """
        for number in range(copy.timeline + 1, first_free):
            name = os.path.join("pg_wal", f"{number:08X}.history")
            if not os.path.exists(os.path.join(self.directory, name)):
                self._write(name, f"{copy.timeline}\t0/1000000\t{RESERVED}\n")

    def forget_reserved(self) -> None:
        """Take away what was written for a promotion that did not happen: a server that starts would follow it."""
        place = os.path.join(self.directory, "pg_wal")
        with self.account.acting():
            texts = {}
            for name in os.listdir(place):
                if name.endswith(".history"):
                    with open(os.path.join(place, name), encoding="utf-8") as file:
                        texts[name] = file.read()
            newest = max((name for name, text in texts.items() if RESERVED not in text), default="")
            for name in (each for each, text in texts.items() if RESERVED in text and each > newest):
                os.unlink(os.path.join(place, name))

    def forks(self, timeline: int) -> dict[int, int]:
        """Return where the older timelines of one ended."""
        path = os.path.join(self.directory, "pg_wal", f"{timeline:08X}.history")
        try:
            with self.account.acting(), open(path, encoding="utf-8") as file:
                return read_history(file.read())
        except FileNotFoundError:
            return {}

    def timeline_at(self, lsn: int, segment_bytes: int) -> int:
        """Return the newest timeline of which it has the segment with the byte before a position; 0 when none."""
        number = max(0, lsn - 1) // segment_bytes
        per_log = (1 << 32) // segment_bytes
        tail = f"{number // per_log:08X}{number % per_log:08X}"
        with self.account.acting():
            names = os.listdir(os.path.join(self.directory, "pg_wal"))
        return max((int(each[:8], 16) for each in names if len(each) == 24 and each[8:] == tail), default=0)

    def _write(self, name: str, text: str) -> None:
        path = os.path.join(self.directory, name)
        with self.account.acting():
            try:
                descriptor = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
                with open(descriptor, "w", encoding="utf-8") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(f"{path}.new", path)
            except OSError as error:
                raise ActionError(f"not-written: {path}: {error.strerror}") from None


def standby_copy(session: Session, server: Server) -> Copy:
    """Return what the copy of a running standby holds: all that it received and, after a restart, found again."""
    row = session.ask(
        "SELECT greatest(coalesce(pg_last_wal_receive_lsn(), '0/0'), coalesce(pg_last_wal_replay_lsn(), '0/0')),"
        " (SELECT setting FROM pg_settings WHERE name = 'wal_segment_size'),"
        " (SELECT timeline_id FROM pg_control_checkpoint()),"
        " coalesce((SELECT received_tli FROM pg_stat_wal_receiver), 0)"
    )[0]
    lsn = read_lsn(row[0])
    timeline = max(int(row[2]), int(row[3]), server.timeline_at(lsn, int(row[1])))
    return Copy(timeline, lsn, server.forks(timeline))


def primary_copy(session: Session, server: Server) -> Copy:
    """Return what the copy of a running primary holds on its disk."""
    row = session.ask("SELECT pg_current_wal_flush_lsn(), pg_walfile_name(pg_current_wal_lsn())")[0]
    timeline = int(row[1][:8], 16)
    return Copy(timeline, read_lsn(row[0]), server.forks(timeline))


def _works_in(pid: int, directory: str, place: os.stat_result) -> bool:
    if not _is_at_work(pid):
        return False
    try:
        here = os.stat(f"/proc/{pid}/cwd")
    except OSError:
        return _is_said_to_work_in(pid, directory)
    return (here.st_dev, here.st_ino) == (place.st_dev, place.st_ino)


def _is_said_to_work_in(pid: int, directory: str) -> bool:
    """Tell the same by the directory's name, in this agent's view of the file systems: a container has its own."""
    try:
        is_in_view = os.readlink(f"/proc/{pid}/ns/mnt") == os.readlink("/proc/self/ns/mnt")
        return is_in_view and os.readlink(f"/proc/{pid}/cwd").removesuffix(DELETED) == directory and _is_at_work(pid)
    except OSError:
        return False


def _is_at_work(pid: int) -> bool:
    """Tell whether it is a process of the server's program that is not dead."""
    try:
        program = os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return False
    stat = read_stat(pid) if os.path.basename(program.removesuffix(DELETED)) == PROGRAM else None
    return stat is not None and not stat.is_dead


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "''")
