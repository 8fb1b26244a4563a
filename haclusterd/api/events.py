"""Events as they happen: server-sent events (WHATWG HTML, "Server-sent events"), resumable at any node.

One request at a time follows the daemon's history for all streams; what it brings is in a ring, and each stream
reads there from its own position. A stream that is behind the ring asks the daemon with its own token until it has
caught up.

Invariants: a client that continues from the last id gets every event after it once, except what an event `missing`
names; a client that reads slowly costs a position and one piece of bytes, never a queue; a token that is revoked is
found out within JUDGE_EVERY_S, and its streams end.
"""

import asyncio
import bisect
import hashlib
import math
from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from aiohttp import web

from haclusterd.api.problems import dumped
from haclusterd.api.routes import RefusedError, bad
from haclusterd.model.access import SimpleRole
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, field
from haclusterd.model.remembered import Position, read_position
from haclusterd.model.requests import Progress, Request, Response
from haclusterd.ports.control import DaemonLink
from haclusterd.reports.codes import Code
from haclusterd.reports.items import report
from haclusterd.verbs.history import FOLLOW_LIMIT

STREAMS_MAX: Final = 512
STREAMS_OF_ROLE: Final[Mapping[str, int]] = {
    SimpleRole.VIEWER: 32,
    SimpleRole.OPERATOR: 64,
    SimpleRole.ADMIN: 256,
}
"""Of one token at a time."""
RING_EVENTS_MAX: Final = 1000
RING_BYTES_MAX: Final = 2 * 1024 * 1024
PIECE_EVENTS_MAX: Final = 64
"""Written at a time to one stream."""
CATCHING_UP_MAX: Final = 4
"""Streams that ask the daemon at a time."""
WAIT_S: Final = 10
STATE_EVERY_S: Final = 10.0
JUDGE_EVERY_S: Final = 15.0
STREAM_LIFE_S: Final = 3600.0
"""Then the client comes again by itself."""
PIECE_TIMEOUT_S: Final = 30.0
RETRY_S: Final = 1.0
RECONNECT_MS: Final = 2000
HEADERS: Final = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Accel-Buffering": "no",
}
"""The last keeps nginx from collecting an answer that does not end."""
_OVER: Final = frozenset({Code.NOT_AUTHENTICATED, Code.NOT_PERMITTED})
STREAMS_RESTRICTED: Final = 8
"""Of one token whose role is no simple one: each of its streams asks the daemon by itself."""
ASK_EVERY_S: Final = 2.0
"""How often such a stream asks for what comes next."""
PARAMETERS: Final = {
    "after": "The id of an event: what comes after it. `Last-Event-ID` says the same, and wins.",
    "since": "Without an id: how far back, or from when; left out: from now on.",
    "node": "Only of this node.",
    "resources": "Only of these resources; once for each.",
    "kinds": "Only of these kinds; once for each.",
}
"""Of a stream, with what they mean."""

Key = tuple[int, float]


