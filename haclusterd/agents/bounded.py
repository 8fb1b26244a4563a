"""Programs that an agent runs, and calls that may never return, with a deadline that holds whatever they do.

`subprocess.run(timeout=...)` kills a child at its deadline, and then waits for it without one: a child in
uninterruptible sleep (a stuck disk, a dead NFS server) takes the agent with it. Here a child that does not die is left
behind, and named. Nothing of it stays in the way: its output goes to memory, not into a pipe.

Invariants: this returns in time; a program that is given up has been killed with all that it started, so that it does
nothing later. A call that hangs is not made again while it hangs.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Sequence

from haclusterd.agents.ocf import ActionError, NodeError
from haclusterd.agents.process_table import is_running, list_pids, read_stat

KILL_WAIT_S = 1.0
POLL_S = 0.005
LONGEST_OUTPUT = 1024 * 1024
SYSTEM_DIRECTORIES = ("/usr/sbin", "/sbin")
IGNORED = (13, 25)
"""SIGPIPE and SIGXFSZ, which Python ignores; a program expects them to end it."""


class TimedOutError(ActionError):
    """A program or a call did not end in time."""


class Ended:
    """How a program ended: exit status (128 and the signal when one ended it), output and errors, cut at a MiB."""

    __slots__ = ("errors", "output", "status")

    def __init__(self, status: int, output: str, errors: str) -> None:
        self.status = status
        self.output = output
        self.errors = errors

    @property
    def last_words(self) -> str:
        """The last line that it wrote, of its errors if there are any."""
        lines = [line.strip() for text in (self.output, self.errors) for line in text.splitlines() if line.strip()]
        return lines[-1][:300] if lines else f"exit status {self.status}"


def run_program(
    words: Sequence[str], timeout_s: float, *, given: str = "", environment: dict[str, str] | None = None
) -> Ended:
    """Run a program to its end; `given` is its standard input.

    Raises NodeError when it cannot be started, TimedOutError when it took longer.
    """
    with (
        open(os.memfd_create("given"), "w+b") as reads,
        open(os.memfd_create("output"), "w+b") as output,
        open(os.memfd_create("errors"), "w+b") as errors,
    ):
        reads.write(given.encode())
        reads.seek(0)
        pid = _begin(words, reads.fileno(), output.fileno(), errors.fileno(), environment)
        status = _wait(pid, time.monotonic() + timeout_s)
        if status is None:
            _end_tree(pid)
            _wait(pid, time.monotonic() + KILL_WAIT_S)
            raise TimedOutError(f"{os.path.basename(words[0])} did not end within {timeout_s:.0f} s")
        texts = []
        for stream in (output, errors):
            stream.seek(0)
            texts.append(stream.read(LONGEST_OUTPUT).decode("utf-8", "replace"))
    number = os.waitstatus_to_exitcode(status)
    return Ended(number if number >= 0 else 128 - number, texts[0], texts[1])


def _begin(words: Sequence[str], reads: int, output: int, errors: int, environment: dict[str, str] | None) -> int:
    actions = [(os.POSIX_SPAWN_DUP2, source, target) for source, target in ((reads, 0), (output, 1), (errors, 2))]
    environment = dict(os.environ) if environment is None else environment
    try:
        return os.posix_spawn(_find(words[0]), list(words), environment, file_actions=actions, setsigdef=IGNORED)
    except OSError as error:
        raise NodeError(f"program {words[0]!r}: {error.strerror}") from None


def _find(name: str) -> str:
    """Return a program's path; those for administrators are found without being on the agent's own path."""
    if "/" in name:
        return name
    for directory in (*os.environ.get("PATH", os.defpath).split(":"), *SYSTEM_DIRECTORIES):
        path = os.path.join(directory, name)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    raise NodeError(f"program {name!r} is not installed")


def _wait(pid: int, deadline: float) -> int | None:
    """Return the wait status of a child; None when it still runs at the deadline."""
    pause = POLL_S
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return None
        time.sleep(min(pause, left_s))
        pause = min(pause * 1.3, 0.05)


def _end_tree(pid: int) -> None:
    """Kill a child with all its descendants: what they would do later, nobody expects any more."""
    parents = {each: stat.parent for each in list_pids() if (stat := read_stat(each)) is not None}
    tree = [pid]
    for each in tree:
        tree += [child for child, parent in parents.items() if parent == each]
    for each in tree:
        try:
            os.kill(each, 9)
        except OSError:
            continue


def call_in_child(function: Callable[[], str], timeout_s: float, record: str) -> str:
    """Return what a function returns, which may hang in the kernel: it runs in a child of its own.

    `record` is a file that names a child that was left behind; while that lives, no other is made.
    Raises TimedOutError, or ActionError with the words of an OSError that the function raised.
    """
    since = _hangs_since(record)
    if since:
        raise TimedOutError(f"the kernel has not answered process {since} since an earlier check")
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        _answer(function, write_end)
    os.close(write_end)
    with open(read_end, "rb", buffering=0) as stream:
        ready, _, _ = select.select([stream], [], [], timeout_s)
        answer = stream.read(65536) if ready else None
    if not answer:
        os.kill(pid, 9)
    if _wait(pid, time.monotonic() + KILL_WAIT_S) is None:
        _leave(pid, record)
    if answer is None:
        raise TimedOutError(f"no answer within {timeout_s:.0f} s")
    kind, _, text = answer.decode("utf-8", "replace").partition(" ")
    if kind != "ok":
        raise ActionError(text or "the check ended without an answer")
    return text


def _answer(function: Callable[[], str], write_end: int) -> None:
    """Call the function, tell what it said, and end this process."""
    text = "error "
    try:
        # Who reads what the agent prints may wait for the end of it, and this process may stay for ever.
        null = os.open("/dev/null", os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        text = f"ok {function()}"
    except OSError as error:
        text = f"error {error.filename or ''}: {error.strerror}".replace(" : ", " ")
    finally:
        os.write(write_end, text.encode("utf-8", "replace"))
        os._exit(0)


def _hangs_since(record: str) -> int:
    """Return the process id of a child that hangs still; 0 when there is none."""
    try:
        with open(record, encoding="utf-8") as stream:
            pid, start_time = (int(word) for word in stream.read().split())
    except (OSError, ValueError):
        return 0
    if is_running(pid, start_time):
        return pid
    os.unlink(record)
    return 0


def _leave(pid: int, record: str) -> None:
    stat = read_stat(pid)
    if stat is not None:
        os.makedirs(os.path.dirname(record), mode=0o755, exist_ok=True)
        with open(record, "w", encoding="utf-8") as stream:
            stream.write(f"{pid} {stat.start_time}\n")
