"""The HTTP server: who asks is not judged here, only passed on; what it takes is bounded.

Invariant: nothing that a client does takes more than the amounts that are named below, holds up another one for long,
or reaches the daemon except as a request that carries the client's token.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

from aiohttp import web

from haclusterd.api.client_certificates import NO_CLIENTS, Asker, ClientCertificates
from haclusterd.api.events import EventStreams, read_wanted
from haclusterd.api.metrics import DOWN, exposition
from haclusterd.api.openapi import document
from haclusterd.api.pages import Asset, load
from haclusterd.api.problems import JSON, Reply, dumped, reply_to
from haclusterd.api.repetitions import IdempotencyKeys, Operation, Operations
from haclusterd.api.routes import PREFIX, RefusedError, Route, bad, read_body, read_query, read_version, routes
from haclusterd.api.sessions import Session, Sessions, digest, refuse_other_sites
from haclusterd.api.settings import ApiSettings
from haclusterd.api.shared_reads import SharedReads
from haclusterd.model.records import replace
from haclusterd.model.requests import Options, Progress, Request, Response
from haclusterd.ports.control import DaemonLink
from haclusterd.ports.listening import Listeners, Place
from haclusterd.protocol.control import shown_report
from haclusterd.reports.codes import Code
from haclusterd.reports.items import report

if TYPE_CHECKING:
    from collections.abc import Iterator

BODY_BYTES_MAX: Final = 5 * 1024 * 1024
"""Of one request: a text of 4 MiB, written as JSON."""
SMALL_BODY_BYTES: Final = 64 * 1024
"""Of a body that is read before the daemon has judged the token: as much as one connection may hold anyway."""
BODIES_BYTES_MAX: Final = 24 * 1024 * 1024
"""Of all larger bodies that are being read or carried out."""
ANSWERS_BYTES_MAX: Final = 32 * 1024 * 1024
"""Of all answers that have not been sent."""
BODY_TIMEOUT_S: Final = 30.0
"""For a whole body to come."""
ANSWER_TIMEOUT_S: Final = 30.0
"""For one piece of an answer to be taken."""
SWEEP_EVERY_S: Final = 5.0
KEEP_ALIVE_S: Final = 60.0
"""After this the library ends a connection on which nothing is asked; its place is lost before."""
PIECE_BYTES: Final = 64 * 1024
HEADER_BYTES_MAX: Final = 8190
_SECURITY: Final = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
_log = logging.getLogger(__name__)
_nobody = logging.getLogger(f"{__name__}.protocol")
"""For what the library says of clients that speak no HTTP: everybody could fill the log with it."""
_nobody.disabled = True

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Budget:
    """So many bytes at a time, for all clients together."""

    def __init__(self, bytes_max: int, what: str) -> None:
        self._left = bytes_max
        self._what = what

    @contextmanager
    def hold(self, amount: int) -> "Iterator[None]":
        """Take bytes for a while; raise RefusedError when there are not so many."""
        if amount > self._left:
            raise RefusedError(report(Code.TRY_AGAIN, problem=f"too many bytes of {self._what} at a time"))
        self._left -= amount
        try:
            yield
        finally:
            self._left += amount


class ApiServer:
    """Answers requests of HTTP by asking the daemon."""

    def __init__(self, link: DaemonLink, clients: ClientCertificates = NO_CLIENTS) -> None:
        self._link = link
        self._keys = IdempotencyKeys(time.monotonic)
        self._operations = Operations(time.monotonic)
        self._bodies = Budget(BODIES_BYTES_MAX, "requests")
        self._answers = Budget(ANSWERS_BYTES_MAX, "answers")
        self._openapi = dumped(document())
        self._assets = load()
        self.sessions = Sessions(time.monotonic, clients)
        self.events = EventStreams(link)
        self._reads = SharedReads()

    def application(self) -> web.Application:
        """Return the application: one handler for each route of the table."""
        application = web.Application(middlewares=[self._placed, _guarded], client_max_size=BODY_BYTES_MAX)
        for route in routes():
            application.router.add_route(route.method, route.path, self._handler(route))
        application.router.add_get(f"{PREFIX}/openapi.json", self._describe)
        application.router.add_get(f"{PREFIX}/events", self._stream, allow_head=False)
        application.router.add_get("/metrics", self._measure, allow_head=False)
        application.router.add_get(f"{PREFIX}/operations/{{id}}", self._look_at_operation)
        application.router.add_get(f"{PREFIX}/session", self._look_at_session, allow_head=False)
        application.router.add_post(f"{PREFIX}/session", self._sign_in)
        application.router.add_delete(f"{PREFIX}/session", self._sign_out)
        for path, asset in self._assets.items():
            application.router.add_get(path, _serving(asset), allow_head=False)
        return application

    @web.middleware
    async def _placed(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        place = _place(request)
        place.begins()
        try:
            response = await handler(request)
            if response.status == 401 and "Authorization" not in request.headers:
                self.sessions.end_of(request)
            return response
        finally:
            place.ends()

    def _handler(self, route: Route) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            return await self._carry_out(route, request)

        return handle

    async def _describe(self, request: web.Request) -> web.StreamResponse:
        # It is the same bytes for everybody, and no token is needed: it takes nothing of what answers may take.
        return await send(request, Reply(200, self._openapi))

    # -- verbs ------------------------------------------------------------------------------------------------------

    async def _carry_out(self, route: Route, request: web.Request) -> web.StreamResponse:
        asker = self.sessions.asker(request)
        token = asker.token
        arguments, options = read_query(route, request.query.items())
        if route.verb.may_change:
            return await self._change(route, request, asker, options)
        async with self._body(request, token) if route.has_body else nullcontext(b"") as body:
            if route.has_body:
                arguments = read_body(body, request.content_type)
            asked = Request("", route.verb.name, arguments, options, token)

            async def ask() -> Reply:
                response = await self._link.call(asked, _ignore)
                return reply_to(response, is_reading=True, has_etag=route.has_etag)

            is_shared = not route.has_body and route.verb.is_soon_answered(arguments)
            reply = await (self._reads.answer((token, request.raw_path), ask) if is_shared else ask())
        return await self._send(request, reply)

    async def _change(self, route: Route, request: web.Request, asker: Asker, options: Options) -> web.StreamResponse:
        token, origin = asker.token, asker.origin
        options = replace(options, if_version=read_version(request.headers.get("If-Match")))
        bearer = digest(token)
        is_deferred = "respond-async" in request.headers.get("Prefer", "")
        async with self._body(request, token) as body:
            asked = Request("", route.verb.name, read_body(body, request.content_type), options, token, origin)
            has_precondition = options.if_version is not None

            async def carry_out(operation: Operation | None = None) -> Reply:
                response = await self._link.call(asked, _noted(operation))
                return reply_to(response, is_reading=False, has_precondition=has_precondition)

            async def begin() -> Reply:
                await self._identify(token)
                operation = self._operations.begin(route.verb.name, bearer, carry_out)
                where = f"{PREFIX}/operations/{operation.id}"
                return Reply(202, dumped(operation.as_json(self._operations.now())), JSON, {"Location": where})

            work = begin if is_deferred else carry_out
            fingerprint = b"\n".join((request.raw_path.encode(), str(options.if_version).encode(), body))
            reply = await self._keys.once(bearer, request.headers.get("Idempotency-Key"), fingerprint, work)
        if "Idempotency-Replayed" in reply.headers:
            await self._identify(token)
        return await self._send(request, reply)

    @asynccontextmanager
    async def _body(self, request: web.Request, token: str) -> AsyncIterator[bytes]:
        """Read a body, and hold its bytes while the request is carried out; raise RefusedError.

        A large one is read only for a token that the daemon accepts: others could take all bytes that there are.
        """
        announced = _announced(request)
        if announced <= SMALL_BODY_BYTES:
            yield await _body(request)
            return
        await self._identify(token)
        with self._bodies.hold(announced):
            yield await _body(request)

    async def _identify(self, token: str) -> Response:
        """Have the daemon judge a token; raise RefusedError when it is not accepted."""
        response = await self._link.call(Request("", "api.whoami", credential=token), _ignore)
        if response.exit:
            raise _AnsweredError(reply_to(response, is_reading=True))
        return response

    async def _look_at_operation(self, request: web.Request) -> web.StreamResponse:
        token = self.sessions.token_of(request)
        await self._identify(token)
        operation = self._operations.find(request.match_info["id"], digest(token))
        if operation is None:
            raise RefusedError(report(Code.UNKNOWN_OBJECT, id="of an operation", remedy="it may have ended long ago"))
        shown = operation.as_json(self._operations.now())
        if operation.reply is not None:
            shown["result"] = json.loads(operation.reply.body)
        return await self._send(request, Reply(200, dumped(shown)))

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        token, wanted = self.sessions.token_of(request), read_wanted(request)
        identity = (await self._identify(token)).data
        role = str(identity["role"]) if isinstance(identity, Mapping) else ""
        is_restricted = isinstance(identity, Mapping) and identity.get("is_restricted") is True
        with self.events.place(token, role, is_restricted=is_restricted) as reader, self.sessions.following(request):
            first = await self.events.ask(reader, wanted.begin)
            if first.exit:
                raise _AnsweredError(reply_to(first, is_reading=True))
            assert isinstance(request.protocol, _Conversation)
            return await self.events.serve(request, request.protocol.gone, reader, wanted, first)

    async def _measure(self, request: web.Request) -> web.StreamResponse:
        response = await self._link.call(Request("", "metrics", credential=self.sessions.token_of(request)), _ignore)
        is_down = any(each.code == Code.NOT_RUNNING for each in response.reports)
        if response.exit and not is_down:
            raise _AnsweredError(reply_to(response, is_reading=True))
        families = response.data["families"] if isinstance(response.data, Mapping) else DOWN
        return await self._send(request, exposition(families, self.events.count))

    # -- sessions of the page ---------------------------------------------------------------------------------------

    async def _sign_in(self, request: web.Request) -> web.StreamResponse:
        asker = self.sessions.shown(request)
        identity = (await self._identify(asker.token)).data
        assert isinstance(identity, Mapping)
        author, role = str(identity["author"]), str(identity["role"])
        made, cookie = self.sessions.begin(request, asker.token, author, role, asker.person)
        return await self._send_session(request, made, {"Set-Cookie": cookie})

    async def _look_at_session(self, request: web.Request) -> web.StreamResponse:
        found = self.sessions.find(request)
        if found is None:
            raise RefusedError(report(Code.NOT_AUTHENTICATED, problem="there is no session; sign in with a token"))
        refuse_other_sites(request)
        return await self._send_session(request, found, {})

    async def _sign_out(self, request: web.Request) -> web.StreamResponse:
        self.sessions.token_of(request)
        ended = dumped({"schema": "haclusterd.reports/1", "reports": []})
        return await self._send(request, Reply(200, ended, JSON, {"Set-Cookie": self.sessions.end_of(request)}))

    async def _send_session(
        self, request: web.Request, session: Session, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        return await self._send(request, Reply(200, dumped(session.as_json(time.monotonic())), JSON, headers))

    # -- answers ----------------------------------------------------------------------------------------------------

    async def _send(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        with self._answers.hold(len(reply.body)):
            return await send(request, reply)


class _AnsweredError(Exception):
    """The answer is known already."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.code)
        self.reply = reply


