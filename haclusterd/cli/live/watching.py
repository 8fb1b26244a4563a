"""Asking the daemon for what the picture shows: as soon as something happens, and otherwise seldom.

Events are followed; each lets the status be asked for again. What no event announces (a quorum that is lost, a daemon
that falls behind, ages) is found by asking every IDLE_S, or TROUBLED_S while something is wrong. A daemon that is away
is asked again until it answers; what was known stays, with its age.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from haclusterd.cli.following import PASSING, RETRY_S
from haclusterd.cli.live.failover import KINDS
from haclusterd.cli.live.picture import OLD_MS, Aside, Known
from haclusterd.cli.render.fields import fields, text
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.model.requests import Progress, Request, Response
from haclusterd.ports.control import DaemonLink
from haclusterd.verbs.answers.answer import read
from haclusterd.verbs.answers.history import Events
from haclusterd.verbs.answers.status import Status

OFTEN_S = 0.2
"""Between two questions for the status while much happens."""
IDLE_S = 5.0
"""Between two questions while nothing happens."""
TROUBLED_S = 2.0
"""The same while something is wrong: the end of much that is wrong is no event."""
ASIDE_S = 2.0
"""Between two questions for a pane: the scheduler may have to run for its answer."""
EVENTS_MAX = 500
"""That are kept."""
Question = tuple[str, Mapping[str, Json]]


class Watch:
    """What is known of one cluster, kept up to date by `run`."""

    def __init__(self, link: DaemonLink, first: Status, changed: Callable[[], None]) -> None:
        self._link = link
        self._changed = changed
        self._known = Known(first)
        self._heard_at = asyncio.get_running_loop().time()
        self._position = ""
        self._news = asyncio.Event()
        self._is_wanted = asyncio.Event()
        self._question: Question | None = None

    @property
    def known(self) -> Known:
        """What is known, and how old it is now."""
        since = asyncio.get_running_loop().time() - self._heard_at
        # Between two questions nothing has happened, or an event would have said so.
        is_current = self._known.is_followed and not self._known.problem and since < IDLE_S + OLD_MS / 1000
        age_ms = self._known.status.stale_ms + (0 if is_current else int(since * 1000))
        return replace(self._known, age_ms=age_ms)

    def want(self, question: Question | None) -> None:
        """Say what the pane that is open needs."""
        if question != self._question:
            self._question = question
            self._is_wanted.set()

    async def run(self) -> None:
        """Keep asking; ends by being cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            tasks.create_task(self._refresh())
            tasks.create_task(self._look_aside())

    async def _ask(self, verb: str, arguments: Mapping[str, Json]) -> Response:
        return await self._link.call(Request("", verb, arguments), _ignore)

    def _learn(self, known: Known) -> None:
        self._known = known
        self._changed()

    # Events

    async def _follow(self) -> None:
        while True:
            if self._position:
                response = await self._ask("history.follow", {"after": self._position})
            else:
                response = await self._ask("history.events", {"limit": EVENTS_MAX, "kinds": list(KINDS)})
            problem = next(iter(response.errors), None)
            if problem is None:
                self._take_events(response)
                continue
            if problem.code not in PASSING:
                # The place in the history means nothing any more: the cluster was restored, or this node is another.
                self._position = ""
            self._learn(replace(self._known, is_followed=False))
            self._news.set()
            await asyncio.sleep(RETRY_S)

    def _take_events(self, response: Response) -> None:
        answer = fields(response.data)
        found = read(Events, answer).events
        is_first = not self._position
        self._position = text(answer, "next")
        known = () if is_first else self._known.events
        self._learn(replace(self._known, events=(*known, *found)[-EVENTS_MAX:], is_followed=True))
        if found or is_first:
            self._news.set()
            self._is_wanted.set()

    # The status

    async def _refresh(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause_s()):
                    await self._news.wait()
            self._news.clear()
            response = await self._ask("status", {})
            problem = next(iter(response.errors), None)
            if problem is None:
                self._heard_at = asyncio.get_running_loop().time()
                status = read(Status, fields(response.data))
                self._learn(replace(self._known, status=status, problem="", remedy=""))
            else:
                self._learn(replace(self._known, problem=problem.message, remedy=problem.remedy))
            await asyncio.sleep(OFTEN_S)

    def _pause_s(self) -> float:
        if not self._known.is_followed or self._known.problem or self._known.status.stale_ms > OLD_MS:
            return RETRY_S
        return TROUBLED_S if self._known.status.gravity else IDLE_S

    # What a pane needs

    async def _look_aside(self) -> None:
        loop = asyncio.get_running_loop()
        asked: Question | None = None
        asked_at = 0.0
        while True:
            await self._is_wanted.wait()
            self._is_wanted.clear()
            while self._question == asked and loop.time() < asked_at + ASIDE_S:
                await asyncio.sleep(OFTEN_S)
            asked, asked_at = self._question, loop.time()
            if asked is not None:
                await self._answer(*asked)

    async def _answer(self, verb: str, arguments: Mapping[str, Json]) -> None:
        response = await self._ask(verb, arguments)
        problem = next(iter(response.errors), None)
        said = ""
        if problem is not None:
            said = f"{problem.message} ({problem.remedy})" if problem.remedy else problem.message
        self._learn(replace(self._known, aside=Aside(verb, arguments, response.data, said)))


def _ignore(_: Progress) -> None:
    return None
