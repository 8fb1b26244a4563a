"""A connection of frames (`wire.framing`). Each frame is delivered where it arrives.

asyncio's streams wake a task for every read; at several frames a second, that is a third of the processor time of an
idle voter. Here the loop calls the receiver of frames directly, in order.

Invariant: frames are delivered in order, each once, and none after the end; a length above the limit ends the
connection, so that no sender decides how much is buffered. Until there is a receiver, reading pauses while more than
HELD_MAX bytes wait.
"""

import asyncio
from collections.abc import Callable
from typing import cast

from haclusterd.wire.framing import FrameBuffer, FrameTooLongError, framed

HELD_MAX = 64 * 1024
"""Maximum number of undelivered bytes; more are left with the sender."""


class FrameLimitError(ConnectionError):
    """A length above the limit: the connection has ended."""


class FramedLink(asyncio.Protocol):
    """One end of a connection. First read frames one by one with `frame`, then have all delivered with `serve`."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._unread = FrameBuffer()
        self._limit = 0
        self._waiting: asyncio.Future[bytes] | None = None
        self._take: Callable[[bytes], None] | None = None
        self._error: BaseException | None = None
        self._ended = asyncio.Event()

    # Called by the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        self._unread.add(data)
        self._hand_over()
        if self._take is None and self._unread.waiting > HELD_MAX:
            self.transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._end(exc or EOFError("the connection has ended"))

    # Called by the owner.

    def send(self, frame: bytes) -> None:
        """Send a frame; on a connection that has ended it is lost."""
        self.transport.write(framed(frame))

    async def frame(self, at_most: int) -> bytes:
        """Return the next frame; raises EOFError or OSError at the end of the connection."""
        assert at_most < HELD_MAX, "reading may pause before it is whole"
        assert self._take is None
        assert self._waiting is None
        self._limit = at_most
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            if self._error is not None:
                raise self._error
            self._hand_over()
            return await self._waiting
        finally:
            self._waiting = None

    async def serve(self, take: Callable[[bytes], None], at_most: int) -> None:
        """Deliver every frame to `take` until the connection ends, or `take` fails; raises what ended it."""
        self._take, self._limit = take, at_most
        self.transport.resume_reading()
        self._hand_over()
        await self._ended.wait()
        assert self._error is not None
        raise self._error

    def _hand_over(self) -> None:
        """Deliver the complete frames, as long as there is a receiver."""
        while self._is_wanted():
            try:
                frame = self._unread.take(self._limit)
            except FrameTooLongError as error:
                self._fail(FrameLimitError(str(error)))
                return
            if frame is None:
                return
            self._give(frame)

    def _is_wanted(self) -> bool:
        if self._error is not None or self.transport.is_closing():
            return False
        return self._take is not None or (self._waiting is not None and not self._waiting.done())

    def _give(self, frame: bytes) -> None:
        if self._take is None:
            assert self._waiting is not None
            self._waiting.set_result(frame)
            return
        try:
            self._take(frame)
        except Exception as error:  # noqa: BLE001 (it is reported to the server, a bug like a refusal)
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._end(error)
        self.transport.abort()

    def _end(self, error: BaseException) -> None:
        if self._error is None:
            self._error = error
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(self._error)
        self._ended.set()
