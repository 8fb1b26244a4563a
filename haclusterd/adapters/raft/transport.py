"""Frames between voters: mutual TLS 1.3, one session per peer, in order.

The certificate's common name must be the peer's node name, and the greeting must name this cluster and both ends; only
then is a frame read. Of two nodes the one with the greater name dials. A new session replaces the old one, which is
ignored from that instant on. Every link carries pings, so that a dead one is detected before it is needed. All
addresses of a peer are tried in parallel, and the first at which that peer answers is used; names are resolved at each
try. A peer that is refused because another boot of it is alive gets that answer, and tries again.

Layout: length u32 big endian, then that many bytes; length 0 is a ping. Greeting: msgpack [version, cluster, from, to,
boot id]; refusal in its place: [version, "refused", why]. It must never trust a length, and never read from a peer that
it has not authenticated.
"""

import asyncio
import hashlib
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import partial

import msgpack

from haclusterd.adapters.network.certificates import node_name_of
from haclusterd.adapters.network.framed_link import FramedLink, FrameLimitError
from haclusterd.adapters.network.name_resolution import NameResolver
from haclusterd.adapters.network.refusals import Refusals, source_of
from haclusterd.adapters.network.tls_listening import NoHandshakeError, forget_frames, listen, secure
from haclusterd.adapters.raft.unauthenticated import UnauthenticatedPeer, UnauthenticatedPeers
from haclusterd.model.addresses import Address
from haclusterd.model.ids import NODE_NAME, NodeName
from haclusterd.model.records import dataclass, field
from haclusterd.ports.store import PeerPlaces
from haclusterd.raft.settings import MAX_FRAME_BYTES, RaftTimers

GREETING_VERSION = 2
GREETING_BYTES_MAX = 1024
REFUSED = "refused"
BOOT_ID_LENGTH_MAX, REFUSAL_LENGTH_MAX = 64, 400
GREETING_TIMEOUT_S = 2.0
BACKLOG = 256
ACCEPT_PAUSE_S, ACCEPT_RETRY_S = 0.002, 1.0
"""Pause between two connections, so that a flood takes only a part of this loop's time, which also serves the sessions.
A peer that waits behind a full backlog must still be accepted within GREETING_TIMEOUT_S."""
WRITE_BUFFER_MAX = 8 * 1024 * 1024
"""Bytes that a peer may leave unread before its session is given up."""
BACKOFF_FIRST_S, BACKOFF_LAST_S = 0.1, 1.0
STAGGER_S = 0.2
"""Delay between the tries of two addresses of a peer: the first is preferred, but must not delay the others."""
OLD_SESSION_WAIT_S = 2.0
"""How long the node with the lesser name lets the other one dial."""
PLACES_MARK = b"\xc1"
"""First byte of a frame with the members' addresses; no Raft message begins with it, nor any msgpack."""
MEMBERS_MAX, ADDRESSES_MAX, FINGERPRINT_LENGTH = 256, 16, 64
BEAT_DELAY_MAX = 1.25
"""In ping periods: if `beat` was not called for so long, a timer calls it."""
REDIAL_POLL_S, REDIAL_POLLS = 0.05, 20
"""How long a new session is waited for before the next one is closed."""

_log = logging.getLogger(__name__)

class GreetingRefusedError(ConnectionError):
    """The other end is not the expected peer; `reason` is one of a few."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Links:
    """The transport's callbacks; called on its loop, never from within `send`."""

    connected: Callable[[NodeName], None]
    disconnected: Callable[[NodeName], None]
    received: Callable[[NodeName, bytes], bool]
    """Returns False to close the session."""


@dataclass(slots=True, eq=False)
class _Session:
    peer: NodeName
    link: FramedLink
    fingerprint: str
    heard_at: float
    wrote_at: float
    was_silent: bool = False
    is_muted: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def abort(self) -> None:
        self.is_muted = True
        self.link.transport.abort()


