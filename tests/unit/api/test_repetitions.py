"""A repeated request is not carried out twice, and nobody who may nothing makes another's be forgotten."""

import asyncio

import pytest

from haclusterd.api import repetitions
from haclusterd.api.problems import Reply
from haclusterd.api.repetitions import KEYS_MAX, REMEMBERED_S, REPLIES_BYTES_MAX, IdempotencyKeys
from haclusterd.api.routes import RefusedError
from haclusterd.reports.codes import Code

OWN, OTHER = b"own", b"other"


class Bench:
    def __init__(self) -> None:
        self.now = 0.0
        self.keys = IdempotencyKeys(lambda: self.now)
        self.done: list[str] = []
        self.gate = asyncio.Event()

    async def ask(self, key: str, *, bearer: bytes = OWN, code: Code | None = None, size: int = 10) -> Reply:
        async def carry_out() -> Reply:
            self.done.append(key)
            return Reply(200 if code is None else 401, b"x" * size, code=code)

        return await self.keys.once(bearer, key, b"request", carry_out)

    async def wait(self, key: str) -> Reply:
        async def carry_out() -> Reply:
            await self.gate.wait()
            return Reply(401, b"", code=Code.NOT_AUTHENTICATED)

        return await self.keys.once(OTHER, key, b"request", carry_out)


async def test_who_has_no_token_makes_no_answer_be_forgotten() -> None:
    bench = Bench()
    for number in range(KEYS_MAX):
        await bench.ask(f"k{number}")
    waiting = [asyncio.ensure_future(bench.wait(f"o{number}")) for number in range(KEYS_MAX)]
    await asyncio.sleep(0)
    with pytest.raises(RefusedError):
        await bench.ask("one more")
    bench.gate.set()
    await asyncio.gather(*waiting)
    bench.done.clear()
    replayed = await bench.ask("k0")
    assert (bench.done, replayed.headers["Idempotency-Replayed"]) == ([], "true")
    await bench.ask("one more")
    await bench.ask("k0")
    assert bench.done == ["one more", "k0"], "there is room for so many, and the oldest goes"


async def test_nor_while_requests_without_one_are_under_way() -> None:
    bench = Bench()
    await bench.ask("changed")
    waiting = [asyncio.ensure_future(bench.wait(f"o{number}")) for number in range(KEYS_MAX - 1)]
    await asyncio.sleep(0)
    await bench.ask("another")
    await bench.ask("changed")
    assert bench.done == ["changed", "another"]
    bench.gate.set()
    await asyncio.gather(*waiting)


async def test_an_answer_of_yesterday_takes_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    monkeypatch.setattr(repetitions, "REPLIES_BYTES_MAX", 100)
    for day in range(20):
        bench.now = day * REMEMBERED_S
        await bench.ask("nightly", size=40)
    await bench.ask("once", size=40)
    bench.done.clear()
    await bench.ask("nightly")
    await bench.ask("once")
    assert bench.done == []


async def test_what_failed_on_the_way_may_be_tried_again() -> None:
    bench = Bench()

    async def fails() -> Reply:
        raise ConnectionError

    for _ in range(KEYS_MAX + 1):
        with pytest.raises(ConnectionError):
            await bench.keys.once(OWN, "k", b"request", fails)
    assert (await bench.ask("k", size=REPLIES_BYTES_MAX + 1)).status == 200
    await bench.ask("k")
    assert bench.done == ["k", "k"], "an answer that takes all room is not remembered"


async def test_what_who_asked_did_not_wait_for_is_carried_out_once() -> None:
    bench = Bench()

    async def slow() -> Reply:
        bench.done.append("k")
        await bench.gate.wait()
        return Reply(200, b"changed")

    asking = asyncio.ensure_future(bench.keys.once(OWN, "k", b"request", slow))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    with pytest.raises(RefusedError) as refused:
        async with asyncio.timeout(10):
            await bench.keys.once(OWN, "k", b"request", slow)
    assert refused.value.status == 409
    bench.gate.set()
    async with asyncio.timeout(10):
        while True:
            try:
                reply = await bench.keys.once(OWN, "k", b"request", slow)
                break
            except RefusedError:
                await asyncio.sleep(0)
    assert (bench.done, reply.body, reply.headers["Idempotency-Replayed"]) == (["k"], b"changed", "true")
