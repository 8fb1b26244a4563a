"""Letters between the daemons of a cluster, for what is neither urgent nor part of the replicated log.

Contract: a letter reaches the named node, from the node that the receiver is told, or is lost; it is never changed or
made up by a third. Sending never waits and never delays heartbeats or the log: when a link is busy the letter is lost.
Nothing that must happen may rest on a letter.
"""

from collections.abc import Callable
from typing import Final, Protocol

from haclusterd.model.ids import NodeName

LETTER_BYTES_MAX: Final = 256 * 1024
"""Larger ones are refused on both sides."""


class PeerMail(Protocol):
    """This node's letter box. Every call may come from any thread."""

    def open(self, received: Callable[[NodeName, bytes], None]) -> None:
        """Begin; `received` is called on a thread of the adapter and must return at once."""
        ...

    def send(self, to: NodeName, letter: bytes) -> None:
        """Send, or lose, a letter."""
        ...

    def reachable(self) -> tuple[NodeName, ...]:
        """Return who could get a letter now, in order of name."""
        ...
