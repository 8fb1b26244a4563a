"""What a new node and the inviting daemon say to each other, inside TLS 1.3, before they share a certificate.

    daemon   Hello      the authority's certificate, a nonce; nothing that is secret
    joiner   Apply      name, addresses, certificate request, nonce, and the proof of the invitation's secret
    daemon   News ...   what is being waited for
    daemon   Admitted   certificate and members, or Denied with a reason

The joiner speaks only after the authority's certificate has the fingerprint in its token, and the certificate of the
TLS session was issued by that authority. The proof is an HMAC over everything said and over the session's certificate:
neither an eavesdropper nor another node in the middle can use it elsewhere, or for another request.

A frame is a length in 4 bytes (big-endian) and that many bytes of JSON. Invariant: decoding is total; whatever comes,
the answer is a message or `Unreadable`.
"""

import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from haclusterd.model.cluster import Member
from haclusterd.model.enrolment import Admitted, Apply, Denied, Hello, Message, News
from haclusterd.model.ids import NODE_NAME, NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.json_value import Json
from haclusterd.protocol.enrolment_token import read_address, spell

VERSION: Final = 1
HEADER_BYTES: Final = 4
FRAME_BYTES_MAX: Final = 256 * 1024
TEXT_LENGTH_MAX: Final = 16 * 1024
ADDRESSES_MAX: Final = 8
NONCE_SIZE: Final = 16


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Bytes that are no message, with why."""

    problem: str


def proof_of(key: bytes, hello: Hello, session_certificate: str, application: Apply) -> bytes:
    """Return the proof that goes with an application; `session_certificate` is a fingerprint, in hexadecimal digits."""
    said: Json = [
        "haclusterd enrolment", VERSION, session_certificate, hello.cluster, hello.authority, hello.nonce.hex(),
        application.invitation, application.node, [spell(each) for each in application.addresses],
        application.request, application.nonce.hex(), application.now, application.feature_level,
    ]  # fmt: skip
    return hmac.digest(key, json.dumps(said, separators=(",", ":")).encode(), "sha256")


def is_proven(key: bytes, hello: Hello, session_certificate: str, application: Apply) -> bool:
    """Tell whether an application proves the invitation's secret, in a time that tells nothing."""
    return hmac.compare_digest(proof_of(key, hello, session_certificate, application), application.proof)


def encode(message: Message) -> bytes:
    """Return a message as one frame."""
    payload = json.dumps({"v": VERSION, **_as_json(message)}, separators=(",", ":")).encode()
    assert len(payload) <= FRAME_BYTES_MAX
    return len(payload).to_bytes(HEADER_BYTES, "big") + payload


def _as_json(message: Message) -> dict[str, Json]:
    match message:
        case Hello():
            return {
                "kind": "hello", "cluster": message.cluster, "name": message.name, "authority": message.authority,
                "nonce": message.nonce.hex(), "now": message.now, "level": message.feature_level,
            }  # fmt: skip
        case Apply():
            return {
                "kind": "apply", "invitation": message.invitation, "node": message.node,
                "addresses": [spell(each) for each in message.addresses], "request": message.request,
                "nonce": message.nonce.hex(), "now": message.now, "level": message.feature_level,
                "proof": message.proof.hex(),
            }  # fmt: skip
        case News():
            return {"kind": "news", "text": message.text}
        case Admitted():
            return {
                "kind": "admitted", "certificate": message.certificate, "cluster": message.cluster,
                "name": message.name, "members": [_member_as_json(each) for each in message.members],
                "node_timeout_ms": message.node_timeout_ms,
            }  # fmt: skip
        case Denied():
            return {
                "kind": "denied", "code": message.code, "problem": message.problem, "remedy": message.remedy,
                "exit": message.exit_status,
            }  # fmt: skip


def _member_as_json(member: Member) -> Json:
    return {
        "name": member.name,
        "addresses": [spell(each) for each in member.addresses],
        "voter": member.is_voter,
        "witness": member.is_witness,
    }


