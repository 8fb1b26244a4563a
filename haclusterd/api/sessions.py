"""Sessions of the web page: the browser holds a name in a cookie, this process holds the token behind it.

Invariants: a session may do what its token may, as long as the daemon accepts the token, for LIFE_S at most; a page of
another site that makes a browser send a request changes nothing (OWASP, "Cross-Site Request Forgery Prevention"). No
script can read the cookie, and the token is in no answer.
"""

import asyncio
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from haclusterd.api.client_certificates import NO_CLIENTS, REST, TOKEN, WEB, Asker, ClientCertificates
from haclusterd.api.routes import RefusedError, bad
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, field, replace
from haclusterd.model.requests import ORIGIN
from haclusterd.reports.codes import Code
from haclusterd.reports.items import report

SESSIONS_MAX: Final = 256
"""Where there are more, the one that was not used for longest ends."""
SESSIONS_OF_TOKEN_MAX: Final = 16
LIFE_S: Final = 12 * 3600.0
IDLE_S: Final = 3600.0
"""A session that asks nothing for so long ends."""
CSRF_HEADER: Final = "Haclusterd-Csrf"
SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
FOR_HEADER: Final = "Haclusterd-For"
"""For whom the bearer of a token asks, as the bearer says; it is in the history, and permits nothing."""
_TOKEN = re.compile(rf"Bearer ({TOKEN.pattern})\Z", re.IGNORECASE)


@dataclass(slots=True, eq=False)
class Session:
    """One browser that signed in."""

    token: str
    author: str
    role: str
    csrf: str
    """Answered to the page itself; what changes something must repeat it in a header, which no other site can."""
    began: float
    used: float
    person: str = ""
    """The name in the certificate that it was begun with."""
    transports: set[asyncio.Transport] = field(default_factory=set)
    """Of the streams that it follows."""

    def as_json(self, now: float) -> dict[str, Json]:
        """Return what its page knows of it (schema `haclusterd.session/1`)."""
        return {
            "schema": "haclusterd.session/1", "author": self.author, "role": self.role, "csrf": self.csrf,
            "ends_in_s": max(0, int(self.began + LIFE_S - now)), "reports": [],
        }  # fmt: skip