@dataclass(slots=True)
class RaftTransport:
    """All links of one voter."""

    node: NodeName
    cluster: str
    places: PeerPlaces
    """The addresses of every member, all of them, so that it can be reached while one network is down."""
    server_context: ssl.SSLContext
    client_context: ssl.SSLContext
    timers: RaftTimers
    boot_id: str = ""
    """The boot of its machine in which this node runs."""
    objection: Callable[[NodeName, str], str] = lambda _peer, _boot_id: ""
    """Returns why a boot of a peer is refused, one of a few reasons; empty: it is not."""
    kept_out: Callable[[NodeName, str], None] = lambda _peer, _why: None
    """Called with the reason why a peer refuses this boot."""
    _links: Links | None = None
    _sessions: dict[NodeName, _Session] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _connecting: UnauthenticatedPeers = field(default_factory=UnauthenticatedPeers)
    _accepting: dict[Address, asyncio.Task[None]] = field(default_factory=dict)
    _dialling: dict[NodeName, asyncio.Task[None]] = field(default_factory=dict)
    _refusals: Refusals = field(default_factory=Refusals)
    """Refusals of unauthenticated connections; separate from those of peers, which no flood may keep from the log."""
    _failures: Refusals = field(default_factory=Refusals)
    _reached_at: dict[NodeName, Address] = field(default_factory=dict)
    """The address at which each peer was last reached."""
    _resolver: NameResolver = field(default_factory=NameResolver)
    _beating: asyncio.TimerHandle | None = None

    async def start(self, links: Links) -> None:
        """Listen and start dialling; raises OSError when none of the addresses is available.

        An address of an interface that is down may appear later; it is tried forever.
        """
        self._links = links
        own = self.places.addresses[self.node]
        refusals = {address: self._listen(address) for address in own}
        missing = [(address, refusal) for address, refusal in refusals.items() if refusal is not None]
        if len(missing) == len(own):
            raise missing[0][1]
        for address, _ in missing:
            self._spawn(self._listen_later(address))
        self.beat()
        self._dial_members()

    def follow(self, places: PeerPlaces) -> None:
        """Use newer addresses of the members; end the sessions of nodes that are no longer members."""
        if places.version <= self.places.version:
            return
        before, self.places = self.places, places
        own_before, own = before.addresses.get(self.node, ()), places.addresses.get(self.node, ())
        for address in own_before:
            if address not in own and address in self._accepting:
                self._accepting.pop(address).cancel()
        for address in own:
            if address not in own_before:
                self._spawn(self._listen_later(address, pause_s=0))
        for peer in sorted(self._dialling):
            if places.addresses.get(peer) != before.addresses.get(peer):
                self._begin_again(peer)
        for peer, session in sorted(self._sessions.items()):
            if peer not in places.addresses or session.fingerprint in places.revoked:
                self._note(peer, "is no member any more, or its certificate is revoked: session closed")
                session.abort()
            else:
                self._write(session, _encode_places(places))
        self._dial_members()

    def renew(self) -> None:
        """Show this node's new certificate, which the contexts already have, to every peer."""
        self._spawn(self._replace_sessions())

    async def _replace_sessions(self) -> None:
        """Replace every session, one after the other, so that it shows this node's present certificate."""
        for peer, session in sorted(self._sessions.items()):
            session.abort()
            for _ in range(REDIAL_POLLS):
                await asyncio.sleep(REDIAL_POLL_S)
                if self._sessions.get(peer) not in (None, session):
                    break

    def _begin_again(self, peer: NodeName) -> None:
        """Stop dialling a peer at its former addresses; a session that was made there ends."""
        self._dialling.pop(peer).cancel()
        if peer in self._sessions and self.node > peer:
            self._sessions[peer].abort()

    def _dial_members(self) -> None:
        for peer in sorted(self.places.addresses):
            if peer != self.node and peer not in self._dialling:
                self._dialling[peer] = self._spawn(self._dial_for_ever(peer))

    def _listen(self, address: Address) -> OSError | None:
        try:
            listener = listen(address, BACKLOG)
        except OSError as error:
            self._note("", f"cannot listen on {address}: {_reason_of(error)}", f"cannot listen on {address}: {error}")
            return error
        accepting = self._accepting[address] = self._spawn(self._accept_for_ever(listener))
        accepting.add_done_callback(partial(_close, listener))
        return None

    async def _listen_later(self, address: Address, *, pause_s: float = BACKOFF_LAST_S) -> None:
        while True:
            await asyncio.sleep(pause_s)
            pause_s = BACKOFF_LAST_S
            if address not in self.places.addresses.get(self.node, ()) or self._listen(address) is None:
                return

    async def stop(self) -> None:
        """Close everything; no callback is called afterwards."""
        if self._beating is not None:
            self._beating.cancel()
        sessions = list(self._sessions.values())
        self._sessions.clear()
        for session in sessions:
            session.abort()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._resolver.close()
        await asyncio.sleep(0)

    def send(self, peer: NodeName, frame: bytes) -> None:
        """Send a frame; it is lost when there is no session."""
        session = self._sessions.get(peer)
        if session is not None and not session.is_muted:
            self._write(session, frame)

    def send_if_idle(self, peer: NodeName, frame: bytes) -> None:
        """Send a frame when nothing waits on the link to the peer; otherwise it is lost."""
        session = self._sessions.get(peer)
        if session is not None and not session.is_muted and not session.link.transport.get_write_buffer_size():
            self._write(session, frame)

    def _write(self, session: _Session, frame: bytes) -> None:
        if session.link.transport.get_write_buffer_size() > WRITE_BUFFER_MAX:
            self._note(session.peer, "reads too slowly: session given up")
            session.abort()
            return
        session.wrote_at = asyncio.get_running_loop().time()
        session.link.send(frame)

    # Establishing sessions.

    async def _accept_for_ever(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, place = await loop.sock_accept(listener)
            except OSError as error:
                self._note("", f"cannot accept: {_reason_of(error)}")
                await asyncio.sleep(ACCEPT_RETRY_S)
                continue
            connecting = UnauthenticatedPeer(connection, source_of(place[0]))
            pushed_out = self._connecting.enter(connecting)
            if pushed_out is not None:
                self._refuse(pushed_out.source, "too many connections at a time, the oldest is closed")
            self._spawn(self._welcome(connecting)).add_done_callback(partial(_close, connection))
            await asyncio.sleep(ACCEPT_PAUSE_S)

    async def _welcome(self, connecting: UnauthenticatedPeer) -> None:
        link = FramedLink()
        transport: asyncio.Transport | None = None
        try:
            async with asyncio.timeout(GREETING_TIMEOUT_S):
                transport = await secure(connecting.connection, self.server_context, GREETING_TIMEOUT_S, link)
                peer = self._recognise(link)
                objection = self.objection(peer, await self._read_greeting(link, peer))
            if objection:
                link.send(msgpack.packb([GREETING_VERSION, REFUSED, objection[:REFUSAL_LENGTH_MAX]]))
                raise GreetingRefusedError(objection)
            self._connecting.leave(connecting)
            self._greet(link, peer)
            await self._serve(self._open_session(peer, link))
        except (OSError, EOFError) as error:
            self._refuse(connecting.source, _reason_of(error), str(error))
            forget_frames(error)
        finally:
            self._connecting.leave(connecting)
            if transport is not None:
                transport.abort()

    def _refuse(self, source: str, reason: str, text: str = "") -> None:
        """Log why a connection was closed, once in a while for each source and reason."""
        line = f"connection from {source} closed: {text if reason in text else reason}"
        self._log(self._refusals.line(source, reason, line, asyncio.get_running_loop().time()))

    async def _dial_for_ever(self, peer: NodeName) -> None:
        pause_s = BACKOFF_FIRST_S
        while True:
            if self.node < peer:
                # The other end dials first; but it may not know this node yet, or not its new address.
                await asyncio.sleep(OLD_SESSION_WAIT_S)
            session = self._sessions.get(peer)
            if (session is not None and not await self._is_doubtful(session)) or await self._dial(peer):
                pause_s = BACKOFF_FIRST_S
            await asyncio.sleep(pause_s)
            pause_s = min(BACKOFF_LAST_S, 2 * pause_s)

    async def _is_doubtful(self, session: _Session) -> bool:
        """Wait until a session has ended, or has been silent for so long that another address is worth a try.

        The session is not closed for that: only a new one replaces it, or its own silence ends it.
        """
        loop = asyncio.get_running_loop()
        has_other_ways = len(self.places.addresses.get(session.peer, ())) > 1 and self.node > session.peer
        was_silent = False
        while not session.ended.is_set():
            # It cannot have been silent for so long before; then check again soon.
            left_s = session.heard_at + self.timers.silence_ms / 1000 / 2 - loop.time()
            pause_s = max(left_s, self.timers.ping_ms / 1000 / 2)
            try:
                async with asyncio.timeout(pause_s if has_other_ways else None):
                    await session.ended.wait()
            except TimeoutError:
                is_silent = loop.time() - session.heard_at > self.timers.silence_ms / 1000 / 2
                # Twice, as where a session is ended: this process itself may have stood still.
                if is_silent and was_silent:
                    return True
                was_silent = is_silent
        return False

    async def _dial(self, peer: NodeName) -> bool:
        """Establish a session, which is served in the background; return whether that was possible."""
        link = await self._reach(peer)
        if link is None:
            return False
        try:
            async with asyncio.timeout(GREETING_TIMEOUT_S):
                self._greet(link, peer)
                if objection := self.objection(peer, await self._read_greeting(link, peer)):
                    raise GreetingRefusedError(objection)
        except BaseException as error:
            link.transport.abort()
            if not isinstance(error, OSError | EOFError):
                raise
            self._note(peer, _reason_of(error), f"session with {peer} closed: {error!r}")
            return False
        self._spawn(self._serve_dialled(self._open_session(peer, link)))
        return True

    async def _serve_dialled(self, session: _Session) -> None:
        try:
            await self._serve(session)
        except (OSError, EOFError) as error:
            self._note(session.peer, _reason_of(error), f"session with {session.peer} closed: {error!r}")

    async def _reach(self, peer: NodeName) -> FramedLink | None:
        """Try all addresses of a peer, each a little later than the one before; return the first connection to it."""
        # While the address of an existing session is in doubt, it is tried last.
        doubted = self._reached_at.get(peer) if peer in self._sessions else None
        ways = sorted(self.places.addresses[peer], key=lambda address: address == doubted)
        trying = {self._spawn_try(peer, address, number * STAGGER_S) for number, address in enumerate(ways)}
        reached: FramedLink | None = None
        try:
            while trying and reached is None:
                done, trying = await asyncio.wait(trying, return_when=asyncio.FIRST_COMPLETED)
                for each in sorted(done, key=lambda task: task.get_name()):
                    reached = _keep_first(reached, each.result())
        finally:
            for each in trying:
                each.cancel()
                each.add_done_callback(_close_late)
        return reached

    def _spawn_try(self, peer: NodeName, address: Address, delay_s: float) -> "asyncio.Task[FramedLink | None]":
        return asyncio.get_running_loop().create_task(self._try(peer, address, delay_s), name=f"{delay_s:09.3f}")

    async def _try(self, peer: NodeName, address: Address, delay_s: float) -> FramedLink | None:
        """Connect to the addresses of a name; None when none of them is this peer."""
        await asyncio.sleep(delay_s)
        loop = asyncio.get_running_loop()
        try:
            found = await self._resolver.resolve(address)
        except OSError as error:
            self._note(peer, str(error), f"{peer} at {address}: {error}")
            return None
        for numeric in found:
            try:
                async with asyncio.timeout(GREETING_TIMEOUT_S):
                    _, link = await loop.create_connection(FramedLink, *numeric, ssl=self.client_context)
            except OSError as error:
                self._note(peer, _reason_of(error), f"{peer} at {numeric}: {error!r}")
                continue
            try:
                if self._recognise(link) == peer:
                    self._reached_at[peer] = address
                    return link
                self._note(peer, "another peer is there", f"{numeric} is not {peer}")
            except GreetingRefusedError as error:
                self._note(peer, error.reason, f"{peer} at {numeric}: {error}")
            link.transport.abort()
        return None

    def _recognise(self, link: FramedLink) -> NodeName:
        certificate = link.transport.get_extra_info("peercert") or {}
        name = node_name_of(certificate)
        if name is None or name == self.node or name not in self.places.addresses:
            raise GreetingRefusedError(f"the certificate names {name}, which is no peer here")
        if _fingerprint(link) in self.places.revoked:
            raise GreetingRefusedError(f"the certificate of {name} is revoked")
        return name

    def _greet(self, link: FramedLink, peer: NodeName) -> None:
        link.send(msgpack.packb([GREETING_VERSION, self.cluster, self.node, peer, self.boot_id]))

    async def _read_greeting(self, link: FramedLink, peer: NodeName) -> str:
        """Return the boot id in the peer's greeting."""
        data = await link.frame(GREETING_BYTES_MAX)
        try:
            greeting = msgpack.unpackb(data, max_ext_len=0, max_map_len=0)
        except (ValueError, TypeError, msgpack.UnpackException):
            raise GreetingRefusedError(f"{peer} sent no greeting") from None
        if why := _refusal_in(greeting):
            self.kept_out(peer, why)
            raise GreetingRefusedError(f"{peer} does not let this node in", why)
        boot_id = _boot_id_in(greeting)
        if boot_id is None or greeting != [GREETING_VERSION, self.cluster, peer, self.node, boot_id]:
            raise GreetingRefusedError(f"{peer} is of another cluster or version", str(greeting)[:200])
        return boot_id

    # A session.

    def _open_session(self, peer: NodeName, link: FramedLink) -> _Session:
        now = asyncio.get_running_loop().time()
        session = _Session(peer, link, _fingerprint(link), heard_at=now, wrote_at=now)
        assert self._links is not None
        self._begin(session, self._links)
        self._write(session, _encode_places(self.places))
        return session

    async def _serve(self, session: _Session) -> None:
        links = self._links
        assert links is not None
        try:
            await session.link.serve(partial(self._take, session, links), MAX_FRAME_BYTES)
        finally:
            self._end(session, links)

    def _take(self, session: _Session, links: Links, frame: bytes) -> None:
        if session.is_muted:
            return
        session.heard_at = asyncio.get_running_loop().time()
        if frame[:1] == PLACES_MARK:
            self._learn(session.peer, frame)
        elif frame and not links.received(session.peer, frame):
            raise GreetingRefusedError(f"{session.peer} sent a frame that is not a message")

    def _learn(self, peer: NodeName, frame: bytes) -> None:
        """Take newer members from a peer: a node that was away for long may not know who leads now."""
        places = _decode_places(frame)
        if places is None:
            raise GreetingRefusedError(f"{peer} sent a list of members that is none")
        self.follow(places)

    def _begin(self, session: _Session, links: Links) -> None:
        old = self._sessions.pop(session.peer, None)
        if old is not None:
            old.abort()
            links.disconnected(session.peer)
        self._sessions[session.peer] = session
        links.connected(session.peer)

    def _end(self, session: _Session, links: Links) -> None:
        session.abort()
        session.ended.set()
        if self._sessions.get(session.peer) is session:
            del self._sessions[session.peer]
            links.disconnected(session.peer)

    def beat(self) -> None:
        """Check all links. Whatever wakes this thread calls it about once in a ping period."""
        loop = asyncio.get_running_loop()
        ping_s, now = self.timers.ping_ms / 1000, loop.time()
        if self._beating is not None:
            self._beating.cancel()
        self._beating = loop.call_later(BEAT_DELAY_MAX * ping_s, self.beat)
        for session in list(self._sessions.values()):
            is_silent = now - session.heard_at > self.timers.silence_ms / 1000
            # Once is not enough: after a stall of this process, what the peer sent meanwhile is read only now.
            if is_silent and session.was_silent:
                session.abort()
                continue
            session.was_silent = is_silent
            if now - session.wrote_at >= ping_s / 2:
                self._write(session, b"")

    def _spawn(self, work: "asyncio._CoroutineLike[None]") -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Pass a programmer's error to the loop's handler; other errors were handled where they arose."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            context = {"message": "a link's task failed", "exception": error, "task": task}
            asyncio.get_running_loop().call_exception_handler(context)

    def _note(self, peer: str, reason: str, text: str = "") -> None:
        """Log a problem with a peer, or with this end, once in a while."""
        now_s = asyncio.get_running_loop().time()
        self._log(self._failures.line(peer, reason, text or f"{peer} {reason}".lstrip(), now_s))

    def _log(self, line: str) -> None:
        if line:
            _log.warning("%s: %s", self.node, line)


def _reason_of(error: Exception) -> str:
    """Return the kind of an error, without any received data: there must be few of them."""
    if isinstance(error, GreetingRefusedError):
        return error.reason
    if isinstance(error, NoHandshakeError):
        return str(error)
    if isinstance(error, FrameLimitError):
        return "a frame is too long"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or type(error).__name__}"
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, EOFError):
        return "it ended within a frame"
    return (isinstance(error, OSError) and error.strerror) or type(error).__name__