class _BadFieldError(Exception):
    """What is wrong with a message; never leaves this module."""


def decode(payload: bytes) -> Message | Unreadable:
    """Read one frame's payload."""
    try:
        document = json.loads(payload.decode("utf-8"), parse_float=_refuse_number, parse_constant=_refuse_number)
    except (ValueError, RecursionError):
        return Unreadable("not JSON")
    if not isinstance(document, dict):
        return Unreadable("not an object")
    if document.get("v") != VERSION or isinstance(document.get("v"), bool):
        return Unreadable(f"this end speaks version {VERSION}, the other {str(document.get('v'))[:20]!r}")
    try:
        return _message(document)
    except _BadFieldError as error:
        return Unreadable(str(error))


def _refuse_number(text: str) -> int:
    raise ValueError(f"{text[:20]} is not a whole number")


def _message(fields: Mapping[str, Json]) -> Message:
    match fields.get("kind"):
        case "hello":
            return Hello(
                _text(fields, "cluster"), _text(fields, "name"), _text(fields, "authority"), _hex(fields, "nonce"),
                WallTime(_integer(fields, "now")), _integer(fields, "level"),
            )  # fmt: skip
        case "apply":
            return Apply(
                _text(fields, "invitation"), _node(fields, "node"), _addresses(fields), _text(fields, "request"),
                _hex(fields, "nonce"), WallTime(_integer(fields, "now")), _integer(fields, "level"),
                _hex(fields, "proof"),
            )  # fmt: skip
        case "news":
            return News(_text(fields, "text"))
        case "admitted":
            return Admitted(
                _text(fields, "certificate"), _text(fields, "cluster"), _text(fields, "name"),
                tuple(_member(each) for each in _list(fields, "members")), _integer(fields, "node_timeout_ms"),
            )  # fmt: skip
        case "denied":
            return Denied(
                _text(fields, "code"), _text(fields, "problem"), _text(fields, "remedy"), _integer(fields, "exit")
            )
        case kind:
            raise _BadFieldError(f"unknown kind {str(kind)[:20]!r}")


def _member(document: Json) -> Member:
    if not isinstance(document, Mapping):
        raise _BadFieldError("a member must be an object")
    return Member(
        _node(document, "name"),
        _addresses(document),
        is_voter=document.get("voter") is True,
        is_witness=document.get("witness") is True,
    )


def _list(fields: Mapping[str, Json], name: str) -> Sequence[Json]:
    value = fields.get(name)
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _BadFieldError(f"{name} must be a list")
    return value


def _text(fields: Mapping[str, Json], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or len(value) > TEXT_LENGTH_MAX or not _is_unicode(value):
        raise _BadFieldError(f"{name} must be a text")
    return value


def _is_unicode(text: str) -> bool:
    """Tell whether it can be written again: JSON's escapes can make half a surrogate pair."""
    return not any(0xD800 <= ord(character) <= 0xDFFF for character in text)


def _node(fields: Mapping[str, Json], name: str) -> NodeName:
    text = _text(fields, name)
    if not NODE_NAME.match(text):
        raise _BadFieldError(f"{name} must be a node's name")
    return NodeName(text)


def _addresses(fields: Mapping[str, Json]) -> tuple[tuple[str, int], ...]:
    listed = _list(fields, "addresses")
    if not 0 < len(listed) <= ADDRESSES_MAX:
        raise _BadFieldError(f"addresses must be 1 to {ADDRESSES_MAX}")
    try:
        return tuple(read_address(str(each)[:TEXT_LENGTH_MAX]) for each in listed)
    except ValueError:
        raise _BadFieldError("addresses must be HOST:PORT") from None


def _integer(fields: Mapping[str, Json], name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 2**53:
        raise _BadFieldError(f"{name} must be a whole number")
    return value


def _hex(fields: Mapping[str, Json], name: str) -> bytes:
    try:
        return bytes.fromhex(_text(fields, name))
    except ValueError:
        raise _BadFieldError(f"{name} must be hexadecimal digits") from None
