"""Threads and images of one process beside each other."""

import asyncio
import importlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from haclusterd.adapters.processes.background_threads import BackgroundThreads
from haclusterd.ports.background import WorkFailed

WAIT_S_MAX = 20.0
SLOW = "module_that_takes_its_time"
TEXT = """
import tests.unit.adapters.processes.test_background_threads as here
here.IMPORTING.set()
here.GO_ON.wait()
"""

IMPORTING = threading.Event()
GO_ON = threading.Event()


@pytest.fixture
def slow_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A module whose import goes on until `GO_ON`."""
    IMPORTING.clear()
    GO_ON.clear()
    (tmp_path / f"{SLOW}.py").write_text(TEXT)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    GO_ON.set()
    sys.modules.pop(SLOW, None)


def load() -> None:
    importlib.import_module(SLOW)


def load_apart() -> bytes:
    load()
    return b"loaded"


async def test_an_image_that_imports_what_a_thread_is_importing_gets_it(slow_module: None) -> None:
    loop = asyncio.get_running_loop()
    threads = BackgroundThreads(loop)
    answer: asyncio.Future[bytes | WorkFailed] = loop.create_future()
    try:
        threads.load(load)
        assert await asyncio.to_thread(IMPORTING.wait, WAIT_S_MAX)
        threads.apart(load_apart, answer.set_result)
        loop.call_soon(GO_ON.set)
        assert await asyncio.wait_for(answer, WAIT_S_MAX) == b"loaded"
    finally:
        threads.stop()


async def test_when_everything_is_loaded_no_image_waits_for_a_thread(slow_module: None) -> None:
    loop = asyncio.get_running_loop()
    threads = BackgroundThreads(loop)
    answer: asyncio.Future[bytes | WorkFailed] = loop.create_future()
    try:
        threads.load(lambda: None)
        threads.run(GO_ON.wait, lambda _: None)
        threads.apart(lambda: b"done", answer.set_result)
        assert await asyncio.wait_for(answer, WAIT_S_MAX) == b"done"
    finally:
        GO_ON.set()
        threads.stop()
