"""Work in another image of this process: its result, its bounds, its end; and nothing of the daemon in it."""

import asyncio
import os
import resource
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from haclusterd.adapters.machine.real_time import LOOP_PRIORITY, let_run_ordinarily, run_first
from haclusterd.adapters.processes.forked_work import FIRST_PART, FIRST_S, FIRST_S_MAX, ForkedWork, Precedence
from haclusterd.ports.background import WorkFailed

WAIT_S_MAX = 20.0
OTHERS: set[int] = set()
"""Children of this process that were there before a test, such as the resource tracker of `multiprocessing`."""


@pytest.fixture(autouse=True)
def know_others() -> None:
    OTHERS.clear()
    OTHERS.update(children())  # All of them, since none is known yet.


@pytest.fixture
async def forked() -> AsyncIterator[Callable[..., ForkedWork]]:
    made: list[ForkedWork] = []

    def make(**bounds: float) -> ForkedWork:
        made.append(ForkedWork(asyncio.get_running_loop(), **bounds))
        return made[-1]

    yield make
    for each in made:
        each.stop()


async def result_of(forked: ForkedWork, work: Callable[[], bytes], whose: str = "") -> bytes | WorkFailed:
    found: asyncio.Future[bytes | WorkFailed] = asyncio.get_running_loop().create_future()
    forked.do(work, found.set_result, whose)
    return await asyncio.wait_for(found, WAIT_S_MAX)


def for_ever() -> bytes:
    while True:
        pass


def greedy() -> bytes:
    return b"".join(bytes(1 << 20) for _ in range(1024))


def wrong() -> bytes:
    raise ValueError("a mistake in a verb")


def killed() -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


async def test_work_sees_what_is_here_and_its_result_comes_back_whole(forked: Callable[..., ForkedWork]) -> None:
    seen = [b"x" * 3_000_000]
    result = await result_of(forked(), lambda: seen[0] + str(os.getppid()).encode())
    assert result == seen[0] + str(os.getpid()).encode()


@pytest.mark.parametrize(
    ("work", "bounds", "problem"),
    [
        (for_ever, {"limit_s": 0.2}, "it takes more than 0.2 s"),
        (greedy, {"memory_bytes": 64 << 20}, "it needs more than 64 MiB of memory"),
        (wrong, {}, "an error of the program; its log has it"),
        (killed, {}, "its process was ended by signal 9"),
        (lambda: bytes(17 << 20), {}, "the answer has more than 16 MiB"),
    ],
)
async def test_work_that_goes_too_far_costs_only_its_result(
    forked: Callable[..., ForkedWork], work: Callable[[], bytes], bounds: dict[str, float], problem: str
) -> None:
    result = await result_of(forked(**bounds), work)
    assert isinstance(result, WorkFailed)
    assert result.problem == problem
    assert result.is_too_long is (work is for_ever)
    await until_none_is_left()


async def test_cancelled_work_is_gone_at_once_and_makes_room(forked: Callable[..., ForkedWork]) -> None:
    work = forked(at_once=1)
    cancel = work.do(for_ever, lambda _: pytest.fail("cancelled"))
    begun: asyncio.Future[bytes | WorkFailed] = asyncio.get_running_loop().create_future()
    never = work.do(lambda: b"never", lambda _: pytest.fail("cancelled"))
    work.do(lambda: b"next", begun.set_result)
    assert len(children()) == 1
    never()
    cancel()
    assert await asyncio.wait_for(begun, WAIT_S_MAX) == b"next"
    await until_none_is_left()


async def test_no_user_keeps_root_or_another_user_waiting(forked: Callable[..., ForkedWork]) -> None:
    """One user asks for as much as they can: root and another user are answered all the same."""
    work = forked()
    for _ in range(20):
        work.do(for_ever, lambda _: pytest.fail("it never ends"), "greedy@n1")
    assert len(children()) == 2
    assert await result_of(work, lambda: b"root") == b"root"
    assert await result_of(work, lambda: b"other", "other@n1") == b"other"
    for _ in range(20):
        work.do(for_ever, lambda _: pytest.fail("it never ends"), "second@n1")
    assert len(children()) == 3
    assert await result_of(work, lambda: b"root") == b"root"


async def test_users_get_their_turns(forked: Callable[..., ForkedWork]) -> None:
    work, begun = forked(at_once=2, of_others=1), list[bytes]()
    waiting = asyncio.Event()

    def note(result: bytes | WorkFailed) -> None:
        assert isinstance(result, bytes)
        begun.append(result)
        if len(begun) == 6:
            waiting.set()

    for whose in ("a", "a", "a", "b", "b", "c"):
        work.do(whose.encode, note, whose)
    await asyncio.wait_for(waiting.wait(), WAIT_S_MAX)
    assert b"".join(begun) == b"abcaba"