async def send(request: web.Request, reply: Reply) -> web.StreamResponse:
    """Send an answer in pieces; a client that does not take them loses its connection."""
    response = web.StreamResponse(status=reply.status, headers={**_SECURITY, **reply.headers})
    response.content_type = reply.content_type
    response.content_length = len(reply.body)
    _place(request).gives_way()
    try:
        await response.prepare(request)
        for start in range(0, len(reply.body), PIECE_BYTES):
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await response.write(reply.body[start : start + PIECE_BYTES])
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            await response.write_eof()
    except (TimeoutError, OSError):
        if request.transport is not None:
            request.transport.abort()
    return response


@web.middleware
async def _guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn whatever goes wrong into a coded answer."""
    try:
        return await handler(request)
    except RefusedError as refused:
        return await send(request, _refusal(refused))
    except _AnsweredError as answered:
        return await send(request, answered.reply)
    except web.HTTPMethodNotAllowed as error:
        allowed = ", ".join(sorted(error.allowed_methods))
        reply = _refusal(bad("method", f"must be {allowed} here", status=405))
        return await send(request, replace(reply, headers={**reply.headers, "Allow": allowed}))
    except web.HTTPNotFound:
        item = report(Code.UNKNOWN_VERB, verb=repr(request.path[:80]), remedy=f"see: {PREFIX}/openapi.json")
        return await send(request, _refusal(RefusedError(item)))
    except web.HTTPException as error:
        return await send(request, _refusal(bad("request", error.reason[:200], status=error.status)))
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 (one request, not the process, ends with it)
        _log.error("request not answered: %s: %s", type(error).__name__, error, exc_info=error)
        problem = "an error of haclusterd-api"
        return await send(request, _refusal(RefusedError(report(Code.NOT_ANSWERED, problem=problem),
                                                    status=500)))  # fmt: skip


def _serving(asset: Asset) -> Handler:
    async def serve(request: web.Request) -> web.StreamResponse:
        return await send(request, asset.reply_to(request.headers.get("If-None-Match", "")))

    return serve


def _refusal(refused: RefusedError) -> Reply:
    items = tuple(shown_report(item) for item in refused.items)
    reply = reply_to(Response("", int(refused.items[0].exit_status), items), is_reading=False)
    if refused.status is None:
        return reply
    shown = json.loads(reply.body)
    return replace(reply, status=refused.status, body=dumped({**shown, "status": refused.status}))


def _announced(request: web.Request) -> int:
    """Return how many bytes a body may take; raise RefusedError when they are too many, or compressed.

    A compressed body of a few kilobytes may become as many megabytes as are permitted.
    """
    if request.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        raise bad("Content-Encoding", "must be identity: bodies are not compressed", status=415)
    length = request.content_length
    if length is not None and length > BODY_BYTES_MAX:
        raise _too_large()
    return BODY_BYTES_MAX if length is None and request.body_exists else (length or 0)


def _too_large() -> RefusedError:
    return RefusedError(report(Code.TOO_LARGE, what="the body", limit=f"{BODY_BYTES_MAX // 1024 // 1024} MiB"))


async def _body(request: web.Request) -> bytes:
    """Read a body; raise RefusedError when it is too large, or does not come."""
    place = _place(request)
    place.gives_way()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            return await request.read()
    except TimeoutError:
        raise bad("body", f"did not come within {int(BODY_TIMEOUT_S)} s", status=408) from None
    except web.HTTPRequestEntityTooLarge:
        raise _too_large() from None
    except RuntimeError as error:
        if request.protocol.connected:
            raise
        raise ConnectionError("the client has gone") from error  # The library's way to say so.
    finally:
        place.begins()


def _place(request: web.Request) -> Place:
    assert isinstance(request.protocol, _Conversation)
    return request.protocol.place


def _noted(operation: Operation | None) -> Callable[[Progress], None]:
    def note(progress: Progress) -> None:
        if operation is not None:
            operation.waits_for = progress.text

    return note


def _ignore(_: Progress) -> None:
    return None


class _Conversation(web.RequestHandler):
    """A connection on which also what is no HTTP is answered with a code, and of which one learns that it has ended."""

    __slots__ = ("gone", "place")

    def __init__(self, server: web.Server, place: Place) -> None:
        super().__init__(
            server, loop=asyncio.get_running_loop(), access_log=_nobody, logger=_nobody, keepalive_timeout=KEEP_ALIVE_S,
            max_line_size=HEADER_BYTES_MAX, max_field_size=HEADER_BYTES_MAX, lingering_time=1.0, auto_decompress=False,
        )  # fmt: skip
        self.place = place

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self.gone = asyncio.Event()
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End."""
        super().connection_lost(exc)
        self.place.leave()
        self.gone.set()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Refuse what cannot be read as a request, and end the connection; nothing of it is repeated."""
        del exc, message
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun already")
        reply = _refusal(bad("request", "cannot be read as HTTP, or its head is too long", status=status))
        headers = {**_SECURITY, "Content-Type": reply.content_type}
        response = web.Response(status=reply.status, body=reply.body, headers=headers)
        response.force_close()
        return response


async def listen(api: ApiServer, settings: ApiSettings, listeners: Listeners) -> Callable[[], Awaitable[None]]:
    """Serve on every address of the settings; return what ends it. Raises OSError when one cannot be had."""
    runner = web.AppRunner(api.application(), handle_signals=False)
    await runner.setup()
    server = runner.server
    assert server is not None
    is_any_open = False
    for host, port in settings.listen:
        try:
            await listeners.open(host, port, lambda place: _Conversation(server, place))
            is_any_open = True
        except OSError:
            if not (settings.is_default and is_any_open):
                raise
    sweeper = asyncio.get_running_loop().create_task(_sweep(api.sessions))

    async def close() -> None:
        sweeper.cancel()
        listeners.close()
        api.events.close()
        await runner.cleanup()

    return close


async def _sweep(sessions: Sessions) -> None:
    """End old sessions."""
    while True:
        await asyncio.sleep(SWEEP_EVERY_S)
        sessions.forget_old()
