"""Messages between daemons on the links of the Raft transport: authenticated there, and of lower priority.

A message is a frame that begins with a byte no Raft message begins with. It is passed on unread, so a message costs the
Raft thread one comparison; it is dropped if the link has bytes waiting.

Invariant: nothing here may wait, and no part of a message may reach the Raft core.
"""

from collections.abc import Callable
from typing import Final, Protocol

from haclusterd.model.ids import NodeName
from haclusterd.ports.peer_messages import MESSAGE_BYTES_MAX

MARK: Final = b"\xc0"
"""MessagePack's nil: no Raft message begins with it, nor does the transport's list of members (`PLACES_MARK`)."""


class Links(Protocol):
    """The part of the transport that is used here, on its loop."""

    def send_if_idle(self, peer: NodeName, frame: bytes) -> None:
        """Send a frame if nothing waits on the link to the peer, otherwise drop it."""
        ...


class Post(Protocol):
    """Makes a call on the loop of the links, from any thread; raises RuntimeError when that has ended."""

    def __call__(self, call: Callable[[NodeName, bytes], None], to: NodeName, frame: bytes, /) -> object:
        """Call `call(to, frame)` on the loop."""
        ...


class RaftPeerMessages:
    """`PeerMessages` over a transport that may be replaced."""

    def __init__(self) -> None:
        self._receivers: dict[bytes, Callable[[NodeName, bytes], None]] = {}
        self._way: tuple[Post, Links] | None = None
        self._reachable: frozenset[NodeName] = frozenset()

    # Called on any thread.

    def open(self, kind: bytes, received: Callable[[NodeName, bytes], None]) -> None:
        """See `PeerMessages.open`."""
        self._receivers[kind] = received

    def send(self, to: NodeName, message: bytes) -> None:
        """See `PeerMessages.send`."""
        way = self._way
        if way is None or len(message) > MESSAGE_BYTES_MAX:
            return
        post, links = way
        try:
            post(links.send_if_idle, to, MARK + message)
        except RuntimeError:
            return  # The loop has ended meanwhile.

    def reachable(self) -> tuple[NodeName, ...]:
        """See `PeerMessages.reachable`."""
        return tuple(sorted(self._reachable))

    # Called on the Raft thread.

    def attach(self, post: Post, links: Links) -> None:
        """Use these links from now on; `post` makes a call on their loop, from any thread."""
        self._way = (post, links)

    def detach(self) -> None:
        """Note that there are no links any more."""
        self._way = None
        self._reachable = frozenset()

    def connected(self, peer: NodeName) -> None:
        """Note that a link is up."""
        self._reachable |= {peer}

    def disconnected(self, peer: NodeName) -> None:
        """Note that a link is gone."""
        self._reachable -= {peer}

    def take(self, peer: NodeName, frame: bytes) -> bool:
        """Take a frame if it is a message; return whether it was one."""
        if frame[:1] != MARK:
            return False
        received = self._receivers.get(frame[1:2])
        if received is not None and len(frame) <= MESSAGE_BYTES_MAX + 1:
            received(peer, frame[1:])
        return True


class NoPeerMessages:
    """`PeerMessages` of a node without peers."""

    def open(self, kind: bytes, received: Callable[[NodeName, bytes], None]) -> None:
        """See `PeerMessages.open`."""

    def send(self, to: NodeName, message: bytes) -> None:
        """See `PeerMessages.send`."""

    def reachable(self) -> tuple[NodeName, ...]:
        """See `PeerMessages.reachable`."""
        return ()
