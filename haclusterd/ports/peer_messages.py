"""Messages between the daemons of a cluster, for what is neither urgent nor part of the replicated log.

Contract: a message reaches the named node, from the node that the receiver takes for the sender, or is lost; it is
never changed or made up by a third. Sending never waits and never delays heartbeats or the log: when a link is busy the
message is lost. Nothing that must happen may rest on a message.
"""

from collections.abc import Callable
from typing import Final, Protocol

from haclusterd.model.ids import NodeName

MESSAGE_BYTES_MAX: Final = 256 * 1024
"""Larger ones are refused on both sides."""


class PeerMessages(Protocol):
    """This node's way to its peers. Every call may come from any thread."""

    def open(self, kind: bytes, received: Callable[[NodeName, bytes], None]) -> None:
        """Receive the messages whose first byte is `kind`; those that nobody receives are lost.

        `received` is called on a thread of the adapter and must return at once.
        """
        ...

    def send(self, to: NodeName, message: bytes) -> None:
        """Send, or lose, a message."""
        ...

    def reachable(self) -> tuple[NodeName, ...]:
        """Return who could get a message now, in order of name."""
        ...
