"""What a brain and its pacer say over their Unix stream socket: settings one way, reports and refusals the other.

A message is a 4-byte big-endian length and that many bytes of JSON, an object with `version` and `type`. Keys travel as
hexadecimal text; the socket is the user's own (mode 0600, peer credentials checked), so they are not hidden further.

Invariant: nothing from the socket is believed before its shape is checked; decoding is total. An unknown version is
refused in words that a person can act on.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from haclusterd.model.ids import NODE_NAME, Incarnation, NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import BrainState, HeardNode, PacerReport, PacerSettings, PeerAddress
from haclusterd.model.watchdog import PanicAction, Watchdog, WatchdogSettings
from haclusterd.protocol.heartbeat import MAXIMUM_BOOT_ID_SIZE, MAXIMUM_NODES, MINIMUM_KEY_SIZE

VERSION = 1
MAXIMUM_SIZE = 256 * 1024
LENGTH_SIZE = 4
MINIMUM_NODE_TIMEOUT_MS = 500
"""safety.md §3: the floor of node-timeout."""


class MessageType(StrEnum):
    """Kinds of message."""

    SETTINGS = "settings"
    REPORT = "report"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The pacer, or the decoder, does not take a message; `reason` is for people."""

    reason: str


Message = PacerSettings | PacerReport | Refusal


class FrameTooLongError(ValueError):
    """The other end announces more than MAXIMUM_SIZE: it does not speak this protocol."""


class FrameBuffer:
    """Bytes as they come in, whole messages out."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, received: bytes) -> Iterator[bytes]:
        """Yield each complete message's JSON. Raises FrameTooLongError; the connection is then of no more use."""
        self._pending += received
        while len(self._pending) >= LENGTH_SIZE:
            size = int.from_bytes(self._pending[:LENGTH_SIZE], "big")
            if size > MAXIMUM_SIZE:
                raise FrameTooLongError(f"a message of {size} bytes; {MAXIMUM_SIZE} are allowed")
            end = LENGTH_SIZE + size
            if len(self._pending) < end:
                return
            payload = bytes(self._pending[LENGTH_SIZE:end])
            del self._pending[:end]
            yield payload


def encode(message: Message) -> bytes:
    """Return a message with its length before it."""
    value = {"version": VERSION, **_to_json(message)}
    payload = json.dumps(value, separators=(",", ":")).encode()
    assert len(payload) <= MAXIMUM_SIZE, len(payload)
    return len(payload).to_bytes(LENGTH_SIZE, "big") + payload


def decode(payload: bytes) -> Message:
    """Return what one message's JSON says; a Refusal with the decoder's own reason when it cannot be read."""
    try:
        value = json.loads(payload)
        if not isinstance(value, dict):
            return Refusal("a message is a JSON object")
        if value.get("version") != VERSION:
            return Refusal(f"message version {value.get('version')!r}; this end speaks {VERSION}: restart both")
        return _DECODERS[MessageType(_text(value["type"]))](value)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        return Refusal(f"message not understood: {type(error).__name__}: {error}")


def _to_json(message: Message) -> dict[str, Any]:
    match message:
        case PacerSettings():
            return _settings_to_json(message)
        case PacerReport():
            return _report_to_json(message)
        case Refusal():
            return {"type": MessageType.REFUSAL, "reason": message.reason}


def _settings_to_json(settings: PacerSettings) -> dict[str, Any]:
    return {
        "type": MessageType.SETTINGS,
        "node": settings.node,
        "incarnation": str(settings.incarnation),
        "is_voter": settings.is_voter,
        "listen": [list(address) for address in settings.listen],
        "peers": [
            {
                "name": peer.name,
                "addresses": [list(address) for address in peer.addresses],
                "key": peer.key.hex(),
                "is_voter": peer.is_voter,
            }
            for peer in settings.peers
        ],
        "node_timeout_ms": settings.node_timeout_ms,
        "brain_timeout_ms": settings.brain_timeout_ms,
        "watchdog": None if settings.watchdog is None else asdict(settings.watchdog),
    }


def _settings_from_json(value: Mapping[str, Any]) -> PacerSettings:
    settings = PacerSettings(
        node=_node(value["node"]),
        incarnation=_incarnation(value["incarnation"]),
        is_voter=_boolean(value["is_voter"]),
        listen=_addresses(value["listen"]),
        peers=tuple(_peer_from_json(peer) for peer in _list(value["peers"])),
        node_timeout_ms=_number(value["node_timeout_ms"], MINIMUM_NODE_TIMEOUT_MS),
        brain_timeout_ms=_number(value["brain_timeout_ms"], 1),
        watchdog=_watchdog_settings(value.get("watchdog")),
    )
    names = [settings.node, *(peer.name for peer in settings.peers)]
    if len(set(names)) != len(names):
        raise ValueError("two nodes have one name")
    if len(names) > MAXIMUM_NODES:
        raise ValueError(f"{len(names)} nodes; {MAXIMUM_NODES} are allowed")
    return settings


