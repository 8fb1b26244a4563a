"""Messages between daemons on the links of the Raft transport: authenticated there, and after everything else.

A message is a frame that begins with a byte no Raft message begins with. It is handed on without being looked at, so a
message costs the Raft thread a comparison; one for a link that has bytes waiting is lost.

Invariant: nothing here may wait, and nothing of a message may reach the Raft core.
"""

from collections.abc import Callable
from typing import Final, Protocol

from haclusterd.model.ids import NodeName
from haclusterd.ports.peer_messages import MESSAGE_BYTES_MAX

MARK: Final = b"\xc0"
"""MessagePack's nil: no Raft message begins with it, nor does the transport's list of members (`PLACES_MARK`)."""


class Links(Protocol):
    """What is asked of the transport, on its loop."""

    def send_if_idle(self, peer: NodeName, frame: bytes) -> None:
        """Send a frame when nothing waits on the link to the peer, or lose it."""
        ...


class Post(Protocol):
    """Makes a call on the loop of the links, from any thread; raises RuntimeError when it has ended."""

    def __call__(self, call: Callable[[NodeName, bytes], None], to: NodeName, frame: bytes, /) -> object:
        """Do so."""
        ...


class RaftPeerMessages:
    """`PeerMessages` over a transport that may come, go and come again."""

    def __init__(self) -> None:
        self._receivers: dict[bytes, Callable[[NodeName, bytes], None]] = {}
        self._way: tuple[Post, Links] | None = None
        self._reachable: frozenset[NodeName] = frozenset()

    # What is called on any thread.

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

    # What the Raft thread calls.

    def attach(self, post: Post, links: Links) -> None:
        """Use these links from now on; `post` makes a call on their loop, from any thread."""
        self._way = (post, links)

    def detach(self) -> None:
        """There are no links any more."""
        self._way = None
        self._reachable = frozenset()

    def connected(self, peer: NodeName) -> None:
        """A link has come up."""
        self._reachable |= {peer}

    def disconnected(self, peer: NodeName) -> None:
        """A link is gone."""
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
    """`PeerMessages` of a node that has nobody to write to."""

    def open(self, kind: bytes, received: Callable[[NodeName, bytes], None]) -> None:
        """See `PeerMessages.open`."""

    def send(self, to: NodeName, message: bytes) -> None:
        """See `PeerMessages.send`."""

    def reachable(self) -> tuple[NodeName, ...]:
        """See `PeerMessages.reachable`."""
        return ()
