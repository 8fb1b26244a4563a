"""What a new node and the inviting daemon say to each other, inside TLS 1.3, before they share a certificate.

    daemon   Hello      the authority's certificate, a nonce; nothing that is secret
    joiner   Apply      name, addresses, certificate request, nonce, and the proof of the invitation's secret
    daemon   News ...   what is being waited for
    daemon   Admitted   certificate and members, or Denied with a reason

The joiner speaks only after the authority's certificate has the fingerprint in its token, and the certificate of the
TLS session was issued by that authority. The proof is an HMAC over everything said and over the session's certificate:
neither an eavesdropper nor another node in the middle can use it in another place, or for another request.

A frame (`wire.framing`) holds JSON. Invariant: decoding is total; whatever comes,
the answer is a message or `Unreadable`.
"""

import hmac
import json
from typing import Final

from haclusterd.model.addresses import address_text, read_address
from haclusterd.model.cluster import Member
from haclusterd.model.enrolment import Admitted, Apply, Denied, Hello, Message, News
from haclusterd.model.ids import NodeName
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass
from haclusterd.wire.framing import framed
from haclusterd.wire.schemas import NODE, CodecError, Schema, Schemas, text_that, whole_number

VERSION: Final = 1
FRAME_BYTES_MAX: Final = 256 * 1024
TEXT_LENGTH_MAX: Final = 16 * 1024
ADDRESSES_MAX: Final = 8
NONCE_SIZE: Final = 16

Addresses = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Bytes that are no message, with why."""

    problem: str


def proof_of(key: bytes, hello: Hello, session_certificate: str, application: Apply) -> bytes:
    """Return the proof that goes with an application; `session_certificate` is a fingerprint, in hexadecimal digits."""
    signed: Json = [
        "haclusterd enrolment", VERSION, session_certificate, hello.cluster, hello.authority, hello.nonce.hex(),
        application.invitation, application.node, [address_text(each) for each in application.addresses],
        application.request, application.nonce.hex(), application.now, application.feature_level,
    ]  # fmt: skip
    return hmac.digest(key, json.dumps(signed, separators=(",", ":")).encode(), "sha256")


def is_proven(key: bytes, hello: Hello, session_certificate: str, application: Apply) -> bool:
    """Return whether an application proves the invitation's secret, in a time that tells nothing."""
    return hmac.compare_digest(proof_of(key, hello, session_certificate, application), application.proof)


def _text_read(text: str) -> str:
    if len(text) > TEXT_LENGTH_MAX:
        raise ValueError(f"a text of more than {TEXT_LENGTH_MAX} characters")
    return text


_LIMITED: Final = text_that(_text_read)
_ADDRESSES: Final = Schemas(special={tuple[str, int]: text_that(read_address, address_text)}).schema_of(Addresses)


def _read_addresses(value: object) -> Addresses:
    addresses: Addresses = _ADDRESSES.read(value)
    if not 0 < len(addresses) <= ADDRESSES_MAX:
        raise CodecError(f"expected 1 to {ADDRESSES_MAX} addresses")
    return addresses


_MESSAGES: Final = Schemas(
    special={
        NodeName: NODE,
        str: _LIMITED,
        int: whole_number(0, 2**53),
        bytes: text_that(lambda text: bytes.fromhex(_text_read(text)), bytes.hex),
        Addresses: Schema(_read_addresses, _ADDRESSES.write),
    },
    names={
        (Hello, "feature_level"): "level",
        (Apply, "feature_level"): "level",
        (Denied, "exit_status"): "exit",
        (Member, "is_voter"): "voter",
        (Member, "is_witness"): "witness",
    },
    omitted=((Member, "certificate"), (Member, "wants_vote")),
    is_open=True,
    requires_all=True,
).messages("kind", {"hello": Hello, "apply": Apply, "news": News, "admitted": Admitted, "denied": Denied})


def encode(message: Message) -> bytes:
    """Return a message as one frame."""
    payload = json.dumps({"v": VERSION, **_MESSAGES.write(message)}, separators=(",", ":")).encode()
    assert len(payload) <= FRAME_BYTES_MAX
    return framed(payload)


def decode(payload: bytes) -> Message | Unreadable:
    """Read one frame's payload."""
    try:
        document = json.loads(payload.decode("utf-8"))
    except (ValueError, RecursionError):
        return Unreadable("not JSON")
    if not isinstance(document, dict):
        return Unreadable("not an object")
    if document.get("v") != VERSION or isinstance(document.get("v"), bool):
        return Unreadable(f"this end speaks version {VERSION}, the other {str(document.get('v'))[:20]!r}")
    try:
        message: Message = _MESSAGES.read(document)
    except (CodecError, RecursionError) as error:
        return Unreadable(str(error)[:200])
    return message
