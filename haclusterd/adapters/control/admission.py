"""Who is at the other end of the control socket, whether they may be there, and how much of this daemon they may take.

Invariants: the kernel says who asks, and the name service that knows their names and groups is never asked on the
main loop, which it could hold for as long as a directory server does not answer. No user keeps another out: each has so
many connections, those that wait for the name service included, and so many bytes; and the ones that run this machine
always find a place. The user of `haclusterd-api` is let in to pass on what others ask, and may do nothing by itself.
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
"""As whom `haclusterd-api` runs."""
CONNECTIONS_MAX = 128
CONNECTIONS_OF_OTHERS_MAX = 96
"""Of all users together who neither are root nor run the daemon."""
CONNECTIONS_OF_USER_MAX = 32
PLACE_WAIT_S = 1.0
"""For a connection that finds every place taken: clients that have just ended still hold theirs."""
WAITING_MAX = 32
"""Connections that wait for a place: of those who are trusted, and of the others."""
REQUEST_BYTES_OF_USER_MAX = 16 * 1024 * 1024
"""Of requests that have not come whole, over all connections of one user."""
ANSWER_BYTES_MAX = 16 * 1024 * 1024
"""Of answers that were not read at one connection; more of them, and it is not listening."""
ANSWER_BYTES_OF_USER_MAX = 32 * 1024 * 1024
"""Likewise over all connections of one of those users."""
LOOK_UP_TIMEOUT_S = 5.0
GROUPS_MAX = 64
"""Of one user, as their groups are numbered by the name service."""
_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True, slots=True)
class PeerCredentials:
    """Who is at the other end, as the kernel says."""

    pid: int
    uid: int
    gid: int
    author: str
    """The user's name at this host, looked up once for each connection."""
    is_gateway: bool = False
    """Whether they only pass on what others ask: each request must then carry a token."""
    groups: tuple[str, ...] = ()
    """The names of the user's groups, at most GROUPS_MAX; those of who is trusted are not looked up."""

    @property
    def is_trusted(self) -> bool:
        """Whether this is root, or the user who runs the daemon."""
        return self.uid in {0, os.geteuid()}


class ClientRecognition:
    """Tells who somebody is, and whether they are permitted; at most two look-ups wait for the name service at once."""

    def __init__(self) -> None:
        self._looking_up = ready_pool(2, "names")
        self._own = os.geteuid()
        self._own_author = _look_up(self._own).author

    def recognise(self, connection: socket.socket) -> PeerCredentials:
        """Return who is at the other end, by number; the own user by name as well."""
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, gid = _CREDENTIALS.unpack(raw)
        is_own = uid == self._own
        return PeerCredentials(pid, uid, gid, self._own_author if is_own else f"{uid}@{socket.gethostname()}")

    async def identify(self, found: PeerCredentials) -> tuple[PeerCredentials, str | None]:
        """Return them by name, and why they may not be there; None: they may."""
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
        """Look up nothing more; what waits for the name service is not waited for."""
        self._looking_up.shutdown(wait=False, cancel_futures=True)


class _Waiting:
    """A connection that waits for a place."""

    def __init__(self, uid: int) -> None:
        self.uid = uid
        self.woken = asyncio.Event()
        self.is_over = False
        """Another has its place in the line."""

    def give_way(self) -> None:
        self.is_over = True
        self.woken.set()


class Places:
    """The connections and the bytes of each user."""

    def __init__(self) -> None:
        self._connections: Counter[int] = Counter()
        self._others = 0
        """Connections of those who are not trusted."""
        self._request_bytes: Counter[int] = Counter()
        self._waiting: dict[bool, list[_Waiting]] = {True: [], False: []}
        """Who waits for a place, by whether they are trusted, the oldest first."""

    async def take_soon(self, who: PeerCredentials) -> str | None:
        """Take a place as `take` does, and wait at most PLACE_WAIT_S for one to become free.

        Where too many wait, the oldest of the user who has the most does not wait on: of a burst of connections most
        have ended before their turn.
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
            return self.take(who)  # After a stall the time may end in the same turn in which a place was left.
        finally:
            if not mine.is_over:
                waiting.remove(mine)
        return refusal

    def take(self, who: PeerCredentials) -> str | None:
        """Take a place, to be given back with `leave`; or return why there is none."""
        is_full = self._connections.total() >= CONNECTIONS_MAX
        if is_full or (not who.is_trusted and self._others >= CONNECTIONS_OF_OTHERS_MAX):
            return "too many connections at a time"
        if not who.is_trusted and self._connections[who.uid] >= CONNECTIONS_OF_USER_MAX:
            return "too many connections of one user at a time"
        self._connections[who.uid] += 1
        self._others += not who.is_trusted
        return None

    def leave(self, who: PeerCredentials) -> None:
        """Give a place back."""
        self._connections[who.uid] -= 1
        self._others -= not who.is_trusted
        for each in (*self._waiting[True], *self._waiting[False]):
            each.woken.set()

    def hold(self, who: PeerCredentials, more_bytes: int) -> str | None:
        """Count bytes of incomplete requests, more or (negative) less; return why they are too many."""
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
    """What the name service tells of a user."""

    author: str
    """Their name at this host."""
    is_member: bool = False
    """Whether they are in the control group."""
    is_gateway: bool = False
    groups: tuple[str, ...] = ()


def _look_up(uid: int) -> _Known:
    """Ask the name service who a user is; may block."""
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