@dataclass(frozen=True, slots=True)
class Conditions:
    """What one stream is about; an empty condition always holds."""

    node: str = ""
    resources: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()

    def hold_for(self, event: Mapping[str, Json]) -> bool:
        """Tell whether an event is sent."""
        return (
            self.node in ("", event.get("node"))
            and (not self.resources or event.get("resource") in self.resources)
            and (not self.kinds or event.get("kind") in self.kinds)
        )


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for in a query."""

    begin: Mapping[str, Json]
    """`after` or `since`, as arguments of `history.follow`."""
    conditions: Conditions


@dataclass(frozen=True, slots=True)
class _Item:
    position: Position
    event: Mapping[str, Json] | None
    """None: it tells what is missing, to everybody."""
    block: bytes


@dataclass(slots=True, eq=False)
class _Reader:
    token: str
    is_restricted: bool = False
    """Whether access control lists say what it may see: it shares nothing with others."""
    ended: Response | None = None
    """Why the token is not accepted any more."""


@dataclass(slots=True)
class _Ring:
    """The newest items, without a gap from `base` to `head`."""

    base: Position
    head: Position
    items: list[_Item] = field(default_factory=list)
    size: int = 0

    def take(self, items: Sequence[_Item], head: Position) -> None:
        """Append what came after the head."""
        self.items += items
        self.size += sum(len(each.block) for each in items)
        self.head = head
        while self.items and (len(self.items) > RING_EVENTS_MAX or self.size > RING_BYTES_MAX):
            oldest = self.items.pop(0)
            self.base = oldest.position
            self.size -= len(oldest.block)

    def behind(self, position: Position) -> list[_Item] | None:
        """Return what comes next, at most a piece; None: that lies before the ring."""
        if key_of(position) < key_of(self.base):
            return None
        first = bisect.bisect_right(self.items, key_of(position), key=lambda each: key_of(each.position))
        return self.items[first : first + PIECE_EVENTS_MAX]


class EventStreams:
    """All streams of one process."""

    def __init__(self, link: DaemonLink) -> None:
        self._link = link
        self._readers: set[_Reader] = set()
        self._of_token: Counter[bytes] = Counter()
        self._catching_up = asyncio.Semaphore(CATCHING_UP_MAX)
        self._ring: _Ring | None = None
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._news = asyncio.Event()
        self._state: dict[str, Json] = {}
        self._is_closing = False

    def close(self) -> None:
        """End all streams."""
        self._is_closing = True
        self._tell_news()

    @property
    def count(self) -> int:
        """How many streams are open."""
        return len(self._readers)

    @contextmanager
    def place(self, token: str, role: str, *, is_restricted: bool = False) -> Iterator[_Reader]:
        """Take a place for a stream of a token that was accepted; raise RefusedError when there is none."""
        mine = hashlib.sha256(token.encode()).digest()
        of_role = STREAMS_RESTRICTED if is_restricted else STREAMS_OF_ROLE.get(role, 0)
        if len(self._readers) >= STREAMS_MAX or self._of_token[mine] >= of_role:
            problem = f"there are {STREAMS_MAX} event streams, or {of_role} of this token"
            raise RefusedError(report(Code.TRY_AGAIN, problem=problem))
        reader = _Reader(token, is_restricted)
        self._readers.add(reader)
        self._of_token[mine] += 1
        try:
            yield reader
        finally:
            self._readers.discard(reader)
            self._of_token[mine] -= 1
            self._of_token += Counter()
            if not self._readers:
                self._stop_following()

    async def ask(self, reader: _Reader, begin: Mapping[str, Json]) -> Response:
        """Ask the daemon for what comes next, in the name of one stream."""
        async with self._catching_up:
            arguments = {**begin, "wait_s": 0, "limit": FOLLOW_LIMIT}
            request = Request("", "history.follow", arguments, credential=reader.token)
            return self._noted(await self._link.call(request, _ignore))

    def _noted(self, response: Response) -> Response:
        """Note what an answer was found over; return it."""
        basis = response.basis
        if basis is not None and response.exit == 0:
            self._state = {"node": basis.node, "index": basis.index, "stale_ms": basis.stale_ms}
        return response

    async def serve(
        self, request: web.Request, gone: asyncio.Event, reader: _Reader, wanted: Wanted, first: Response
    ) -> web.StreamResponse:
        """Send events until either side has enough, or the client has `gone`; `first`: the first answer."""
        stream = web.StreamResponse(headers=HEADERS)
        try:
            await stream.prepare(request)
            await _write(stream, f"retry: {RECONNECT_MS}\n\n".encode())
            await _while_connected(gone, _Stream(self, stream, reader, wanted.conditions).run(first))
            async with asyncio.timeout(PIECE_TIMEOUT_S):
                await stream.write_eof()
        except (TimeoutError, OSError):
            if request.transport is not None:
                request.transport.abort()
        return stream

    @property
    def is_closing(self) -> bool:
        """Whether all streams are to end."""
        return self._is_closing

    @property
    def state(self) -> dict[str, Json]:
        """What the daemon's newest answer was found over, and what is the matter with it."""
        return self._state

    async def news(self) -> None:
        """Wait until there is something to look at."""
        await self._news.wait()

    def ring_from(self, position: Position) -> _Ring:
        """Return what all streams read; where nobody follows the history yet, it begins at this position."""
        if self._ring is None:
            self._ring = _Ring(position, position)
            loop = asyncio.get_running_loop()
            self._tasks = (loop.create_task(self._follow(self._ring)), loop.create_task(self._judge()))
        return self._ring

    # -- what all streams share -------------------------------------------------------------------------------------

    def _stop_following(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = ()
        self._ring = None

    async def _follow(self, ring: _Ring) -> None:
        while True:
            reader = next((each for each in self._readers if each.ended is None and not each.is_restricted), None)
            if reader is None:
                await asyncio.sleep(RETRY_S)
                continue
            arguments: dict[str, Json] = {"after": str(ring.head), "wait_s": WAIT_S, "limit": FOLLOW_LIMIT}
            request = Request("", "history.follow", arguments, credential=reader.token)
            response = self._noted(await self._link.call(request, _ignore))
            if response.exit == 0:
                items, head, _ = read_answer(response)
                ring.take(items, head)
            elif response.error_code in _OVER:
                self._dismiss(reader.token, response)
            else:
                self._state = {**self._state, "problem": _problem(response)}
                await asyncio.sleep(RETRY_S)
            self._tell_news()

    async def _judge(self) -> None:
        """Have the daemon judge all tokens again, one after the other."""
        while True:
            await asyncio.sleep(JUDGE_EVERY_S)
            for token in sorted({each.token for each in self._readers}):
                response = await self._link.call(Request("", "api.whoami", credential=token), _ignore)
                if response.exit and response.error_code in _OVER:
                    self._dismiss(token, response)
                    self._tell_news()

    def _dismiss(self, token: str, why: Response) -> None:
        for each in self._readers:
            if each.token == token:
                each.ended = why

    def _tell_news(self) -> None:
        """Wake all streams."""
        self._news.set()
        self._news = asyncio.Event()


class _Stream:
    """One client's stream."""

    def __init__(
        self, streams: EventStreams, response: web.StreamResponse, reader: _Reader, conditions: Conditions
    ) -> None:
        self._streams = streams
        self._response = response
        self._reader = reader
        self._conditions = conditions
        self._position = Position(0)
        """After what was sent, or did not fit."""
        self._last_state = 0.0
        """When a stream that asks by itself was sent `state` last."""
        self._is_placed = False
        """Whether the client knows a position to come again with, also when nothing has happened yet."""

    async def run(self, first: Response) -> None:
        """Send events until the token is not accepted any more, or it is time for the client to come again."""
        loop = asyncio.get_running_loop()
        until = loop.time() + STREAM_LIFE_S
        answer: Response | None = first
        while self._reader.ended is None and not self._streams.is_closing and loop.time() < until:
            answer = await (self._pass_on() if answer is None else self._take(answer))
        if self._reader.ended is not None:
            await self._write(_block("end", _problem(self._reader.ended)))

    async def _take(self, answer: Response) -> Response | None:
        """Send what the daemon answered; return its next answer while there is more."""
        if answer.exit == 0:
            items, self._position, has_more = read_answer(answer)
            await self._send(items)
            return await self._ask() if has_more else None
        if answer.error_code in _OVER:
            self._reader.ended = answer
            return None
        await self._write(_block("state", {**self._streams.state, "problem": _problem(answer)}))
        await asyncio.sleep(RETRY_S)
        return await self._ask()

    async def _pass_on(self) -> Response | None:
        """Send what comes next of the ring, or wait for it; what lies before the ring is asked of the daemon."""
        if not self._is_placed:
            await self._write(_block("state", self._streams.state, self._position))
            self._is_placed = True
        if self._reader.is_restricted:
            await asyncio.sleep(ASK_EVERY_S)
            now = asyncio.get_running_loop().time()
            if now - self._last_state >= STATE_EVERY_S:
                self._last_state = now
                await self._write(_block("state", self._streams.state, self._position))
            return await self._ask()
        ring = self._streams.ring_from(self._position)
        items = ring.behind(self._position)
        if items is None:
            return await self._ask()
        if items:
            await self._send(items)
            self._position = items[-1].position
            return None
        self._position = max(self._position, ring.head, key=key_of)
        try:
            async with asyncio.timeout(STATE_EVERY_S):
                await self._streams.news()
        except TimeoutError:
            await self._write(_block("state", self._streams.state, self._position))
        return None

    async def _ask(self) -> Response:
        return await self._streams.ask(self._reader, {"after": str(self._position)})

    async def _send(self, items: Sequence[_Item]) -> None:
        wanted = [each.block for each in items if each.event is None or self._conditions.hold_for(each.event)]
        for start in range(0, len(wanted), PIECE_EVENTS_MAX):
            await self._write(b"".join(wanted[start : start + PIECE_EVENTS_MAX]))

    async def _write(self, data: bytes) -> None:
        await _write(self._response, data)


def read_wanted(request: web.Request) -> Wanted:
    """Read what a stream is to be about; raise RefusedError."""
    given: dict[str, list[str]] = {}
    for name, value in request.query.items():
        if name not in PARAMETERS:
            known = f"there are: {', '.join(PARAMETERS)}"
            raise RefusedError(report(Code.UNKNOWN_ARGUMENT, verb="events", name=repr(name[:80]), remedy=known))
        given.setdefault(name, []).append(value)
    for name in ("after", "since", "node"):
        if len(given.get(name, ())) > 1:
            raise bad(name, "is given more than once")
    begin: dict[str, Json] = {name: given[name][0] for name in ("after", "since") if name in given}
    last = request.headers.get("Last-Event-ID")
    if last:
        if read_position(last) is None:
            raise bad("Last-Event-ID", "must be the id of an event")
        begin = {"after": last}
    names = (frozenset(given.get(name, ())) for name in ("resources", "kinds"))
    return Wanted(begin, Conditions(given.get("node", [""])[0], *names))


def key_of(position: Position) -> Key:
    """Return what positions are ordered by."""
    return position.index, math.inf if position.n is None else position.n


def read_answer(response: Response) -> tuple[list[_Item], Position, bool]:
    """Return what an answer to `history.follow` brings, where to continue, and whether there is more."""
    data = response.data
    assert isinstance(data, Mapping)
    events, missing, head = data["events"], data["missing"], _position(data["next"])
    assert isinstance(events, Sequence)
    items: list[_Item] = []
    for event in events:
        assert isinstance(event, Mapping)
        position = _position(event["id"])
        items.append(_Item(position, event, _block("", event, position)))
    if missing is not None:
        items.append(_Item(head, None, _block("missing", missing, head)))
    return items, head, bool(data["has_more"])


def _position(text: Json) -> Position:
    found = read_position(str(text))
    assert found is not None, text
    return found


def _block(kind: str, data: Json, position: Position | None = None) -> bytes:
    """Write one event of a stream; JSON has no line ends in it."""
    name = f"event: {kind}\n" if kind else ""
    place = "" if position is None else f"id: {position}\n"
    return f"{place}{name}data: ".encode() + dumped(data) + b"\n\n"


def _problem(response: Response) -> dict[str, Json]:
    first = response.errors[0]
    return {"code": first.code, "detail": first.message, "remedy": first.remedy}


async def _while_connected(gone: asyncio.Event, work: Coroutine[None, None, None]) -> None:
    """Do work until it is done or the client has gone: its place is free at once."""
    loop = asyncio.get_running_loop()
    tasks = (loop.create_task(work), loop.create_task(gone.wait()))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    if not tasks[0].cancelled():
        tasks[0].result()


async def _write(stream: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(PIECE_TIMEOUT_S):
        await stream.write(data)


def _ignore(_: Progress) -> None:
    return None