def _watchdog_settings(value: Mapping[str, Any] | None) -> WatchdogSettings | None:
    if value is None:
        return None
    return WatchdogSettings(
        device=_text(value["device"]),
        timeout_ms=_number(value["timeout_ms"], 1),
        pretimeout_ms=_number(value["pretimeout_ms"]),
        panic=PanicAction(value["panic"]),
        may_be_stand_in=_boolean(value["may_be_stand_in"]),
    )


def _peer_from_json(value: Mapping[str, Any]) -> PeerAddress:
    key = bytes.fromhex(value["key"])
    if len(key) < MINIMUM_KEY_SIZE:
        raise ValueError(f"a key of less than {MINIMUM_KEY_SIZE} bytes")
    return PeerAddress(_node(value["name"]), _addresses(value["addresses"]), key, _boolean(value["is_voter"]))


def _report_to_json(report: PacerReport) -> dict[str, Any]:
    return {
        "type": MessageType.REPORT,
        "reported_at": report.reported_at,
        "stalled_at": report.stalled_at,
        "nodes": [_heard_to_json(node) for node in report.nodes],
        "errors": list(report.errors),
        "watchdog": None if report.watchdog is None else asdict(report.watchdog),
        "watchdog_problem": report.watchdog_problem,
    }


def _heard_to_json(node: HeardNode) -> dict[str, Any]:
    return {
        "name": node.name,
        "incarnation": None if node.incarnation is None else str(node.incarnation),
        "age_ms": node.age_ms,
        "brain": node.brain.value,
        "brain_since_ms": node.brain_since_ms,
        "hears": dict(node.hears),
        "heard_at": node.heard_at,
        "hears_token": dict(node.hears_token),
        "answered_at": node.answered_at,
        "is_empty": node.is_empty,
        "linked": sorted(node.linked),
    }


def _report_from_json(value: Mapping[str, Any]) -> PacerReport:
    stalled_at = value["stalled_at"]
    return PacerReport(
        reported_at=Instant(_number(value["reported_at"])),
        stalled_at=None if stalled_at is None else Instant(_number(stalled_at)),
        nodes=tuple(_heard_from_json(node) for node in _list(value["nodes"])),
        errors=tuple(_text(error) for error in _list(value["errors"])),
        watchdog=_watchdog(value.get("watchdog")),
        watchdog_problem=_text(value.get("watchdog_problem", "")),
    )


def _watchdog(value: Mapping[str, Any] | None) -> Watchdog | None:
    if value is None:
        return None
    return Watchdog(
        timeout_ms=_number(value["timeout_ms"], 1),
        device=_text(value["device"]),
        identity=_text(value["identity"]),
        weakness=_text(value["weakness"]),
    )


def _heard_from_json(value: Mapping[str, Any]) -> HeardNode:
    incarnation, age_ms, heard_at = value["incarnation"], value["age_ms"], value["heard_at"]
    answered_at = value.get("answered_at")  # A pacer that is older than its brain does not say.
    return HeardNode(
        name=_node(value["name"]),
        incarnation=None if incarnation is None else _incarnation(incarnation),
        age_ms=None if age_ms is None else _number(age_ms),
        brain=BrainState(value["brain"]),
        brain_since_ms=_number(value["brain_since_ms"]),
        hears={_node(name): _number(age) for name, age in value["hears"].items()},
        heard_at=None if heard_at is None else Instant(_number(heard_at)),
        hears_token={_node(name): _text(token) for name, token in value["hears_token"].items()},
        answered_at=None if answered_at is None else Instant(_number(answered_at)),
        is_empty=_boolean(value.get("is_empty", False)),
        linked=frozenset(_node(name) for name in value.get("linked", ())),
    )


def _refusal_from_json(value: Mapping[str, Any]) -> Refusal:
    return Refusal(_text(value["reason"]))


_DECODERS: Mapping[MessageType, Callable[[Mapping[str, Any]], Message]] = {
    MessageType.SETTINGS: _settings_from_json,
    MessageType.REPORT: _report_from_json,
    MessageType.REFUSAL: _refusal_from_json,
}


def _node(value: object) -> NodeName:
    name = _text(value)
    if not NODE_NAME.match(name):
        raise ValueError(f"not a node name: {name!r}")
    return NodeName(name)


def _incarnation(value: object) -> Incarnation:
    incarnation = Incarnation.parse(_text(value))
    if len(incarnation.boot_id.encode()) > MAXIMUM_BOOT_ID_SIZE:
        raise ValueError(f"a boot id of more than {MAXIMUM_BOOT_ID_SIZE} bytes")
    if incarnation.token != f"{int(incarnation.token, 16):016x}" or int(incarnation.token, 16) == 0:
        raise ValueError("a token is 16 lower-case hexadecimal digits, not all 0")
    return incarnation


def _addresses(value: object) -> tuple[tuple[str, int], ...]:
    pairs = [_list(pair) for pair in _list(value)]
    return tuple((_text(host), _number(port, 1, 65535)) for host, port in pairs)


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"not a list: {value!r}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"not a text: {value!r}")
    return value


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"not a boolean: {value!r}")
    return value


def _number(value: object, minimum: int = 0, maximum: int = 2**63) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
        raise ValueError(f"not a number from {minimum} to {maximum}: {value!r}")
    return value
