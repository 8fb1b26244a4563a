"""Connections whose other end is not authenticated yet: few at a time, and a flood from one source keeps no other out.

A connection counts from the moment it is accepted, before any handshake, until its greeting was read. Invariant: there
are never more than UNAUTHENTICATED_MAX; when one more arrives, the oldest one of the source with the most is closed, so
that a flood displaces its own connections.
"""

import socket
from collections import Counter

from haclusterd.model.records import dataclass, field

UNAUTHENTICATED_MAX = 64


@dataclass(slots=True, eq=False)
class UnauthenticatedPeer:
    """One such connection."""

    connection: socket.socket
    source: str
    """See `refusals.source_of`."""


@dataclass(slots=True)
class UnauthenticatedPeers:
    """All such connections, oldest first."""

    _present: list[UnauthenticatedPeer] = field(default_factory=list)

    def enter(self, peer: UnauthenticatedPeer) -> UnauthenticatedPeer | None:
        """Add one; return the one that was closed for it."""
        self._present.append(peer)
        if len(self._present) <= UNAUTHENTICATED_MAX:
            return None
        counts = Counter(each.source for each in self._present)
        most = max(counts.values())
        pushed_out = next(each for each in self._present if counts[each.source] == most)
        self._present.remove(pushed_out)
        _hang_up(pushed_out.connection)
        return pushed_out

    def leave(self, peer: UnauthenticatedPeer) -> None:
        """Remove one that is authenticated or has ended; harmless when it is not there."""
        if peer in self._present:
            self._present.remove(peer)


def _hang_up(connection: socket.socket) -> None:
    """End a connection that another task reads: that detects the end, and closes it."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # The other end was faster.
