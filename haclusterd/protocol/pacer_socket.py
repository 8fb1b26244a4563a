"""What a daemon and its pacer say over their Unix stream socket: settings one way, reports and refusals the other.

A message is a frame (`wire.framing`) of JSON, an object with `version` and `type`. Keys travel as
hexadecimal text; the socket is the user's own (mode 0600, peer credentials checked), so they are not hidden further.

Invariant: nothing from the socket is believed before its schema is checked; decoding is total. An unknown version is
refused in words that a person can act on.
"""

import json
from typing import Final

from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.pacer import PacerReport, PacerSettings
from haclusterd.model.records import dataclass
from haclusterd.model.watchdog import Watchdog, WatchdogSettings
from haclusterd.protocol.heartbeat import MAXIMUM_BOOT_ID_SIZE, MAXIMUM_NODES, MINIMUM_KEY_SIZE
from haclusterd.wire.framing import framed
from haclusterd.wire.schemas import NODE, Schemas, text_that, whole_number

RUNTIME_MODE = 0o751
"""Of the directory of a node's sockets, as in systemd/haclusterd.tmpfiles: entered by everybody, listed by nobody."""
VERSION = 1
MAXIMUM_SIZE = 256 * 1024
MINIMUM_NODE_TIMEOUT_MS = 500
"""safety.md §3: the floor of node-timeout."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The pacer, or the decoder, does not take a message; `reason` is for people."""

    reason: str


Message = PacerSettings | PacerReport | Refusal


def _read_incarnation(text: str) -> Incarnation:
    incarnation = Incarnation.parse(text)
    if len(incarnation.boot_id.encode()) > MAXIMUM_BOOT_ID_SIZE:
        raise ValueError(f"a boot id of more than {MAXIMUM_BOOT_ID_SIZE} bytes")
    if incarnation.token != f"{int(incarnation.token, 16):016x}" or int(incarnation.token, 16) == 0:
        raise ValueError("a token is 16 lower-case hexadecimal digits, not all 0")
    return incarnation


def _read_key(text: str) -> bytes:
    key = bytes.fromhex(text)
    if len(key) < MINIMUM_KEY_SIZE:
        raise ValueError(f"a key of less than {MINIMUM_KEY_SIZE} bytes")
    return key


_NUMBER: Final = whole_number(0, 2**63)
_POSITIVE: Final = whole_number(1, 2**63)
_MESSAGES: Final = Schemas(
    special={
        NodeName: NODE,
        Incarnation: text_that(_read_incarnation),
        bytes: text_that(_read_key, bytes.hex),
        int: _NUMBER,
        tuple[str, int]: Schemas(special={int: whole_number(1, 65535)}).schema_of(tuple[str, int]),
        (PacerSettings, "node_timeout_ms"): whole_number(MINIMUM_NODE_TIMEOUT_MS, 2**63),
        (PacerSettings, "brain_timeout_ms"): _POSITIVE,
        (WatchdogSettings, "timeout_ms"): _POSITIVE,
        (Watchdog, "timeout_ms"): _POSITIVE,
    },
    is_open=True,
).messages("type", {"settings": PacerSettings, "report": PacerReport, "refusal": Refusal})
"""By type. What a newer end says beside it is passed over, and what an older one does not say has its default: daemon
and pacer are restarted one after the other."""


def encode(message: Message) -> bytes:
    """Return a message as one frame."""
    payload = json.dumps({"version": VERSION, **_MESSAGES.write(message)}, separators=(",", ":")).encode()
    assert len(payload) <= MAXIMUM_SIZE, len(payload)
    return framed(payload)


def decode(payload: bytes) -> Message:
    """Return what one message's JSON says; a Refusal with the decoder's own reason when it cannot be read."""
    try:
        value = json.loads(payload)
        if not isinstance(value, dict):
            return Refusal("a message is a JSON object")
        if value.get("version") != VERSION:
            return Refusal(f"message version {value.get('version')!r}; this end speaks {VERSION}: restart both")
        message: Message = _MESSAGES.read(value)
    except (ValueError, RecursionError) as error:
        return Refusal(f"message not understood: {type(error).__name__}: {error}")
    problem = _problem(message) if isinstance(message, PacerSettings) else ""
    return Refusal(f"message not understood: {problem}") if problem else message


def _problem(settings: PacerSettings) -> str:
    names = [settings.node, *(peer.name for peer in settings.peers)]
    if len(set(names)) != len(names):
        return "two nodes have one name"
    return f"{len(names)} nodes; {MAXIMUM_NODES} are allowed" if len(names) > MAXIMUM_NODES else ""