async def test_nobody_waits_for_an_image_that_does_not_get_a_turn(
    forked: Callable[..., ForkedWork], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine a process that was killed lives on for as long as nobody lets it die."""
    waits: list[int] = []
    original = os.waitid
    monkeypatch.setattr(os, "waitid", lambda kind, fd, how: waits.append(how) or original(kind, fd, how))
    forked().do(for_ever, lambda _: pytest.fail("cancelled"))()
    await until_none_is_left()
    assert waits
    assert all(how & os.WNOHANG for how in waits)


async def test_an_image_holds_nothing_of_the_daemon_and_has_no_privilege(forked: Callable[..., ForkedWork]) -> None:
    """A daemon that is started again finds its sockets and locks free."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.listen()

        def look() -> bytes:
            shown = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
            # The descriptor by which the directory is listed is gone by now.
            held = [os.readlink(path) for path in shown if os.path.lexists(path)]
            is_held = f"socket:[{os.stat(f'/proc/{os.getppid()}/fd/{listening.fileno()}').st_ino}]" in held
            return repr((is_held, os.sched_getscheduler(0) == os.SCHED_OTHER)).encode()

        assert await result_of(forked(), look) == b"(False, True)"


@pytest.fixture
def real_time() -> Iterator[None]:
    soft, _ = resource.getrlimit(resource.RLIMIT_RTPRIO)
    if os.geteuid() != 0 and soft < LOOP_PRIORITY:
        pytest.skip("real time is root's")
    assert run_first(LOOP_PRIORITY) is None
    yield
    let_run_ordinarily(0)


@pytest.mark.usefixtures("real_time")
async def test_an_image_precedes_ordinary_processes_behind_the_loop_and_not_for_long(
    forked: Callable[..., ForkedWork],
) -> None:
    def look() -> bytes:
        found = []
        for wanted in (os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.SCHED_OTHER):
            deadline = time.monotonic() + WAIT_S_MAX
            while os.sched_getscheduler(0) != wanted and time.monotonic() < deadline:
                pass
            found.append(os.sched_getparam(0).sched_priority)
        return repr(found).encode()

    assert await result_of(forked(), look) == b"[1, 0]"


@pytest.mark.usefixtures("real_time")
async def test_images_leave_most_of_the_time_to_ordinary_processes(forked: Callable[..., ForkedWork]) -> None:
    def spin() -> bytes:
        seen = time.monotonic() + FIRST_S / 2
        first = 0
        while (now := time.monotonic()) < seen:
            if os.sched_getscheduler(0) != os.SCHED_OTHER:
                first = max(first, int((FIRST_S / 2 - (seen - now)) * 1000))
        return str(first).encode()

    images, began, first_ms = forked(), time.monotonic(), 0
    for _ in range(3 * round(FIRST_S_MAX / (FIRST_S / 2))):
        first_ms += int(await result_of(images, spin))
    took_s = time.monotonic() - began
    assert 0 < first_ms / 1000 <= FIRST_S_MAX + took_s / FIRST_PART


def test_precedence_grows_with_time_and_what_is_not_needed_is_given_back() -> None:
    precedence = Precedence()
    whole = round(FIRST_S_MAX / FIRST_S)
    assert [precedence.take(1000.0) for _ in range(whole + 1)] == [True] * whole + [False]
    assert precedence.take(1000.0 + FIRST_S * FIRST_PART + 0.01)
    assert not precedence.take(1000.0 + FIRST_S * FIRST_PART + 0.01)
    precedence.give_back(FIRST_S)
    assert precedence.take(1000.0 + FIRST_S * FIRST_PART + 0.01)
    assert [precedence.take(9000.0) for _ in range(whole + 1)] == [True] * whole + [False]


async def test_images_end_with_the_daemon(tmp_path: Path) -> None:
    """A daemon that is killed leaves no work behind."""
    pid = os.fork()
    if pid == 0:
        loop = asyncio.new_event_loop()
        ForkedWork(loop).do(for_ever, lambda _: None)
        (tmp_path / "image").write_text(Path(f"/proc/self/task/{os.getpid()}/children").read_text())
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    image = int((tmp_path / "image").read_text())
    async with asyncio.timeout(WAIT_S_MAX):
        while _is_running(image):
            await asyncio.sleep(0.01)


async def until_none_is_left() -> None:
    async with asyncio.timeout(WAIT_S_MAX):
        while children():
            await asyncio.sleep(0.01)


def children() -> set[int]:
    found = {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}
    return found - OTHERS


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
