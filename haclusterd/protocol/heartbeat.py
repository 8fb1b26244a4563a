"""The datagram that carries one heartbeat from one pacer to another.

Layout, big-endian, version 1; `text` is one length byte and that many bytes of UTF-8:

    4s  b"haH" and the version
    text sender · text receiver
    u64 token, text boot id of the sender's incarnation
    u64 sent_at
    u8  brain state · u32 brain_since_ms
    u8  flags: 1 echo present, 2 seen present
    [u64 token · u64 sent_at] for each flag
    u8  count, then for each heard node: text name · u32 age_ms · u64 token
    16s HMAC-SHA256 of everything before, truncated (RFC 2104 §5), under the pair's key

Invariant: nothing of a datagram is believed before its code is right, except whose key to try. The code covers sender
and receiver, so that one sent back, or sent on to a third node, is not accepted. Repeats are the machine's concern:
`sent_at` rises within an incarnation. Decoding is total: bytes in, a Heartbeat or the reason for none out.
"""

import hmac
import struct
from collections.abc import Mapping
from enum import StrEnum

from haclusterd.model.ids import NODE_NAME, Incarnation, NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import BrainState, HeardAge, Heartbeat, Receipt

MAGIC = b"haH\x01"
CODE_SIZE = 16
MAXIMUM_SIZE = 1400
"""Fits an Ethernet frame with room for tunnels."""
MAXIMUM_NODES = 16
"""With names of any length the datagram of a cluster of this size is within MAXIMUM_SIZE."""
MAXIMUM_BOOT_ID_SIZE = 48
MINIMUM_KEY_SIZE = 16
MAXIMUM_SPAN_MS = 2**32 - 1

_STATES = (BrainState.ALIVE, BrainState.RESTARTING, BrainState.HUNG)
_FLAG_ECHO = 1
_FLAG_SEEN = 2
_U64 = struct.Struct(">Q")
_RECEIPT = struct.Struct(">QQ")
_BRAIN = struct.Struct(">QBIB")
_HEARD = struct.Struct(">IQ")


class Rejection(StrEnum):
    """Why a datagram is not a heartbeat for this node."""

    TOO_LONG = "too long"
    NOT_OURS = "not a heartbeat of this version"
    MISDIRECTED = "for another node"
    UNKNOWN_SENDER = "sender unknown"
    NOT_AUTHENTIC = "authentication code wrong"
    MALFORMED = "malformed"


def encode(heartbeat: Heartbeat, key: bytes) -> bytes:
    """Return the datagram. Raises ValueError when it cannot be written: text too long, or more than MAXIMUM_SIZE."""
    incarnation = heartbeat.incarnation
    flags = (_FLAG_ECHO if heartbeat.echo else 0) | (_FLAG_SEEN if heartbeat.seen else 0)
    receipts = [receipt for receipt in (heartbeat.echo, heartbeat.seen) if receipt]
    parts = [
        MAGIC,
        _text(heartbeat.sender),
        _text(heartbeat.receiver),
        _U64.pack(int(incarnation.token, 16)),
        _text(incarnation.boot_id, MAXIMUM_BOOT_ID_SIZE),
        _BRAIN.pack(heartbeat.sent_at, _STATES.index(heartbeat.brain), _span(heartbeat.brain_since_ms), flags),
        *(_RECEIPT.pack(int(receipt.token, 16), receipt.sent_at) for receipt in receipts),
        bytes((len(heartbeat.heard),)),
        *(_text(heard.node) + _HEARD.pack(_span(heard.age_ms), int(heard.token, 16)) for heard in heartbeat.heard),
    ]
    body = b"".join(parts)
    if len(body) + CODE_SIZE > MAXIMUM_SIZE:
        raise ValueError(f"heartbeat of {len(body) + CODE_SIZE} bytes; {MAXIMUM_SIZE} are allowed")
    return body + _code(body, key)


def decode(datagram: bytes, receiver: NodeName, keys: Mapping[NodeName, bytes]) -> Heartbeat | Rejection:
    """Return what a datagram says, or why it is refused; `keys` are those of the peers, by name. Never raises."""
    if len(datagram) > MAXIMUM_SIZE:
        return Rejection.TOO_LONG
    if not datagram.startswith(MAGIC):
        return Rejection.NOT_OURS
    body = datagram[:-CODE_SIZE]
    try:
        reader = _Reader(body, len(MAGIC))
        sender = NodeName(reader.text())
        if reader.text() != receiver:
            return Rejection.MISDIRECTED
        key = keys.get(sender)
        if key is None:
            return Rejection.UNKNOWN_SENDER
        if not hmac.compare_digest(_code(body, key), datagram[-CODE_SIZE:]):
            return Rejection.NOT_AUTHENTIC
        return _decode_rest(reader, sender, receiver)
    except (ValueError, IndexError, struct.error):
        return Rejection.MALFORMED


def _decode_rest(reader: "_Reader", sender: NodeName, receiver: NodeName) -> Heartbeat:
    (token,) = reader.numbers(_U64)
    boot_id = reader.text()
    sent_at, state, since_ms, flags = reader.numbers(_BRAIN)
    echo = reader.receipt() if flags & _FLAG_ECHO else None
    seen = reader.receipt() if flags & _FLAG_SEEN else None
    heard = tuple(reader.heard() for _ in range(reader.byte()))
    if flags & ~(_FLAG_ECHO | _FLAG_SEEN) or not boot_id or not reader.is_at_end():
        raise ValueError("not in the layout")
    return Heartbeat(
        sender=sender,
        receiver=receiver,
        incarnation=Incarnation(boot_id, _token(token)),
        sent_at=Instant(sent_at),
        brain=_STATES[state],
        brain_since_ms=since_ms,
        echo=echo,
        seen=seen,
        heard=heard,
    )


class _Reader:
    """A place in a datagram's body; reading past its end raises."""

    def __init__(self, body: bytes, position: int) -> None:
        self._body = body
        self._position = position

    def is_at_end(self) -> bool:
        return self._position == len(self._body)

    def byte(self) -> int:
        self._position += 1
        return self._body[self._position - 1]

    def numbers(self, layout: struct.Struct) -> tuple[int, ...]:
        start = self._position
        self._position += layout.size
        return layout.unpack_from(self._body, start)

    def text(self) -> str:
        size = self.byte()
        start = self._position
        self._position += size
        if self._position > len(self._body):
            raise IndexError
        return self._body[start : self._position].decode()

    def receipt(self) -> Receipt:
        token, sent_at = self.numbers(_RECEIPT)
        return Receipt(_token(token), Instant(sent_at))

    def heard(self) -> HeardAge:
        name = self.text()
        if not NODE_NAME.match(name):
            raise ValueError(name)
        age_ms, token = self.numbers(_HEARD)
        return HeardAge(NodeName(name), _token(token), age_ms)


def _code(body: bytes, key: bytes) -> bytes:
    return hmac.digest(key, body, "sha256")[:CODE_SIZE]


def _text(text: str, maximum_size: int = 63) -> bytes:
    encoded = text.encode()
    if len(encoded) > maximum_size:
        raise ValueError(f"{text!r} is longer than {maximum_size} bytes")
    return bytes((len(encoded),)) + encoded


def _span(span_ms: int) -> int:
    return min(max(span_ms, 0), MAXIMUM_SPAN_MS)


def _token(number: int) -> str:
    return f"{number:016x}"