def _keep_first(reached: FramedLink | None, other: FramedLink | None) -> FramedLink | None:
    """Return the connection that was made first; a second one is closed."""
    if reached is not None and other is not None:
        other.transport.abort()
    return reached or other


def _close_late(late: "asyncio.Task[FramedLink | None]") -> None:
    connection = None if late.cancelled() or late.exception() else late.result()
    if connection is not None:
        connection.transport.abort()


def _close(opened: socket.socket, _: "asyncio.Task[None]") -> None:
    """Close a task's socket after the task; not earlier, since the loop may still wait for it."""
    opened.close()


def _fingerprint(link: FramedLink) -> str:
    """Return the SHA-256 of the peer's certificate."""
    tls = link.transport.get_extra_info("ssl_object")
    return hashlib.sha256(tls.getpeercert(binary_form=True) or b"").hexdigest()


def _refusal_in(greeting: object) -> str:
    """Return why a peer refuses this node; empty when it does not."""
    if not isinstance(greeting, list) or len(greeting) != 3 or greeting[:2] != [GREETING_VERSION, REFUSED]:
        return ""
    why = greeting[2]
    return why if type(why) is str and 0 < len(why) <= REFUSAL_LENGTH_MAX and why.isprintable() else ""


def _boot_id_in(greeting: object) -> str | None:
    boot_id = greeting[-1] if isinstance(greeting, list) and greeting else None
    is_sound = type(boot_id) is str and len(boot_id) <= BOOT_ID_LENGTH_MAX and boot_id.isprintable()
    return boot_id if is_sound else None


