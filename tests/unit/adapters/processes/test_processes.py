"""Programs start, end and are killed as agents-and-fencing.md §1.1-1.3 says."""

import asyncio
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.adapters.machine.ready_threads import ReadyThreads
from haclusterd.adapters.processes import running as processes
from haclusterd.adapters.processes.killing import has_ended, kill_all
from haclusterd.adapters.processes.running import (
    BEGINNING_MAX,
    Ended,
    Ending,
    Hooks,
    Processes,
    Program,
)
from haclusterd.adapters.processes.spawner_link import Spawner
from haclusterd.agents.process_table import is_running, list_pids, read_marks, read_stat
from tests.unit.adapters.namespaces import HeldBack, children_of, first_below, needs_namespaces

ROOT = Path(__file__).parents[4]
PATH = "/usr/local/bin:/usr/bin:/bin"


class Starter:
    """Starts programs and collects what becomes of them."""

    def __init__(self, clock: BoottimeClock, mark: str, spawner: Spawner | None = None) -> None:
        self.processes = Processes(clock, asyncio.get_running_loop(), ReadyThreads(2), spawner)
        # Not a control group, and so not entered; but what wants one is cloned.
        self.hooks = {} if spawner is None else {"group": lambda: Path("/proc")}
        self.environment = {"PATH": PATH, "TEST_MARK": mark}

    def begin(
        self, *arguments: object, timeout_ms: int = 20_000, stdin: bytes = b"", is_background: bool = False,
        ends_whole: bool = False, **hooks,
    ):  # fmt: skip
        ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        program = Program(
            tuple(map(str, arguments)), self.environment, timeout_ms, stdin, is_background=is_background,
            ends_whole=ends_whole,
        )  # fmt: skip
        running = self.processes.start(program, Hooks(ended.set_result, **{**self.hooks, **hooks}))
        return running, ended

    async def run(self, *arguments: object, **options) -> Ended:
        return await self.begin(*arguments, **options)[1]


@pytest.fixture(params=["spawned", "forked"])
async def starter(request: pytest.FixtureRequest, clock: BoottimeClock, mark: str) -> AsyncIterator[Starter]:
    spawner = Spawner() if request.param == "spawned" else None
    yield Starter(clock, mark, spawner)
    if spawner is not None:
        spawner.close()


async def test_exit_code_and_output(starter: Starter) -> None:
    result = await starter.run("/bin/sh", "-c", "echo out; echo err >&2; exit 7")
    assert (result.ending, result.number, result.stdout, result.stderr) == (Ending.EXITED, 7, "out\n", "err\n")


async def test_a_signal_is_distinguished_from_an_exit(starter: Starter) -> None:
    result = await starter.run("/bin/sh", "-c", "kill -SEGV $$")
    assert (result.ending, result.number) == (Ending.SIGNALLED, signal.SIGSEGV)


@pytest.mark.parametrize("arguments", [["/no/such/agent"], ["/etc/passwd/agent"]])
async def test_what_is_not_there_is_reported_by_errno(starter: Starter, arguments: list[str]) -> None:
    result = await starter.run(*arguments)
    assert result.ending is Ending.NOT_STARTED
    assert result.number in {2, 20}


async def test_stdin_is_given_and_ends(starter: Starter) -> None:
    result = await starter.run("/bin/cat", stdin=b"action=off\npassword=s3cret\n")
    assert result.stdout == "action=off\npassword=s3cret\n"


async def test_stdin_is_empty_otherwise(starter: Starter) -> None:
    assert (await starter.run("/bin/cat")).stdout == ""


async def test_a_grandchild_that_holds_stdout_does_not_delay_completion(starter: Starter) -> None:
    begun = time.monotonic()
    result = await starter.run("/bin/sh", "-c", "sleep 30 & echo started")
    assert result.stdout == "started\n"
    assert time.monotonic() - begun < 25


async def test_a_service_that_goes_on_writing_lives_and_costs_no_memory(
    starter: Starter, tmp_path: Path, until
) -> None:
    code = tmp_path / "errno"
    writer = f"""python3 -S -c '
import os, time
while True:
    try: os.write(1, b"x" * 4096)
    except OSError as error:
        open("{code}", "w").write(str(error.errno)); time.sleep(30)
' & echo started"""
    result = await starter.run("/bin/sh", "-c", writer)
    assert result.ending is Ending.EXITED
    await until(lambda: code.exists() and code.read_text() == "1")


