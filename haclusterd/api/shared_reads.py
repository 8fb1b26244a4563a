"""Equal questions of one bearer that wait at the same time are asked of the daemon once.

A page that many look at, or a monitor on each of many machines, then costs the daemon one question at a time, however
often it is asked.

Invariant: an answer was begun after everybody who gets it had asked. So a client that was answered that a change is
made sees it in what is read after that.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable

from haclusterd.api.problems import Reply


class SharedReads:
    """The questions that are under way in one process."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, asyncio.Task[Reply]] = {}
        """Those that are not begun, which others may join."""
        self._under_way: dict[Hashable, asyncio.Lock] = {}

    async def answer(self, question: Hashable, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        """Ask, or join an equal question that is not begun; raises what asking raises."""
        waiting = self._waiting.get(question)
        if waiting is None:
            waiting = asyncio.get_running_loop().create_task(self._turn(question, ask))
            self._waiting[question] = waiting
        return await asyncio.shield(waiting)

    async def _turn(self, question: Hashable, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        """Wait until the equal question before it is answered; from then on nobody may join."""
        try:
            async with self._under_way.setdefault(question, asyncio.Lock()):
                del self._waiting[question]
                return await ask()
        finally:
            if question not in self._waiting:
                self._under_way.pop(question, None)