def _encode_places(places: PeerPlaces) -> bytes:
    members = [[name, [list(address) for address in places.addresses[name]]] for name in sorted(places.addresses)]
    packed: bytes = msgpack.packb([places.version, members, sorted(places.revoked)])
    return PLACES_MARK + packed


def _decode_places(frame: bytes) -> PeerPlaces | None:
    """Return the members in a frame; None when it is invalid."""
    try:
        version, members, revoked = msgpack.unpackb(frame[1:], max_ext_len=0, max_map_len=0, max_array_len=4096)
        addresses = {NodeName(name): _addresses(places) for name, places in members}
        is_sound = type(version) is int and version >= 0 and 0 < len(addresses) == len(members) <= MEMBERS_MAX
        is_sound = is_sound and all(NODE_NAME.match(name) for name in addresses)
        is_sound = is_sound and all(type(each) is str and len(each) == FINGERPRINT_LENGTH for each in revoked)
        return PeerPlaces(version, addresses, frozenset(revoked)) if is_sound else None
    except (ValueError, TypeError, msgpack.UnpackException):
        return None


def _addresses(places: Sequence[Sequence[object]]) -> tuple[Address, ...]:
    if not 0 < len(places) <= ADDRESSES_MAX:
        raise ValueError("a member without, or with too many addresses")
    return tuple(_address(*place) for place in places)


def _address(host: object, port: object) -> Address:
    if type(host) is not str or not 0 < len(host) < 256 or type(port) is not int or not 0 < port < 65536:
        raise ValueError("no address")
    return host, port
