"""Who is at the other end of the control socket, whether they may connect, and how many resources they may use.

Invariants: the kernel says who asks. The name service, which knows their names and groups, is never asked on the main
loop: a directory server that does not answer would block it. No user keeps another out: each has a limited number of
connections, including those that wait for the name service, and of bytes; and root and the daemon's own user always
find a place. The user of `haclusterd-api` may connect to pass on requests of others, and may do nothing by itself.
"""

import asyncio
import grp
import os
import pwd
import socket
import struct
from collections import Counter

from haclusterd.adapters.machine.ready_threads import ready_pool
from haclusterd.model.records import dataclass, replace

CONTROL_GROUP = "haclient"
API_USER = "haclusterd-api"
"""The user that runs `haclusterd-api`."""
CONNECTIONS_MAX = 128
CONNECTIONS_OF_OTHERS_MAX = 96
"""Of all users together that are neither root nor the daemon's own."""
CONNECTIONS_OF_USER_MAX = 32
PLACE_WAIT_S = 1.0
"""How long a connection waits while every place is taken: clients that have just ended still hold theirs."""
WAITING_MAX = 32
"""Connections that wait for a place: of trusted users, and of the others."""
REQUEST_BYTES_OF_USER_MAX = 16 * 1024 * 1024
"""Bytes of incomplete requests, over all connections of one user."""
ANSWER_BYTES_MAX = 16 * 1024 * 1024
"""Bytes of unread answers on one connection; with more of them it is closed, because its client does not read."""
ANSWER_BYTES_OF_USER_MAX = 32 * 1024 * 1024
"""Bytes of unread answers, over all connections of a user that is not trusted."""
LOOK_UP_TIMEOUT_S = 5.0
GROUPS_MAX = 64
"""Maximum number of groups of one user, in the order of the name service."""
_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True, slots=True)
class PeerCredentials:
    """The user at the other end, according to the kernel."""

    pid: int
    uid: int
    gid: int
    author: str
    """The user's name on this host, looked up once for each connection."""
    is_gateway: bool = False
    """Whether it only passes on requests of others: each must then carry a token."""
    groups: tuple[str, ...] = ()
    """The names of the user's groups, at most GROUPS_MAX; those of trusted users are not looked up."""

    @property
    def is_trusted(self) -> bool:
        """Whether this is root, or the user that runs the daemon."""
        return self.uid in {0, os.geteuid()}


class ClientRecognition:
    """Finds out who a client is, and whether it is permitted; at most two look-ups are under way at once."""

    def __init__(self) -> None:
        self._looking_up = ready_pool(2, "names")
        self._own = os.geteuid()
        self._own_author = _look_up(self._own).author

    def recognise(self, connection: socket.socket) -> PeerCredentials:
        """Return the user at the other end, by number; the daemon's own user by name as well."""
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, gid = _CREDENTIALS.unpack(raw)
        is_own = uid == self._own
        return PeerCredentials(pid, uid, gid, self._own_author if is_own else f"{uid}@{socket.gethostname()}")

    async def identify(self, found: PeerCredentials) -> tuple[PeerCredentials, str | None]:
        """Return the user by name, and why it may not connect; None: it may."""
        if found.uid == self._own:
            return found, None
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(LOOK_UP_TIMEOUT_S):
                known = await loop.run_in_executor(self._looking_up, _look_up, found.uid)
        except TimeoutError:
            return found, None if found.is_trusted else "the name service does not answer"
        identified = replace(found, author=known.author, is_gateway=known.is_gateway, groups=known.groups)
        is_let_in = found.is_trusted or known.is_member or known.is_gateway
        return identified, None if is_let_in else "not permitted"

    def close(self) -> None:
        """Start no more look-ups; do not wait for those under way."""
        self._looking_up.shutdown(wait=False, cancel_futures=True)


class _Waiting:
    """A connection that waits for a place."""

    def __init__(self, uid: int) -> None:
        self.uid = uid
        self.woken = asyncio.Event()
        self.is_over = False
        """Another connection has taken its place in the queue."""

    def give_way(self) -> None:
        self.is_over = True
        self.woken.set()


