"""Heartbeats on the simulated wire: what a datagram says and under which key, and now and then its bytes.

Writing and reading a heartbeat is a pure function there and back, and costs more than everything else that is done with
it. So only the first of every so many that a pacer sends travel as bytes: these must say, read by the production
codec, what was written. The others are accepted under the same conditions: a known sender, its key, the right receiver.
"""

from collections.abc import Mapping
from typing import NamedTuple

from haclusterd.model.ids import NodeName
from haclusterd.model.pacer import Heartbeat
from haclusterd.protocol import heartbeat as heartbeats

WRITTEN_EVERY = 64
"""Of so many heartbeats of a pacer to a peer one travels as bytes, the first among them."""


class Sealed(NamedTuple):
    """One datagram."""

    heartbeat: Heartbeat
    key: bytes
    data: bytes
    """What is sent; empty where the bytes are spared."""


def seal(heartbeat: Heartbeat, key: bytes, *, number: int) -> Sealed:
    """Return the datagram; `number` counts those of a pacer to a peer."""
    return Sealed(heartbeat, key, heartbeats.encode(heartbeat, key) if number % WRITTEN_EVERY == 0 else b"")


def opened(sealed: Sealed, receiver: NodeName, keys: Mapping[NodeName, bytes]) -> Heartbeat | heartbeats.Rejection:
    """Return what a datagram says, or why it is refused, as `heartbeats.decode` does."""
    if sealed.data:
        heartbeat = heartbeats.decode(sealed.data, receiver, keys)
        assert not isinstance(heartbeat, Heartbeat) or heartbeat == sealed.heartbeat, (heartbeat, sealed.heartbeat)
        return heartbeat
    if sealed.heartbeat.receiver != receiver:
        return heartbeats.Rejection.MISDIRECTED
    key = keys.get(sealed.heartbeat.sender)
    if key is None:
        return heartbeats.Rejection.UNKNOWN_SENDER
    return sealed.heartbeat if key == sealed.key else heartbeats.Rejection.NOT_AUTHENTIC