async def test_the_timeout_kills_the_whole_group_and_not_a_daemon(starter: Starter, tmp_path: Path, until) -> None:
    pids = tmp_path / "pids"
    text = f"sleep 61 & echo $! >>{pids}; (setsid sleep 62 & echo $! >>{pids}); sleep 63"
    gone = asyncio.Event()
    running, ended = starter.begin("/bin/sh", "-c", text, timeout_ms=3000, gone=gone.set)
    begun = time.monotonic()
    assert (await ended).ending is Ending.TIMED_OUT
    assert 2.9 <= time.monotonic() - begun < 55
    await asyncio.wait_for(gone.wait(), 10)
    assert running.pid is not None
    assert read_stat(running.pid) is None
    helper, daemon = map(int, pids.read_text().split())
    await until(lambda: (read_stat(helper) is None or read_stat(helper).is_dead))
    assert read_stat(daemon) is not None


def session_below(directory: Path) -> tuple[str, Callable[[], int | None]]:
    """Return a command as `su -c` is one, which starts a service when it is let on; and who waits in its session."""
    begun, goes_on, script = directory / "begun", directory / "goes-on", directory / "script"
    os.mkfifo(goes_on)
    script.write_text(f"echo $$ >{begun}; read line <{goes_on}; touch {directory}/started")
    return f"setsid -w sh {script}; true", lambda: int(begun.read_text() or 0) if begun.exists() else None


async def nothing_starts(directory: Path, waiting: int, until) -> None:
    await until(lambda: read_stat(waiting) is None or read_stat(waiting).is_dead)
    with pytest.raises(OSError, match="No such device or address"):  # Nobody is left to be let on.
        os.open(directory / "goes-on", os.O_WRONLY | os.O_NONBLOCK)
    assert not (directory / "started").exists()


async def test_what_began_a_session_of_its_own_starts_nothing_after_the_kill(
    starter: Starter, tmp_path: Path, until
) -> None:
    text, who_waits = session_below(tmp_path)
    running, ended = starter.begin("/bin/sh", "-c", text)
    await until(lambda: running.is_executing and who_waits())
    waiting = who_waits()
    starter.processes.kill(running)
    assert (await ended).ending is Ending.KILLED
    await nothing_starts(tmp_path, waiting, until)


async def test_what_goes_on_forking_while_it_is_killed_leaves_nothing(starter: Starter, mark: str, until) -> None:
    def left() -> int:
        return sum(read_marks(pid).get("TEST_MARK") == mark for pid in list_pids())

    forks = "i=0; while [ $i -lt 60 ]; do sleep 5019 & i=$((i+1)); done; wait"
    crowd = f"for n in 1 2 3 4 5 6 7 8; do ({forks}) & done; wait"
    running, ended = starter.begin("/bin/sh", "-c", f"setsid -w sh -c '{crowd}'; true")
    await until(lambda: running.is_executing and left() > 50)
    starter.processes.kill(running)
    assert (await ended).ending is Ending.KILLED
    await until(lambda: not left())


async def test_nor_when_no_descriptor_is_left_to_find_it_by(starter: Starter, tmp_path: Path, until) -> None:
    text, who_waits = session_below(tmp_path)
    running, ended = starter.begin("/bin/sh", "-c", text, ends_whole=True)
    await until(lambda: running.is_executing and who_waits())
    waiting = who_waits()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        starter.processes.kill(running)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    result = await ended
    assert (result.ending, result.still_alive) == (Ending.KILLED, False)
    await nothing_starts(tmp_path, waiting, until)


