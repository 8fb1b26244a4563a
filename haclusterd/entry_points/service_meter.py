"""A client of the demonstration's service: asks every node's address every 10 ms, and keeps what was answered.

It is outside the cluster and knows nothing of it. An attempt that takes longer than 250 ms counts as bad.
"""

import asyncio
import threading
import time
from collections.abc import Mapping
from itertools import pairwise

from haclusterd.model.records import dataclass, field

PERIOD_S = 0.010
TIMEOUT_S = 0.250
REQUEST = b"GET / HTTP/1.0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class GoodAnswer:
    """One attempt that went well."""

    asked_at: float
    """time.monotonic() at the asking."""
    answered_at: float
    node: str


@dataclass(slots=True)
class ServiceMeter:
    """Asks in a thread of its own until `stop`."""

    addresses: Mapping[str, tuple[str, int]]
    """Node's name to where its copy of the service would listen."""
    answers: list[GoodAnswer] = field(default_factory=list)
    double_holders: int = 0
    """Rounds in which two nodes answered."""
    rounds: int = 0
    _loop: asyncio.AbstractEventLoop | None = None
    _thread: threading.Thread | None = None
    _ending: asyncio.Event | None = None

    def start(self) -> None:
        """Begin to ask."""
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask no more."""
        if self._loop is not None and self._ending is not None and self._thread is not None:
            loop, self._loop = self._loop, None
            loop.call_soon_threadsafe(self._ending.set)
            self._thread.join(5)

    async def _run(self) -> None:
        self._loop, self._ending = loop, ending = asyncio.get_running_loop(), asyncio.Event()
        rounds: set[asyncio.Task[None]] = set()
        due = loop.time()
        while not ending.is_set():
            task = asyncio.create_task(self._round())
            rounds.add(task)
            task.add_done_callback(rounds.discard)
            due = max(due + PERIOD_S, loop.time())
            await asyncio.sleep(due - loop.time())
        await asyncio.gather(*rounds)

    async def _round(self) -> None:
        nodes = await asyncio.gather(*(self._ask(node, *address) for node, address in self.addresses.items()))
        self.rounds += 1
        if sum(nodes) > 1:
            self.double_holders += 1

    async def _ask(self, node: str, host: str, port: int) -> bool:
        asked_at = time.monotonic()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                reader, writer = await asyncio.open_connection(host, port)
                try:
                    writer.write(REQUEST)
                    status = await reader.readline()
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return False
        if not status.startswith(b"HTTP/1.0 200"):
            return False
        self.answers.append(GoodAnswer(asked_at, time.monotonic(), node))
        return True

    def holder(self, within_s: float = 0.3) -> str | None:
        """Return the node that answered last, if it did so just now."""
        if not self.answers or time.monotonic() - self.answers[-1].answered_at > within_s:
            return None
        return self.answers[-1].node

    def first_after(self, instant: float, *, not_from: str | None = None) -> GoodAnswer | None:
        """Return the first attempt that was begun after `instant` and went well."""
        return next(
            (answer for answer in self.answers if answer.asked_at > instant and answer.node != not_from), None
        )

    def outage_ms(self, since: float) -> int:
        """Return the longest time without a good answer, from just before `since` until now."""
        times = sorted(answer.answered_at for answer in self.answers)
        before = max((at for at in times if at <= since), default=since)
        after = [before, *(at for at in times if at > since)]
        return round(max((late - early for early, late in pairwise(after)), default=0.0) * 1000)
