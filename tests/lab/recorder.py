"""A witness on a socket that all machines of the lab see: agents note their work there, programs what they did."""

import contextlib
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.lab.site import NotAsExpectedError
from tests.lab.unix_server import serve

GAP_MS = 100
"""Shorter pauses are none: the witness is a thread of a busy process."""


class Noted(NamedTuple):
    """What an agent said about its work."""

    at: int
    node: str
    action: str
    edge: str
    """`begins` or `ends`."""


class Recorder(ABC):
    """Answers each line, and remembers what was noted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._noted: list[Noted] = []
        self._changed = threading.Condition()
        self._socket = serve(path, self._serve)

    def _serve(self, connection: socket.socket) -> None:
        # Who speaks may be killed at any moment.
        with contextlib.suppress(OSError), connection, connection.makefile() as lines:
            for line in lines:
                connection.sendall(f"{self._take(line.split())}\n".encode())

    def _take(self, words: list[str]) -> str:
        now = time.monotonic_ns()
        with self._changed:
            if words[0] != "note":
                return self.answer(words, now)
            self._noted.append(Noted(now, *words[1:4]))
            self._changed.notify_all()
            return "ok"

    @abstractmethod
    def answer(self, words: list[str], now: int) -> str:
        """Judge what a program says; one at a time."""

    def await_note(self, since: int, action: str, edge: str, wait_s_max: float) -> str:
        """Wait until an agent begins or ends an action; return where. Raises NotAsExpectedError."""

        def found() -> list[str]:
            return [each.node for each in self._noted if each.at >= since and each[2:] == (action, edge)]

        with self._changed:
            if not self._changed.wait_for(lambda: bool(found()), wait_s_max):
                raise NotAsExpectedError(f"waited {wait_s_max:g} s in vain until {action} {edge}")
            return found()[0]

    def close(self) -> None:
        self._socket.close()
        self.path.unlink(missing_ok=True)


def longest_gap_ms(times: Iterable[int], since: int) -> int:
    """Return the longest time without anything, from then until now."""
    all_times = [since, *(each for each in times if each >= since), time.monotonic_ns()]
    longest = max(later - earlier for earlier, later in pairwise(all_times)) // 1_000_000
    return longest if longest > GAP_MS else 0