class Sessions:
    """All sessions of one process; they end with it."""

    def __init__(self, now: Callable[[], float], clients: ClientCertificates = NO_CLIENTS) -> None:
        """`now`: seconds of a clock that only goes forward; `clients`: what certificates stand for."""
        self._now = now
        self._clients = clients
        self._known: dict[bytes, Session] = {}
        """By the digest of what the cookie holds; the one that was used last is the last."""

    def begin(self, request: web.Request, token: str, author: str, role: str, person: str = "") -> tuple[Session, str]:
        """Begin a session for a token that the daemon accepted; return it and the header that sets its cookie."""
        self.forget_old()
        of_token = [name for name, each in self._known.items() if hmac.compare_digest(each.token, token)]
        for name in of_token[: max(0, len(of_token) + 1 - SESSIONS_OF_TOKEN_MAX)]:
            self._end(name)
        while len(self._known) >= SESSIONS_MAX:
            self._end(next(iter(self._known)))
        now, held = self._now(), secrets.token_urlsafe(32)
        session = Session(token, author, role, secrets.token_urlsafe(32), now, now, person)
        self._known[digest(held)] = session
        return session, _cookie(request, held, int(LIFE_S))

    def find(self, request: web.Request) -> Session | None:
        """Return the session of a request, which has been used by it."""
        self.forget_old()
        name = self._name_of(request)
        if name is None:
            return None
        session = self._known[name] = self._known.pop(name)
        session.used = self._now()
        return session

    def _name_of(self, request: web.Request) -> bytes | None:
        return next((each for each in _held(request) if each in self._known), None)

    def token_of(self, request: web.Request) -> str:
        """Return the token in whose name a request is made, as `asker`."""
        return self.asker(request).token

    def shown(self, request: web.Request) -> Asker:
        """Return who asks without a session: by the token in a header, or a certificate; raise RefusedError.

        A browser sends a certificate by itself, and a proxy may add the header to whatever it passes on. So what a page
        of another site has a browser send is refused, as with a cookie; a program names no site.
        """
        refuse_other_sites(request, must_be_named=False)
        if "Authorization" in request.headers:
            person = request.headers.get(FOR_HEADER, "")
            if person and not ORIGIN.match(f"{REST} for {person}"):
                raise bad(FOR_HEADER, "must be one word of at most 128 letters, digits and _.@:/=,+$-")
            return Asker(bearer_of(request), REST, person)
        transport = request.transport
        found = None if transport is None else self._clients.find(transport.get_extra_info("peercert"))
        if found is None:
            raise RefusedError(report(Code.NOT_AUTHENTICATED, problem="Authorization must be: Bearer TOKEN"))
        return found

    def asker(self, request: web.Request) -> Asker:
        """Return who asks: by the token in a header, a session, or a certificate, in this order; raise RefusedError."""
        session = self.find(request)
        if session is None:
            return self.shown(request)
        if "Authorization" in request.headers:
            found = self.shown(request)
            # A proxy adds the header to all that it passes on, to requests of the page too.
            return replace(found, interface=WEB) if hmac.compare_digest(found.token, session.token) else found
        refuse_other_sites(request)
        if request.method not in SAFE_METHODS:
            given = request.headers.get(CSRF_HEADER, "")
            if not hmac.compare_digest(given.encode(), session.csrf.encode()):
                raise bad(CSRF_HEADER, "must be that of the session", status=403)
        return Asker(session.token, WEB, session.person)

    def end_of(self, request: web.Request) -> str:
        """End the session that a request came with; return the header that takes its cookie away."""
        name = self._name_of(request)
        if name is not None:
            self._end(name)
        return _cookie(request, "", 0)

    @contextmanager
    def following(self, request: web.Request) -> Iterator[None]:
        """Let the stream that a request is answered with end with its session."""
        name, transport = self._name_of(request), request.transport
        session = None if name is None or "Authorization" in request.headers else self._known[name]
        if session is None or transport is None:
            yield
            return
        session.transports.add(transport)
        try:
            yield
        finally:
            session.transports.discard(transport)

    def forget_old(self) -> None:
        """End what has lived long enough, with its streams, which ask nothing any more."""
        now = self._now()
        for name, each in tuple(self._known.items()):
            is_idle = not each.transports and now - each.used > IDLE_S
            if is_idle or now - each.began > LIFE_S:
                self._end(name)

    def _end(self, name: bytes) -> None:
        session = self._known.pop(name, None)
        for transport in () if session is None else tuple(session.transports):
            transport.abort()


def digest(held: str) -> bytes:
    """Return that by which this process knows a token, or what a cookie holds."""
    return hashlib.sha256(held.encode()).digest()


def bearer_of(request: web.Request) -> str:
    """Return the token in a request's header; raise RefusedError when there is none."""
    found = _TOKEN.match(request.headers.get("Authorization", ""))
    if found is None:
        raise RefusedError(report(Code.NOT_AUTHENTICATED, problem="Authorization must be: Bearer TOKEN"))
    return found.group(1)


def refuse_other_sites(request: web.Request, *, must_be_named: bool = True) -> None:
    """Refuse what a page of another origin had a browser send (W3C, "Fetch Metadata Request Headers").

    `must_be_named`: a change without an origin is refused too, since only a browser has a cookie. A port is part of the
    origin, though not of the site: another program's page on the same machine is another one.
    """
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    is_safe = request.method in SAFE_METHODS
    if site is not None:
        if site != "same-origin" and not (is_safe and site == "none"):
            raise bad("Sec-Fetch-Site", "must be same-origin", status=403)
    elif origin is not None:
        if urlsplit(origin).netloc != request.headers.get("Host"):
            raise bad("Origin", "must be this server", status=403)
    elif must_be_named and not is_safe:
        raise bad("Origin", "must be named where a cookie changes something", status=403)


def _names(request: web.Request) -> tuple[str, str]:
    """Return what the cookie is called: browsers send a cookie to all ports of a machine."""
    transport = request.transport
    address = None if transport is None else transport.get_extra_info("sockname")
    port = address[1] if address else 0
    return f"__Host-haclusterd-{port}", f"haclusterd-{port}"


def _held(request: web.Request) -> Iterator[bytes]:
    cookies = request.cookies
    for name in _names(request):
        if name in cookies:
            yield digest(cookies[name])


def _cookie(request: web.Request, held: str, life_s: int) -> str:
    is_secure = request.secure or request.headers.get("Origin", "").startswith("https://")
    name, more = (_names(request)[0], "; Secure") if is_secure else (_names(request)[1], "")
    return f"{name}={held}; Path=/; Max-Age={life_s}; HttpOnly; SameSite=Strict{more}"
