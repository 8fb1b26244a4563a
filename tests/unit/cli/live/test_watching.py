"""Asking for what the picture shows: at once when something happens, again while a daemon is away."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from haclusterd.cli.live.picture import OLD_MS, Known
from haclusterd.cli.live.watching import Watch
from haclusterd.model.requests import Progress, Request, Response, ShownReport
from haclusterd.verbs.answers.answer import read
from haclusterd.verbs.answers.status import Status

WAIT_S_MAX = 20.0


class Daemon:
    """Answers each verb with one thing after the other; what has no answer left waits for ever."""

    def __init__(self, **answers: list[Response]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    async def call(self, request: Request, _progress: Callable[[Progress], None]) -> Response:
        self.asked.append((request.verb, request.arguments))
        left = self.answers.get(request.verb.partition(".")[2] or request.verb, [])
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    def close(self) -> None:
        raise AssertionError


def status(index: int, stale_ms: int = 0) -> Response:
    return Response("", 0, data={"schema": Status.SCHEMA, "index": index, "stale_ms": stale_ms})


def events(next_: str, *texts: str) -> Response:
    return Response("", 0, data={"events": [{"text": each, "kind": "node-lost"} for each in texts], "next": next_})


def refused(code: str) -> Response:
    return Response("", 1, (ShownReport("error", code, f"it is {code}", "do something"),))


async def watched(
    daemon: Daemon, is_enough: Callable[[Known], bool], question: tuple[str, Mapping[str, Any]] | None = None
) -> Known:
    changed = asyncio.Event()
    watch = Watch(daemon, read(Status, {}), changed.set)
    watch.want(question)
    task = asyncio.create_task(watch.run())
    try:
        async with asyncio.timeout(WAIT_S_MAX):
            while not is_enough(watch.known):
                await changed.wait()
                changed.clear()
        return watch.known
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_each_event_lets_the_status_be_asked_for() -> None:
    daemon = Daemon(
        events=[events("7", "one")], follow=[events("9", "two")], status=[status(1), status(2), status(3)]
    )  # fmt: skip
    known = await watched(daemon, lambda known: known.status.index > 0 and len(known.events) == 2)
    assert [each.text for each in known.events] == ["one", "two"]
    follows = [arguments["after"] for verb, arguments in daemon.asked if verb == "history.follow"]
    assert follows[:2] == ["7", "9"]
    assert known.age_ms == 0
    assert known.is_followed


async def test_what_was_known_stays_while_the_daemon_is_away() -> None:
    daemon = Daemon(
        events=[events("7")], follow=[refused("DISCONNECTED"), refused("NOT_RUNNING"), events("8", "two")],
        status=[status(1), refused("NOT_RUNNING"), status(2)],
    )  # fmt: skip
    known = await watched(daemon, lambda known: bool(known.problem))
    assert (known.status.index, known.problem, known.remedy) == (1, "it is NOT_RUNNING", "do something")
    assert not known.is_followed
    daemon = Daemon(events=[events("7")], follow=[refused("DISCONNECTED"), events("8", "two")], status=[status(2)])
    known = await watched(daemon, lambda known: known.is_followed and bool(known.events))
    assert [each.text for each in known.events] == ["two"]
    follows = [arguments["after"] for verb, arguments in daemon.asked if verb == "history.follow"]
    assert follows[:2] == ["7", "7"]


async def test_a_place_in_the_history_that_means_nothing_any_more_is_given_up() -> None:
    daemon = Daemon(events=[events("7", "old"), events("3", "new")], follow=[refused("BAD_ARGUMENT")])
    known = await watched(daemon, lambda known: [each.text for each in known.events] == ["new"])
    assert known.is_followed


async def test_how_old_the_answer_was_counts() -> None:
    daemon = Daemon(events=[events("7")], status=[status(1, stale_ms=OLD_MS * 4)])
    known = await watched(daemon, lambda known: known.status.index == 1)
    assert known.age_ms >= OLD_MS * 4


@pytest.mark.parametrize("answer", [Response("", 0, data={"a": 1}), refused("NO_SUCH_RESOURCE")])
async def test_what_a_pane_needs_is_asked_for(answer: Response) -> None:
    question = ("resource.why", {"resource": "web"})
    daemon = Daemon(events=[events("7")], status=[status(1)], why=[answer])
    known = await watched(daemon, lambda known: known.aside is not None, question)
    assert known.aside is not None
    assert (known.aside.verb, known.aside.arguments) == question
    assert known.aside.problem == ("" if answer.exit == 0 else "it is NO_SUCH_RESOURCE (do something)")
