"""Threads that are there before they are needed, and do one piece of work after the other."""

import gc
import os
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

import pytest

from haclusterd.adapters.machine.ready_threads import ReadyThreads, ready_pool
from haclusterd.adapters.processes.spawning import children_of, spawn, started_by

DEADLINE_S = 20


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, "the awaited never happened"
        time.sleep(0.001)


def threads() -> set[str]:
    """Return the threads of this process; those of earlier tests may be ending."""
    return set(os.listdir("/proc/self/task"))


def test_a_ready_pool_has_all_its_threads_before_it_is_asked_for_anything() -> None:
    with ready_pool(3, "spare"):
        assert [each.name.rpartition("_")[0] for each in threading.enumerate()].count("spare") == 3


def test_work_is_done_by_a_thread_that_was_there() -> None:
    ready = ReadyThreads(2)
    there = threads()
    done: SimpleQueue[int] = SimpleQueue()
    for _ in range(50):
        ready.do(lambda: done.put(threading.get_native_id()))
        assert str(done.get(timeout=DEADLINE_S)) in there
        # It is ready again a moment after its work.
        until(lambda: ready._state.idle)


def test_work_that_waits_holds_no_other_work_up() -> None:
    ready = ReadyThreads(2)
    released = threading.Event()
    begun: SimpleQueue[int] = SimpleQueue()

    def wait() -> None:
        begun.put(threading.get_native_id())
        released.wait(DEADLINE_S)

    for _ in range(7):
        ready.do(wait)
    at_work = {str(begun.get(timeout=DEADLINE_S)) for _ in range(7)}
    assert len(at_work) == 7
    released.set()
    until(lambda: len(at_work & threads()) <= 2)


def test_an_error_is_shown_and_the_thread_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda arguments: shown.append(str(arguments.exc_value)))
    ready = ReadyThreads(1)
    done: SimpleQueue[str] = SimpleQueue()

    def fail() -> None:
        raise ValueError("it went wrong")

    ready.do(fail)
    ready.do(lambda: done.put("after it"))
    assert done.get(timeout=DEADLINE_S) == "after it"
    until(lambda: shown)
    assert shown == ["it went wrong"]


def test_without_their_owner_they_end() -> None:
    gc.collect()
    before = threads()
    ready = ReadyThreads(5)
    made = threads() - before
    released = threading.Event()
    ready.do(lambda: released.wait(DEADLINE_S) and None)
    assert len(made) >= 5
    del ready
    gc.collect()
    released.set()
    until(lambda: not made & threads())


def test_the_child_of_a_thread_is_found_beside_those_that_it_started_before() -> None:
    own = threading.get_native_id()
    with open(os.devnull, "r+b") as nothing:

        def start() -> int:
            return spawn(["/bin/sleep", "60"], {}, stdin=None, stdout=nothing.fileno(), stderr=nothing.fileno())

        earlier = children_of(own)
        first = start()
        try:
            assert started_by(own, earlier) == first
            second_earlier = children_of(own)
            second = start()
            try:
                assert started_by(own, second_earlier) == second
                assert started_by(own, earlier) is None, "nobody knows which"
            finally:
                os.kill(second, 9)
                os.waitpid(second, 0)
        finally:
            os.kill(first, 9)
            os.waitpid(first, 0)
