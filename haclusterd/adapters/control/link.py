"""The client's end of the daemon's control socket in a process with many requests at once, on a few connections.

Invariant: the number of simultaneous requests is bounded, here as in the daemon, and each call ends: with the daemon's
answer, or with a report of what went wrong on the way.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from haclusterd.adapters.control.client import CONNECT_TIMEOUT_S, SILENCE_TIMEOUT_S
from haclusterd.model.records import dataclass, field, replace
from haclusterd.model.requests import Progress, Request, Response
from haclusterd.protocol.control import MAX_FRAME_BYTES, Malformed, decode, encode, shown_report
from haclusterd.reports.codes import Code
from haclusterd.reports.items import report
from haclusterd.wire.framing import FrameBuffer, FrameTooLongError

REQUESTS_OF_CONNECTION = 8
"""As many as the daemon carries out at once for one connection."""
WAITING_MAX = 64
"""Maximum number of waiting calls; further ones are answered with TRY_AGAIN."""
_CHUNK_BYTES = 64 * 1024


@dataclass(slots=True)
class _Call:
    """One request that is under way."""

    request: Request
    progress: Callable[[Progress], None]
    answer: asyncio.Future[Response]
    heard_at: float


@dataclass(slots=True)
class _Connection:
    writer: asyncio.StreamWriter
    calls: dict[str, _Call] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None


class ControlLink:
    """Some connections to one daemon, made on demand and again when they are lost."""

    def __init__(self, path: str, connections: int) -> None:
        self._path = path
        self._connections: list[_Connection | None] = [None] * connections
        self._locks = [asyncio.Lock() for _ in range(connections)]
        self._turns = asyncio.Semaphore(connections * REQUESTS_OF_CONNECTION)
        self._load = [0] * connections
        self._waiting = 0
        self._serial = 0

    async def call(self, request: Request, progress: Callable[[Progress], None]) -> Response:
        """Carry out a request; its id is chosen here."""
        if self._turns.locked() and self._waiting >= WAITING_MAX:
            return _failed(request, Code.TRY_AGAIN, problem=f"{self._waiting} requests wait for the daemon")
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        place = min(range(len(self._load)), key=self._load.__getitem__)
        self._load[place] += 1
        try:
            return await self._carry_out(place, request, progress)
        finally:
            self._load[place] -= 1
            self._turns.release()

    async def _carry_out(self, place: int, request: Request, progress: Callable[[Progress], None]) -> Response:
        try:
            async with self._locks[place], asyncio.timeout(CONNECT_TIMEOUT_S):
                connection = self._connections[place] or await self._connect(place)
        except (OSError, TimeoutError) as error:
            problem = getattr(error, "strerror", None) or str(error) or "it does not answer"
            return _failed(request, Code.NOT_RUNNING, socket=self._path, problem=problem)
        self._serial += 1
        loop = asyncio.get_running_loop()
        mine = replace(request, id=f"{self._serial}")
        call = _Call(mine, progress, loop.create_future(), loop.time())
        connection.calls[mine.id] = call
        try:
            connection.writer.write(encode(mine))
            await connection.writer.drain()
            return await self._awaited(connection, call)
        except OSError:
            return _failed(request, Code.DISCONNECTED)
        finally:
            connection.calls.pop(mine.id, None)

    async def _awaited(self, connection: _Connection, call: _Call) -> Response:
        loop = asyncio.get_running_loop()
        while True:
            left_s = call.heard_at + SILENCE_TIMEOUT_S - loop.time()
            if left_s <= 0:
                connection.writer.close()
                problem = f"no answer from the daemon for {int(SILENCE_TIMEOUT_S)} s"
                return _failed(call.request, Code.OUTCOME_UNKNOWN, problem=problem)
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    return await asyncio.shield(call.answer)

    async def _connect(self, place: int) -> _Connection:
        reader, writer = await asyncio.open_unix_connection(self._path)
        made = _Connection(writer)
        made.task = asyncio.create_task(self._listen(place, made, reader))
        self._connections[place] = made
        return made

    async def _listen(self, place: int, connection: _Connection, reader: asyncio.StreamReader) -> None:
        buffer = FrameBuffer(MAX_FRAME_BYTES)
        with suppress(OSError, FrameTooLongError):
            while data := await reader.read(_CHUNK_BYTES):
                if not _all_passed_on(connection, buffer.feed(data)):
                    break
        if self._connections[place] is connection:
            self._connections[place] = None
        connection.writer.close()
        for call in tuple(connection.calls.values()):
            if not call.answer.done():
                call.answer.set_result(_failed(call.request, Code.DISCONNECTED))

    def close(self) -> None:
        """Disconnect."""
        for connection in self._connections:
            if connection is not None and connection.task is not None:
                connection.task.cancel()
                connection.writer.close()


def _all_passed_on(connection: _Connection, frames: list[bytes]) -> bool:
    now = asyncio.get_running_loop().time()
    while frames:
        message = decode(frames.pop(0))
        if isinstance(message, Malformed | Request):
            return False
        call = connection.calls.get(message.id)
        if call is None:
            continue  # Nobody waits for it any more.
        call.heard_at = now
        if isinstance(message, Progress):
            call.progress(message)
        elif not call.answer.done():
            call.answer.set_result(message)
    return True


def _failed(request: Request, code: Code, **parameters: str) -> Response:
    item = report(code, place=None, remedy=None, severity=None, **parameters)
    return Response(request.id, int(item.exit_status), (shown_report(item),))
