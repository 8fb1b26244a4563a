"""Frames over a real socket: whole and in order however they were cut, none above the limit, none after the end."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.adapters.network.framed_link import HELD_MAX, FramedLink, FrameLimitError


def framed(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


async def linked(play: Callable[[FramedLink, socket.socket], Awaitable[None]]) -> None:
    near, far = socket.socketpair()
    far.settimeout(0)
    _, link = await asyncio.get_running_loop().create_connection(FramedLink, sock=near)
    try:
        async with asyncio.timeout(20):
            await play(link, far)
    finally:
        link.transport.abort()
        far.close()


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=8), st.lists(st.integers(1, 50), max_size=20), st.data())
def test_frames_come_as_they_were_sent(frames: list[bytes], cuts: list[int], data: st.DataObject) -> None:
    asked = data.draw(st.integers(0, len(frames)))

    async def play(link: FramedLink, far: socket.socket) -> None:
        taken: list[bytes] = []
        loop, sent = asyncio.get_running_loop(), b"".join(map(framed, frames))

        async def send() -> None:
            place = 0
            for cut in (*cuts, len(sent)):
                await loop.sock_sendall(far, sent[place : place + cut])
                await asyncio.sleep(0)
                place += cut
            far.shutdown(socket.SHUT_WR)

        sending = asyncio.create_task(send())
        for _ in range(asked):
            taken.append(await link.frame(300))
        with pytest.raises(EOFError):
            await link.serve(taken.append, 300)
        await sending
        assert taken == frames

    asyncio.run(linked(play))


def test_a_length_above_the_limit_ends_the_connection_before_the_frame_has_come() -> None:
    async def play(link: FramedLink, far: socket.socket) -> None:
        taken: list[bytes] = []
        far.send(framed(b"fine") + (301).to_bytes(4, "big"))
        with pytest.raises(FrameLimitError):
            await link.serve(taken.append, 300)
        assert taken == [b"fine"]
        assert await asyncio.get_running_loop().sock_recv(far, 1) == b""

    asyncio.run(linked(play))


def test_what_fails_to_take_a_frame_is_reported_and_gets_no_more() -> None:
    async def play(link: FramedLink, far: socket.socket) -> None:
        taken: list[bytes] = []

        def take(frame: bytes) -> None:
            taken.append(frame)
            raise ValueError("not mine")

        far.send(framed(b"one") + framed(b"two"))
        with pytest.raises(ValueError, match="not mine"):
            await link.serve(take, 300)
        assert taken == [b"one"]

    asyncio.run(linked(play))


def test_a_frame_that_nobody_serves_is_left_with_the_sender() -> None:
    async def play(link: FramedLink, far: socket.socket) -> None:
        sent = framed(b"greeting") + framed(b"x" * 40_000) * 100
        sending = asyncio.create_task(asyncio.get_running_loop().sock_sendall(far, sent))
        assert await link.frame(300) == b"greeting"
        while link.transport.is_reading():
            await asyncio.sleep(0)
        assert not sending.done(), f"{len(sent)} bytes were read, {HELD_MAX} are enough"
        count = 0

        def take(_: bytes) -> None:
            nonlocal count
            count += 1
            if count == 100:
                far.close()

        with pytest.raises((EOFError, OSError)):
            await link.serve(take, 40_000)
        await sending
        assert count == 100

    asyncio.run(linked(play))


def test_asking_on_a_connection_that_has_ended_is_answered() -> None:
    async def play(link: FramedLink, far: socket.socket) -> None:
        far.close()
        for _ in range(2):
            with pytest.raises(EOFError):
                await link.frame(300)

    asyncio.run(linked(play))
