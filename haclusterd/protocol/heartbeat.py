"""The datagram that carries one heartbeat from one pacer to another.

Layout, big-endian, version 1; `text` is one length byte and that many bytes of UTF-8:

    4s  b"haH" and the version
    text sender · text receiver
    u64 token, text boot id of the sender's incarnation
    u64 sent_at
    u8  daemon state · u32 brain_since_ms
    u8  flags: 1 echo present, 2 seen present, 4 the sender runs nothing
    [u64 token · u64 sent_at] for each of the first two flags
    u8  count, then for each heard node: text name · u32 age_ms, its highest bit: the daemons have a session · u64 token
    16s HMAC-SHA256 of everything before, truncated (RFC 2104 §5), under the pair's key

Invariant: nothing of a datagram is believed before its code is right, except whose key to try. The code covers sender
and receiver, so that one sent back, or sent on to a third node, is not accepted. Repeats are the machine's concern:
`sent_at` rises within an incarnation. Decoding is total: bytes in, a Heartbeat or the reason for none out.
"""

import hmac
import struct
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache

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
CACHED = 64
"""Names and tokens of the nodes at hand, so that each datagram does not format them again; authentic ones only."""

_STATES = (BrainState.ALIVE, BrainState.RESTARTING, BrainState.HUNG)
_STATE_NUMBERS = {state: number for number, state in enumerate(_STATES)}
_FLAG_ECHO = 1
_FLAG_SEEN = 2
_FLAG_EMPTY = 4
_LINKED = 2**31
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
    flags |= _FLAG_EMPTY if heartbeat.is_empty else 0
    parts = [
        _opening(heartbeat.sender, heartbeat.receiver, incarnation.token, incarnation.boot_id),
        _BRAIN.pack(heartbeat.sent_at, _STATE_NUMBERS[heartbeat.brain], _span(heartbeat.brain_since_ms), flags),
    ]
    for receipt in (heartbeat.echo, heartbeat.seen):
        if receipt is not None:
            parts.append(_RECEIPT.pack(_number(receipt.token), receipt.sent_at))
    parts.append(bytes((len(heartbeat.heard),)))
    for node, token, age_ms, is_linked in heartbeat.heard:
        age = min(_span(age_ms), _LINKED - 1) | (_LINKED if is_linked else 0)
        parts += (_text(node), _HEARD.pack(age, _number(token)))
    body = b"".join(parts)
    if len(body) + CODE_SIZE > MAXIMUM_SIZE:
        raise ValueError(f"heartbeat of {len(body) + CODE_SIZE} bytes; {MAXIMUM_SIZE} are allowed")
    return body + _code(body, key)


def opening(
    sender: NodeName, receiver: NodeName, boot_id: str, token: str | None
) -> tuple[tuple[int, bytes], ...]:
    """Return what every heartbeat of an incarnation begins with, as (place, bytes); without a token: of a boot."""
    names = MAGIC + _text(sender) + _text(receiver)
    boot = _text(boot_id, MAXIMUM_BOOT_ID_SIZE)
    if token is None:
        return (0, names), (len(names) + _U64.size, boot)
    return ((0, names + _U64.pack(_number(token)) + boot),)


def decode(datagram: bytes, receiver: NodeName, keys: Mapping[NodeName, bytes]) -> Heartbeat | Rejection:
    """Return what a datagram says, or why it is refused; `keys` are those of the peers, by name. Never raises."""
    if len(datagram) > MAXIMUM_SIZE:
        return Rejection.TOO_LONG
    if not datagram.startswith(MAGIC):
        return Rejection.NOT_OURS
    body = datagram[:-CODE_SIZE]
    try:
        sender, place = _read_text(body, len(MAGIC))
        addressee, place = _read_text(body, place)
        if addressee != receiver.encode():
            return Rejection.MISDIRECTED
        name = NodeName(sender.decode())
        key = keys.get(name)
        if key is None:
            return Rejection.UNKNOWN_SENDER
        if not hmac.compare_digest(_code(body, key), datagram[-CODE_SIZE:]):
            return Rejection.NOT_AUTHENTIC
        return _decode_rest(body, place, name, receiver)
    except (ValueError, IndexError, struct.error):
        return Rejection.MALFORMED


def _decode_rest(body: bytes, place: int, sender: NodeName, receiver: NodeName) -> Heartbeat:
    (token,) = _U64.unpack_from(body, place)
    boot_id, place = _read_text(body, place + _U64.size)
    sent_at, state, since_ms, flags = _BRAIN.unpack_from(body, place)
    place += _BRAIN.size
    echo = _read_receipt(body, place) if flags & _FLAG_ECHO else None
    place += _RECEIPT.size if echo else 0
    seen = _read_receipt(body, place) if flags & _FLAG_SEEN else None
    place += _RECEIPT.size if seen else 0
    heard = []
    count, place = body[place], place + 1
    for _ in range(count):
        name, place = _read_text(body, place)
        age_ms, heard_token = _HEARD.unpack_from(body, place)
        place += _HEARD.size
        heard.append(HeardAge(_node_name(name), _token(heard_token), age_ms & ~_LINKED, age_ms >= _LINKED))
    if flags & ~(_FLAG_ECHO | _FLAG_SEEN | _FLAG_EMPTY) or not boot_id or place != len(body):
        raise ValueError("not in the layout")
    return Heartbeat(
        sender=sender,
        receiver=receiver,
        incarnation=_incarnation(boot_id, token),
        sent_at=Instant(sent_at),
        brain=_STATES[state],
        brain_since_ms=since_ms,
        echo=echo,
        seen=seen,
        heard=tuple(heard),
        is_empty=bool(flags & _FLAG_EMPTY),
    )


def _read_text(body: bytes, place: int) -> tuple[bytes, int]:
    """Return the text at a place, and the place after it."""
    start = place + 1
    end = start + body[place]
    if end > len(body):
        raise IndexError(end)
    return body[start:end], end


def _read_receipt(body: bytes, place: int) -> Receipt:
    token, sent_at = _RECEIPT.unpack_from(body, place)
    return Receipt(_token(token), Instant(sent_at))


@lru_cache(maxsize=CACHED)
def _node_name(raw: bytes) -> NodeName:
    name = raw.decode()
    if not NODE_NAME.match(name):
        raise ValueError(name)
    return NodeName(name)


@lru_cache(maxsize=CACHED)
def _token(number: int) -> str:
    return f"{number:016x}"


@lru_cache(maxsize=CACHED)
def _number(token: str) -> int:
    return int(token, 16)


@lru_cache(maxsize=CACHED)
def _incarnation(boot_id: bytes, number: int) -> Incarnation:
    return Incarnation(boot_id.decode(), _token(number))


@lru_cache(maxsize=CACHED)
def _opening(sender: NodeName, receiver: NodeName, token: str, boot_id: str) -> bytes:
    """Return what all heartbeats of an incarnation to one receiver begin with."""
    ((_, opened),) = opening(sender, receiver, boot_id, token)
    return opened


def _code(body: bytes, key: bytes) -> bytes:
    return hmac.digest(key, body, "sha256")[:CODE_SIZE]


@lru_cache(maxsize=CACHED)
def _text(text: str, maximum_size: int = 63) -> bytes:
    encoded = text.encode()
    if len(encoded) > maximum_size:
        raise ValueError(f"{text!r} is longer than {maximum_size} bytes")
    return bytes((len(encoded),)) + encoded


def _span(span_ms: int) -> int:
    return min(max(span_ms, 0), MAXIMUM_SPAN_MS)
