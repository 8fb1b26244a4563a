"""What keeps a repeated request from being carried out twice, and lets long work continue without its client.

Both are remembered in this process alone, bounded, and for its life: a change that must not be repeated at another node
either is made with `If-Match`.
"""

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from haclusterd.api.problems import Reply
from haclusterd.api.routes import RefusedError, bad
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, field
from haclusterd.reports.codes import Code
from haclusterd.reports.items import report

KEYS_MAX = 1000
KEY_CHARACTERS_MAX = 128
REPLIES_BYTES_MAX = 16 * 1024 * 1024
REMEMBERED_S = 24 * 3600.0
OPERATIONS_MAX = 128
OPERATIONS_OF_BEARER_MAX = 16
"""That run at a time for one token."""
WITHOUT_EFFECT = frozenset({Code.TRY_AGAIN, Code.NOT_RUNNING, Code.NOT_AUTHENTICATED, Code.NOT_PERMITTED})
"""Answers after which nothing was done, for certain: the same key may be used for another try."""


@dataclass(slots=True)
class _Remembered:
    fingerprint: bytes
    since: float
    reply: Reply | None = None
    """None: it is being carried out."""


class IdempotencyKeys:
    """What was answered under which `Idempotency-Key`, of which bearer."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: OrderedDict[tuple[bytes, str], _Remembered] = OrderedDict()
        """In the order in which they came."""
        self._tasks: set[asyncio.Task[Reply]] = set()
        self._under_way = 0
        self._bytes = 0

    async def once(
        self, bearer: bytes, key: str | None, request: bytes, carry_out: Callable[[], Awaitable[Reply]]
    ) -> Reply:
        """Carry out a request, or return what it was answered before; raise RefusedError."""
        if key is None:
            return await carry_out()
        if not key or len(key) > KEY_CHARACTERS_MAX or not key.isascii() or not key.isprintable():
            raise bad("Idempotency-Key", f"must be 1 to {KEY_CHARACTERS_MAX} characters of ASCII")
        place, fingerprint = (bearer, key), hashlib.sha256(request).digest()
        found = self._known.get(place)
        if found is not None and self._clock() - found.since < REMEMBERED_S:
            return _replayed(found, fingerprint)
        if self._under_way >= KEYS_MAX:
            problem = f"{KEYS_MAX} requests with an Idempotency-Key are under way"
            raise RefusedError(report(Code.TRY_AGAIN, problem=problem))
        if found is not None:
            self._forget(place)
        mine = self._known[place] = _Remembered(fingerprint, self._clock())
        self._under_way += 1
        task = asyncio.ensure_future(self._carried_out(place, mine, carry_out))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        # Who asks may go away: it is carried out all the same, and its answer waits for the repetition.
        return await asyncio.shield(task)

    async def _carried_out(
        self, place: tuple[bytes, str], mine: _Remembered, carry_out: Callable[[], Awaitable[Reply]]
    ) -> Reply:
        try:
            reply = await carry_out()
        except BaseException:
            del self._known[place]
            raise
        finally:
            self._under_way -= 1
        if reply.code in WITHOUT_EFFECT:
            del self._known[place]
        else:
            mine.reply = reply
            self._bytes += len(reply.body)
            self._make_room()
        return reply

    def _ended(self, task: "asyncio.Task[Reply]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # Seen, even if nobody waits for it any more.

    def _make_room(self) -> None:
        """Forget the oldest answers: only for one that took effect, so that nobody else makes the others forgotten."""
        while len(self._known) - self._under_way > KEYS_MAX or self._bytes > REPLIES_BYTES_MAX:
            self._forget(next(place for place, each in self._known.items() if each.reply is not None))

    def _forget(self, place: tuple[bytes, str]) -> None:
        reply = self._known.pop(place).reply
        self._bytes -= 0 if reply is None else len(reply.body)


def _replayed(found: _Remembered, fingerprint: bytes) -> Reply:
    if found.fingerprint != fingerprint:
        raise bad("Idempotency-Key", "was used for another request: choose a new one", status=422)
    if found.reply is None:
        problem = "the request with this Idempotency-Key is being carried out"
        raise RefusedError(report(Code.TRY_AGAIN, problem=problem), status=409)
    headers = {**found.reply.headers, "Idempotency-Replayed": "true"}
    return Reply(found.reply.status, found.reply.body, found.reply.content_type, headers, found.reply.code)


@dataclass(slots=True)
class Operation:
    """Long work that continues without its client."""

    id: str
    verb: str
    bearer: bytes
    """SHA-256 of the token in whose name it is done."""
    began_at: float
    waits_for: str = ""
    reply: Reply | None = None
    """None: it runs."""
    task: "asyncio.Task[None] | None" = field(default=None, repr=False)

    def as_json(self, now: float) -> dict[str, Json]:
        """Return how far it is (schema `haclusterd.operation/1`)."""
        return {
            "schema": "haclusterd.operation/1",
            "id": self.id,
            "verb": self.verb,
            "state": "running" if self.reply is None else "ended",
            "waits_for": self.waits_for if self.reply is None else "",
            "elapsed_ms": int((now - self.began_at) * 1000),
            "status": None if self.reply is None else self.reply.status,
            "result": None,
        }


class Operations:
    """Those that run, and the newest of those that ended."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: OrderedDict[str, Operation] = OrderedDict()

    def begin(self, verb: str, bearer: bytes, work: Callable[[Operation], Awaitable[Reply]]) -> Operation:
        """Begin one; raise RefusedError where there are too many."""
        running = [each for each in self._known.values() if each.reply is None]
        of_bearer = sum(each.bearer == bearer for each in running)
        if len(running) >= OPERATIONS_MAX or of_bearer >= OPERATIONS_OF_BEARER_MAX:
            raise RefusedError(report(Code.TRY_AGAIN, problem=f"{len(running)} operations are under way"))
        while len(self._known) >= OPERATIONS_MAX:
            self._known.pop(next(name for name, each in self._known.items() if each.reply is not None))
        made = Operation(secrets.token_hex(16), verb, bearer, self._clock())
        self._known[made.id] = made

        async def run() -> None:
            made.reply = await work(made)

        made.task = asyncio.create_task(run())
        return made

    def find(self, name: str, bearer: bytes) -> Operation | None:
        """Return an operation of this bearer; of another's it is not even said that there is one."""
        found = self._known.get(name)
        return found if found is not None and found.bearer == bearer else None

    def now(self) -> float:
        """Return the time by which operations are measured."""
        return self._clock()