class Places:
    """The connections and the bytes of each user."""

    def __init__(self) -> None:
        self._connections: Counter[int] = Counter()
        self._others = 0
        """Connections of users that are not trusted."""
        self._request_bytes: Counter[int] = Counter()
        self._waiting: dict[bool, list[_Waiting]] = {True: [], False: []}
        """Connections that wait for a place, by whether they are trusted, oldest first."""

    async def take_soon(self, who: PeerCredentials) -> str | None:
        """Take a place as `take` does, and wait at most PLACE_WAIT_S for one to become free.

        If too many wait, the oldest one of the user with the most is given up: in a burst of connections most have
        ended before their turn.
        """
        refusal = self.take(who)
        if refusal is None:
            return None
        waiting, mine = self._waiting[who.is_trusted], _Waiting(who.uid)
        if len(waiting) >= WAITING_MAX:
            ((greedy, _),) = Counter(each.uid for each in waiting).most_common(1)
            oldest = next(each for each in waiting if each.uid == greedy)
            waiting.remove(oldest)
            oldest.give_way()
        waiting.append(mine)
        try:
            async with asyncio.timeout(PLACE_WAIT_S):
                while refusal is not None and not mine.is_over:
                    mine.woken.clear()
                    await mine.woken.wait()
                    refusal = self.take(who)
        except TimeoutError:
            return self.take(who)  # After a stall the timeout and a free place may come in the same turn of the loop.
        finally:
            if not mine.is_over:
                waiting.remove(mine)
        return refusal

    def take(self, who: PeerCredentials) -> str | None:
        """Take a place, to be returned with `leave`; or return why there is none."""
        is_full = self._connections.total() >= CONNECTIONS_MAX
        if is_full or (not who.is_trusted and self._others >= CONNECTIONS_OF_OTHERS_MAX):
            return "too many connections at a time"
        if not who.is_trusted and self._connections[who.uid] >= CONNECTIONS_OF_USER_MAX:
            return "too many connections of one user at a time"
        self._connections[who.uid] += 1
        self._others += not who.is_trusted
        return None

    def leave(self, who: PeerCredentials) -> None:
        """Return a place."""
        self._connections[who.uid] -= 1
        self._others -= not who.is_trusted
        for each in (*self._waiting[True], *self._waiting[False]):
            each.woken.set()

    def hold(self, who: PeerCredentials, more_bytes: int) -> str | None:
        """Add bytes of incomplete requests (negative: subtract); return why there are too many, or None."""
        self._request_bytes[who.uid] += more_bytes
        if self._request_bytes[who.uid] > REQUEST_BYTES_OF_USER_MAX:
            return "too much begun and not ended"
        return None


def control_group() -> int | None:
    """Return the id of the group whose members may use the socket, if this machine has it."""
    try:
        return grp.getgrnam(CONTROL_GROUP).gr_gid
    except KeyError:
        return None


@dataclass(frozen=True, slots=True)
class _Known:
    """What the name service knows of a user."""

    author: str
    """The user's name on this host."""
    is_member: bool = False
    """Whether the user is in the control group."""
    is_gateway: bool = False
    groups: tuple[str, ...] = ()


def _look_up(uid: int) -> _Known:
    """Ask the name service about a user; may block."""
    host = socket.gethostname()
    try:
        user = pwd.getpwuid(uid)
    except KeyError:
        return _Known(f"{uid}@{host}")
    group = control_group()
    is_gateway = user.pw_name == API_USER
    numbers = os.getgrouplist(user.pw_name, user.pw_gid)
    is_member = group is not None and group in numbers
    names = _names_of(numbers) if is_member and uid != 0 else ()
    return _Known(f"{user.pw_name}@{host}", is_member and not is_gateway, is_gateway, names)


def _names_of(groups: list[int]) -> tuple[str, ...]:
    found: list[str] = []
    for number in groups[:GROUPS_MAX]:
        try:
            found.append(grp.getgrgid(number).gr_name)
        except KeyError:
            continue
    return tuple(found)