WITHOUT_DESCRIPTORS = """
import errno, os, resource, subprocess, sys, time
from haclusterd.adapters.processes.killing import has_ended, kill_all
from haclusterd.agents.process_table import read_stat

def all_are(states, pids):
    end = time.monotonic() + 10
    while any(stat is not None and stat.state not in states for stat in map(read_stat, pids)):
        assert time.monotonic() < end, list(map(read_stat, pids))
        time.sleep(0.01)

agent = subprocess.Popen(["/bin/sh", "-c", "setsid -w sh -c 'echo $$; read line; true'; true"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
waiting = int(agent.stdout.readline())
descriptor = os.pidfd_open(agent.pid)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
taken = []
try:
    while True:
        taken.append(os.open("/", os.O_RDONLY))
except OSError as error:
    assert error.errno == errno.EMFILE
for _ in range(int(sys.argv[1])):
    os.close(taken.pop())
first = kill_all(descriptor, agent.pid)
for _ in range(2 - int(sys.argv[1])):
    os.close(taken.pop())
assert first is None
all_are("T", [agent.pid])
killed = kill_all(descriptor, agent.pid)
all_are("ZXx", [agent.pid, waiting])
assert killed.have_ended()
print("killed")
"""


@pytest.mark.parametrize("left", [0, 1])
def test_what_cannot_be_found_now_is_stopped_until_it_is_killed(left: int) -> None:
    command = [sys.executable, "-c", WITHOUT_DESCRIPTORS, str(left)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("killed\n", "")


def test_what_cannot_be_looked_at_counts_as_alive() -> None:
    subject = subprocess.Popen(["sh", "-c", "sleep 5018; true"], start_new_session=True)
    descriptor = os.pidfd_open(subject.pid)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        end = time.monotonic() + 10
        while not children_of(subject.pid):
            assert time.monotonic() < end
        while (killed := kill_all(descriptor, subject.pid)) is None:
            assert time.monotonic() < end
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
        answers = has_ended(subject.pid), killed.have_ended()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.close(descriptor)
        subject.kill()
        subject.wait()
    assert answers == (False, False)


async def test_nor_does_that_of_an_adopted_agent(starter: Starter, tmp_path: Path, until) -> None:
    text, who_waits = session_below(tmp_path)
    before = subprocess.Popen(["/bin/sh", "-c", text], start_new_session=True)
    await until(who_waits)
    waiting, gone = who_waits(), asyncio.Event()
    soon = starter.processes._clock.now() + 100
    assert starter.processes.adopt(before.pid, read_stat(before.pid).start_time, soon, gone.set)
    await asyncio.wait_for(gone.wait(), 10)
    before.wait()
    await nothing_starts(tmp_path, waiting, until)


def test_a_process_that_is_reaped_has_given_its_number_away() -> None:
    reaped = subprocess.Popen(["true"])
    descriptor = os.pidfd_open(reaped.pid)
    reaped.wait()
    other = subprocess.Popen(["sh", "-c", "sleep 5017; true"], start_new_session=True)
    try:
        end = time.monotonic() + 10
        while not children_of(other.pid):
            assert time.monotonic() < end
        (helper,) = children_of(other.pid)
        # As if the kernel had given the number to the other one by now.
        kill_all(descriptor, other.pid)
        assert not read_stat(helper).is_dead
        assert other.poll() is None
    finally:
        os.close(descriptor)
        os.killpg(other.pid, signal.SIGKILL)
        other.wait()


async def test_what_a_start_had_begun_ends_with_it_if_others_kill_it(starter: Starter, tmp_path: Path, until) -> None:
    # The kernel kills the agent for want of memory, and not what it waits for, in the same group.
    waits, started = tmp_path / "waits", tmp_path / "started"
    os.mkfifo(waits)
    inner = f"sh -c 'echo $$ >{tmp_path}/begun; read line <{waits}; touch {started}'; true"
    running, ended = starter.begin("/bin/sh", "-c", inner, ends_whole=True)
    begun = tmp_path / "begun"
    await until(lambda: running.is_executing and begun.exists() and begun.read_text().strip())
    helper = int(begun.read_text())
    os.kill(running.pid, signal.SIGKILL)
    result = await ended
    assert (result.ending, result.number, result.still_alive) == (Ending.SIGNALLED, signal.SIGKILL, False)
    assert read_stat(helper) is None or read_stat(helper).is_dead
    assert not started.exists()


@needs_namespaces
@pytest.mark.parametrize("helper", ["", "setsid -w"], ids=["in its group", "in a session of its own"])
@pytest.mark.parametrize("ends_whole", [True, False])
async def test_a_killed_program_whose_helper_outlives_the_kill_is_still_alive(
    starter: Starter, held_back: HeldBack, until, *, ends_whole: bool, helper: str
) -> None:
    gone = asyncio.Event()
    text = f"{helper} unshare --pid --fork sleep 5014; true"
    running, ended = starter.begin("/bin/sh", "-c", text, gone=gone.set, ends_whole=ends_whole)
    await until(lambda: running.is_executing and first_below(running.pid))
    first = first_below(running.pid)
    held_back.hold(first)
    starter.processes.kill(running)
    result = await ended
    assert (result.ending, result.still_alive, gone.is_set()) == (Ending.KILLED, ends_whole, not ends_whole)
    held_back.let_go()
    await asyncio.wait_for(gone.wait(), 10)
    await until(lambda: read_stat(first) is None or read_stat(first).is_dead)


@needs_namespaces
async def test_an_adopted_program_is_not_reported_gone_while_its_helper_is_alive(
    starter: Starter, held_back: HeldBack, until
) -> None:
    before = subprocess.Popen(["/bin/sh", "-c", "unshare --pid --fork sleep 5015; true"], start_new_session=True)
    await until(lambda: first_below(before.pid))
    late, gone = starter.processes._clock.now() + 60_000, asyncio.Event()
    start_time = read_stat(before.pid).start_time
    kill = starter.processes.adopt(before.pid, start_time, late, gone.set, ends_whole=True)
    held_back.hold(first_below(before.pid))
    kill()
    await until(lambda: not is_running(before.pid, start_time))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(gone.wait(), 0.5)
    held_back.let_go()
    await asyncio.wait_for(gone.wait(), 10)
    before.wait()


async def test_an_agent_that_ignores_signals_is_killed_all_the_same(starter: Starter) -> None:
    result = await starter.run("/bin/sh", "-c", "trap '' TERM INT HUP; while :; do sleep 1; done", timeout_ms=500)
    assert result.ending is Ending.TIMED_OUT


async def test_kill_ends_it_now(starter: Starter, until) -> None:
    running, ended = starter.begin("/bin/sleep", "60")
    await until(lambda: running.is_executing)
    starter.processes.kill(running)
    assert (await ended).ending is Ending.KILLED


async def test_killed_before_it_forks_it_never_runs(starter: Starter, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    gone = asyncio.Event()
    may_fork = threading.Event()
    running, ended = starter.begin("/usr/bin/touch", touched, before=may_fork.wait, gone=gone.set)
    starter.processes.kill(running)
    result = await ended
    assert (result.ending, result.still_alive) == (Ending.KILLED, True)
    may_fork.set()
    await asyncio.wait_for(gone.wait(), 10)
    assert running.pid is None
    assert not touched.exists()


async def test_killed_while_it_forks_it_leaves_nothing(starter: Starter, until) -> None:
    for _ in range(20):
        gone = asyncio.Event()
        running, ended = starter.begin("/bin/sleep", "60", gone=gone.set)
        starter.processes.kill(running)
        assert (await ended).ending is Ending.KILLED
        await asyncio.wait_for(gone.wait(), 10)


async def test_huge_output_is_cut_in_the_middle(starter: Starter) -> None:
    result = await starter.run("/bin/sh", "-c", "echo begin; yes | head -c 20000000; echo end")
    assert result.stdout.startswith("begin\n")
    assert result.stdout.endswith("end\n")
    assert "bytes left out]" in result.stdout
    assert len(result.stdout) < 64 * 1024 + 100


async def test_endless_output_is_dropped_while_the_program_runs(starter: Starter, tmp_path: Path, until) -> None:
    written = tmp_path / "written"
    text = f"echo begin; head -c 3000000 /dev/zero; : >{written}; sleep 60"
    running, ended = starter.begin("/bin/sh", "-c", text)
    await until(written.exists)
    assert running.outputs is not None
    kept = running.outputs[0].descriptor
    await until(lambda: os.fstat(kept).st_size == 0)
    starter.processes.kill(running)
    assert (await ended).stdout.startswith("begin\n")


async def test_a_redirect_to_dev_stderr_leaves_readable_text(starter: Starter) -> None:
    result = await starter.run("/bin/sh", "-c", "echo one >&2; echo two > /dev/stderr; echo three >&2")
    assert result.stderr.splitlines()[-2:] == ["two", "three"]
    assert "\0" not in result.stderr


SELF_PORTRAIT = """
import json, os
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
listed = os.listdir("/proc/self/fd")
print(json.dumps({
    "descriptors": sorted(int(name) for name in listed if os.path.islink(f"/proc/self/fd/{name}")),
    "umask": status["Umask"].strip(),
    "cwd": os.getcwd(),
    "leads_its_group": os.getpgid(0) == os.getpid(),
    "leads_its_session": os.getsid(0) == os.getpid(),
    "blocked": int(status["SigBlk"], 16),
    "nice": os.getpriority(os.PRIO_PROCESS, 0),
    "policy": os.sched_getscheduler(0),
}))
"""


@pytest.mark.parametrize("is_cloned", [False, True])
async def test_the_child_gets_a_plain_environment_and_its_own_group(
    clock: BoottimeClock, mark: str, is_cloned: bool
) -> None:
    leak = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(leak, bool(leak))
    old = os.umask(0o077)
    try:
        with closing(Spawner()) if is_cloned else nullcontext() as spawner:
            result = await Starter(clock, mark, spawner).run(sys.executable, "-S", "-E", "-c", SELF_PORTRAIT)
    finally:
        os.umask(old)
        os.close(leak)
    assert json.loads(result.stdout) == {
        "descriptors": [0, 1, 2],
        "umask": "0022",
        "cwd": "/",
        "leads_its_group": True,
        "leads_its_session": False,
        "blocked": 0,
        "nice": 0,
        "policy": os.SCHED_OTHER,
    }


async def test_a_start_does_not_wait_until_its_thread_has_begun(starter: Starter) -> None:
    """`threading.Thread.start()` would: for a lock that the thread releases once the machine lets it run."""
    locks: list[str] = []

    def note(_frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and function.__name__ == "acquire":
            locks.append(function.__qualname__)

    sys.setprofile(note)
    try:
        _, ended = starter.begin("/bin/true")
    finally:
        sys.setprofile(None)
    await ended
    assert not locks


async def test_sigpipe_is_deadly_again(starter: Starter) -> None:
    result = await starter.run("/bin/grep", "SigIgn", "/proc/self/status")
    ignored = int(result.stdout.split()[1], 16)
    assert not ignored & 1 << signal.SIGPIPE - 1


async def test_what_the_daemon_was_started_to_ignore_is_not_inherited(clock: BoottimeClock, mark: str) -> None:
    """As under `nohup`, or behind `&` in a script."""
    numbers = (signal.SIGHUP, signal.SIGQUIT)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        result = await Starter(clock, mark).run("/bin/grep", "SigIgn", "/proc/self/status")
        os.kill(os.getpid(), signal.SIGHUP)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    ignored = int(result.stdout.split()[1], 16)
    assert not [number for number in numbers if ignored & 1 << number - 1]


async def test_the_daemons_oom_score_is_not_inherited(starter: Starter, tmp_path: Path) -> None:
    seen = tmp_path / "forked"
    text = f"while [ ! -e {seen} ]; do sleep 0.01; done; cat /proc/self/oom_score_adj"
    own = Path("/proc/self/oom_score_adj")
    old = own.read_text()
    own.write_text("300")
    try:
        result = await starter.run("/bin/sh", "-c", text, forked=lambda *_: seen.touch())
    finally:
        own.write_text(old)
    assert result.stdout == "0\n"


async def test_of_many_a_few_begin_at_a_time_and_those_in_the_background_last(
    starter: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "EXEC_WAIT_MS", 60_000)  # A busy machine holds an exec up, too.
    begun: list[str] = []
    beginning: set[str] = set()
    most = 0
    guard = threading.Lock()

    def ask(name: str) -> dict[str, Callable[..., None]]:
        def before() -> None:
            nonlocal most
            with guard:
                begun.append(name)
                beginning.add(name)
                most = max(most, len(beginning))

        def forked(_pid: int, _start: int) -> None:
            with guard:
                beginning.discard(name)

        return {"before": before, "forked": forked}

    monitors = [starter.begin("/bin/true", is_background=True, **ask(f"monitor {n}"))[1] for n in range(30)]
    stops = [starter.begin("/bin/true", **ask(f"stop {n}"))[1] for n in range(30)]
    assert {result.number for result in await asyncio.gather(*monitors, *stops)} == {0}
    assert most <= BEGINNING_MAX
    first = {f"monitor {n}" for n in range(BEGINNING_MAX)}  # They were begun before there was anything else.
    assert {name for name in begun[:30] if name.startswith("monitor")} <= first


async def test_who_is_killed_before_its_turn_never_begins(starter: Starter, tmp_path: Path) -> None:
    others = [starter.begin("/bin/sleep", "0.1")[1] for _ in range(BEGINNING_MAX)]
    gone = asyncio.Event()
    waiting, ended = starter.begin("/usr/bin/touch", tmp_path / "touched", gone=gone.set)
    starter.processes.kill(waiting)
    result = await ended
    assert (result.ending, result.still_alive) == (Ending.KILLED, False)
    assert gone.is_set()
    await asyncio.gather(*others)
    assert not (tmp_path / "touched").exists()


async def test_what_waits_for_its_turn_has_its_whole_timeout(
    starter: Starter, script: Callable[..., Path], hold_exec, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_ms = 3000
    monkeypatch.setattr(processes, "EXEC_WAIT_MS", wait_ms)
    stuck = script("stuck", "#!/bin/sh\nexit 3\n")
    release = hold_exec(stuck)
    held_up = [starter.begin(stuck)[1] for _ in range(BEGINNING_MAX)]
    begun = time.monotonic()
    result = await starter.run("/bin/true", timeout_ms=wait_ms // 2)
    assert (result.ending, result.number) == (Ending.EXITED, 0)
    assert time.monotonic() - begun >= wait_ms / 2000
    release()
    await asyncio.gather(*held_up)


async def test_a_stuck_exec_delays_only_itself(
    starter: Starter, script: Callable[..., Path], hold_exec, until
) -> None:
    stuck = script("stuck", "#!/bin/sh\nexit 3\n")
    release = hold_exec(stuck)
    lags: list[float] = []

    async def watch_loop() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.005)
            lags.append(time.monotonic() - before - 0.005)

    watcher = asyncio.create_task(watch_loop())
    running, ended = starter.begin(stuck)
    for _ in range(50):
        assert (await starter.run("/bin/true")).number == 0
    await until(lambda: running.pid is not None)
    assert not ended.done()
    assert not running.is_executing
    release()
    assert (await ended).number == 3
    watcher.cancel()
    # Of many looks, few may fall into a pause of the whole machine.
    assert statistics.median(lags) < 0.05


@pytest.mark.parametrize("is_late", [False, True], ids=["at-once", "late"])
async def test_a_stuck_exec_is_reported_while_it_is_stuck(
    starter: Starter, script: Callable[..., Path], hold_exec, until, is_late: bool
) -> None:
    """So that a daemon which starts again knows whom to wait for; also when its thread comes to the exec late."""
    stuck = script("stuck", "#!/bin/sh\nexit 3\n")
    release = hold_exec(stuck)
    seen: list[int] = []
    gate = threading.Event()
    running, ended = starter.begin(
        stuck, before=lambda: gate.wait(10), forked=lambda pid, _: seen.append(pid)
    )
    if is_late:
        await until(lambda: running not in starter.processes._beginning)
    gate.set()
    await until(lambda: seen)
    assert not running.is_executing
    release()
    assert (await ended).number == 3
    assert seen == [running.pid]


async def test_a_program_that_is_killed_just_before_its_fork_does_not_run_on(starter: Starter, until) -> None:
    asked, gate, gone = threading.Event(), threading.Event(), asyncio.Event()

    def is_permitted() -> bool:
        asked.set()
        return gate.wait(30)

    running, ended = starter.begin("/bin/sleep", "5012", is_permitted=is_permitted, gone=gone.set)
    await until(asked.is_set)
    starter.processes.kill(running)
    gate.set()
    assert (await ended).ending is Ending.KILLED
    await asyncio.wait_for(gone.wait(), 10)
    assert read_stat(running.pid) is None


async def test_a_program_is_killed_while_the_record_of_its_process_is_stuck(starter: Starter, until) -> None:
    gate, gone = threading.Event(), asyncio.Event()
    running, ended = starter.begin("/bin/sleep", "5011", forked=lambda *_: gate.wait(30), gone=gone.set)
    await until(lambda: running.pid is not None)
    starter.processes.kill(running)
    try:
        result = await ended
        assert (result.ending, result.still_alive) == (Ending.KILLED, True)
        assert not gone.is_set(), "nobody has reaped it"
        await until(lambda: read_stat(running.pid).is_dead)
    finally:
        gate.set()
    await asyncio.wait_for(gone.wait(), 10)
    assert read_stat(running.pid) is None


async def test_an_exec_that_fails_after_it_was_stuck_is_not_started(
    starter: Starter, script: Callable[..., Path], hold_exec, until
) -> None:
    stuck = script("stuck", "#!/no/such/interpreter\n")
    release = hold_exec(stuck)
    seen: list[int] = []
    gone = asyncio.Event()
    running, ended = starter.begin(stuck, forked=lambda pid, _: seen.append(pid), gone=gone.set)
    await until(lambda: seen)
    pidfd = running.process.pidfd
    assert os.readlink(f"/proc/self/fd/{pidfd}") == "anon_inode:[pidfd]"
    release()
    assert (await ended).ending is Ending.NOT_STARTED
    await asyncio.wait_for(gone.wait(), 10)
    assert not os.path.exists(f"/proc/self/fd/{pidfd}")
    assert read_stat(seen[0]) is None


async def test_a_stuck_exec_ends_at_its_timeout(
    starter: Starter, script: Callable[..., Path], hold_exec, until
) -> None:
    stuck = script("stuck", "#!/bin/sh\nexit 3\n")
    release = hold_exec(stuck)
    gone = asyncio.Event()
    running, ended = starter.begin(stuck, timeout_ms=2000, gone=gone.set)
    result = await ended
    assert result.ending is Ending.TIMED_OUT
    await asyncio.wait_for(gone.wait(), 10)
    assert running.pid is not None
    assert read_stat(running.pid) is None
    release()


async def test_a_stuck_exec_that_is_killed_before_its_process_is_known_ends_all_the_same(
    starter: Starter, script: Callable[..., Path], hold_exec, until
) -> None:
    stuck = script("stuck", "#!/bin/sh\nexit 3\n")
    release = hold_exec(stuck)
    asked, gone = threading.Event(), asyncio.Event()

    def is_permitted() -> bool:
        asked.set()
        return True

    running, ended = starter.begin(stuck, is_permitted=is_permitted, gone=gone.set)
    await until(asked.is_set)
    starter.processes.kill(running)
    assert (await ended).ending is Ending.KILLED
    await asyncio.wait_for(gone.wait(), 10)
    assert running.pid is None or read_stat(running.pid) is None
    release()


STOPPED_IN_ITS_EXEC = """
import asyncio, errno, fcntl, os, resource, signal, sys
from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.adapters.machine.ready_threads import ReadyThreads
from haclusterd.adapters.processes.running import Hooks, Processes, Program

file = sys.argv[1]
signal.signal(signal.SIGIO, signal.SIG_IGN)
lease = os.open(file, os.O_RDONLY)
fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_WRLCK)  # The exec waits for its end.
taken, asked = [], []

def is_permitted():
    asked.append(None)
    if len(asked) == 2:  # The process is found, and is to be killed, since this returns False.
        try:
            while True:
                taken.append(os.open("/", os.O_RDONLY))
        except OSError as error:
            assert error.errno == errno.EMFILE
    return len(asked) == 1

def forked(pid, start_time):
    for each in taken:
        os.close(each)

async def main():
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    processes = Processes(BoottimeClock(loop), loop, ReadyThreads(2))
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    hooks = Hooks(lambda _: None, is_permitted, forked=forked, gone=gone.set)
    processes.start(Program((file,), {}, 60_000), hooks)
    await asyncio.wait_for(gone.wait(), 20)
    assert taken
    print("gone")

asyncio.run(main())
"""


def test_what_was_stopped_in_its_exec_and_could_not_be_killed_then_does_not_stay_stopped(
    script: Callable[..., Path]
) -> None:
    command = [sys.executable, "-c", STOPPED_IN_ITS_EXEC, script("stuck", "#!/bin/sh\n")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("gone\n", "")


async def test_what_must_be_recorded_first_prevents_the_start(starter: Starter, tmp_path: Path) -> None:
    def full() -> None:
        raise OSError(28, "No space left on device")

    touched = tmp_path / "touched"
    result = await starter.run("/usr/bin/touch", touched, before=full)
    assert (result.ending, result.number) == (Ending.NOT_PREPARED, 28)
    assert not touched.exists()


async def test_hooks_get_the_process(starter: Starter) -> None:
    seen: list[tuple[int, int]] = []
    running, ended = starter.begin("/bin/true", forked=lambda pid, start: seen.append((pid, start)))
    await ended
    assert seen[0][0] == running.pid
    assert seen[0][1] > 0


async def test_many_at_once_leave_nothing_behind(starter: Starter, mark: str) -> None:
    descriptors = len(os.listdir("/proc/self/fd"))
    results = await asyncio.gather(*(starter.run("/bin/sh", "-c", f"exit {n}") for n in range(100)))
    assert [result.number for result in results] == list(range(100))
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 1
    assert not [pid for pid in list_pids() if read_marks(pid).get("TEST_MARK") == mark]


async def test_adopted_process_is_seen_to_end(starter: Starter, until) -> None:
    running, _ended = starter.begin("/bin/sleep", "60")
    await until(lambda: running.is_executing)
    other = Processes(starter.processes._clock, asyncio.get_running_loop(), ReadyThreads(1))
    gone = asyncio.Event()
    start_time = read_stat(running.pid).start_time
    assert other.adopt(running.pid, start_time, starter.processes._clock.now() + 300, gone.set)
    await asyncio.wait_for(gone.wait(), 10)
    assert not is_running(running.pid, start_time)
    assert not other.adopt(running.pid, start_time, starter.processes._clock.now(), gone.set)


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Let this process open nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("is_killed_early", [True, False])
async def test_an_adopted_process_that_cannot_be_opened_counts_as_running_and_is_killed_when_it_can(
    starter: Starter, is_killed_early: bool
) -> None:
    before = subprocess.Popen(["/bin/sleep", "5019"], start_new_session=True)
    start_time, gone, now = read_stat(before.pid).start_time, asyncio.Event(), starter.processes._clock.now()
    with no_descriptors():
        kill = starter.processes.adopt(before.pid, start_time, now + (60_000 if is_killed_early else 0), gone.set)
        assert kill is not None
        if is_killed_early:
            kill()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(gone.wait(), 2 * processes.KILL_WAIT_MS / 1000)
    assert before.poll() is None
    await asyncio.wait_for(gone.wait(), 10)
    before.wait()


async def test_an_adopted_process_that_ended_before_it_could_be_opened_is_gone(starter: Starter) -> None:
    before = subprocess.Popen(["/bin/sleep", "5020"], start_new_session=True)
    start_time, gone, now = read_stat(before.pid).start_time, asyncio.Event(), starter.processes._clock.now()
    with no_descriptors():
        assert starter.processes.adopt(before.pid, start_time, now + 60_000, gone.set) is not None
        before.kill()
        before.wait()
        assert not gone.is_set()
    await asyncio.wait_for(gone.wait(), 10)


async def test_a_number_that_is_a_threads_by_now_is_no_longer_the_processs(starter: Starter) -> None:
    # No descriptor of a thread can be opened, and not because it is unknown whether the process runs.
    ready, end, numbers = threading.Event(), threading.Event(), []

    def work() -> None:
        numbers.append(threading.get_native_id())
        ready.set()
        end.wait()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        assert starter.processes.adopt(numbers[0], 1, starter.processes._clock.now() + 60_000, lambda: None) is None
    finally:
        end.set()
        thread.join()
