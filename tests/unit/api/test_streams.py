"""A stream goes on where its daemon comes back, and tells every event once."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from haclusterd.adapters.network.shared_listening import SharedListeners
from haclusterd.api import events
from haclusterd.api.server import ApiServer, listen
from haclusterd.api.settings import ApiSettings
from haclusterd.entry_points.free_ports import free_ports
from haclusterd.model.requests import Basis, Progress, Request, Response, ShownReport


class Daemon:
    """A `DaemonLink` to a history of one row for each entry, which can be away."""

    def __init__(self) -> None:
        self.last = 3
        self.is_away = False
        self.changed, self.refused = asyncio.Event(), asyncio.Event()
        self.answered = 0

    def happen(self) -> None:
        self.last += 1
        self.changed.set()

    async def call(self, request: Request, _progress: Callable[[Progress], None]) -> Response:
        if request.verb == "api.whoami":
            return Response("", 0, data={"role": "viewer"})
        after = int(str(request.arguments.get("after", self.last)))
        if after == self.last and request.arguments["wait_s"]:
            self.changed.clear()
            await self.changed.wait()
        if self.is_away:
            self.refused.set()
            return Response("", 6, (ShownReport("error", "NOT_RUNNING", "no daemon"),))
        self.answered += 1
        shown = [{"id": str(index), "kind": "order-issued"} for index in range(after + 1, self.last + 1)]
        data = {"events": shown, "missing": None, "next": str(self.last), "has_more": False}
        return Response("", 0, data=data, basis=Basis("n1", 1, self.last, 0))


class Reader:
    """One client, which reads a stream piece by piece."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self.ids: list[str] = []

    async def next(self) -> tuple[str, Any]:
        """Return the next event's name and data."""
        kind = ""
        while True:
            async with asyncio.timeout(20):
                name, _, value = (await self._answer.content.readline()).decode().rstrip("\n").partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                data = json.loads(value)
                self.ids += [] if kind else [data["id"]]
                return kind, data


@pytest.fixture
async def daemon(monkeypatch: pytest.MonkeyPatch) -> Daemon:
    monkeypatch.setattr(events, "RETRY_S", 0.01)
    return Daemon()


@pytest.fixture
async def base(daemon: Daemon) -> AsyncIterator[str]:
    (port,) = free_ports("127.0.0.1", 1)
    close = await listen(ApiServer(daemon), ApiSettings((("127.0.0.1", port),)), SharedListeners(None))
    yield f"http://127.0.0.1:{port}"
    await close()


async def test_a_daemon_that_is_away_is_waited_for_and_no_event_is_lost(daemon: Daemon, base: str) -> None:
    headers = {"Authorization": "Bearer t"}
    async with aiohttp.ClientSession(headers=headers) as session, session.get(f"{base}/v1/events?after=1") as answer:
        reader = Reader(answer)
        assert [(await reader.next())[1]["id"] for _ in range(2)] == ["2", "3"]
        assert (await reader.next())[1] == {"node": "n1", "index": 3, "stale_ms": 0}
        daemon.happen()
        assert (await reader.next())[1]["id"] == "4"
        daemon.is_away = True
        daemon.happen()
        async with asyncio.timeout(20):
            await daemon.refused.wait()
        daemon.happen()
        daemon.is_away = False
        while reader.ids[-1] != "6":
            await reader.next()
        assert reader.ids == ["2", "3", "4", "5", "6"]


async def test_many_streams_cost_one_question_at_a_time(daemon: Daemon, base: str) -> None:
    headers = {"Authorization": "Bearer t"}
    async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=0)) as session:
        answers = [await session.get(f"{base}/v1/events") for _ in range(20)]
        readers = [Reader(each) for each in answers]
        assert {(await each.next())[0] for each in readers} == {"state"}
        before = daemon.answered
        for index in (4, 5, 6):
            daemon.happen()
            assert {(await each.next())[1]["id"] for each in readers} == {str(index)}
        assert daemon.answered - before == 3
        refused = await session.get(f"{base}/v1/events", headers={"Authorization": "x"})
        assert refused.status == 401
        for each in answers:
            each.close()
