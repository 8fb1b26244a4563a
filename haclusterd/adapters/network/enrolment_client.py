"""The new node's end of an enrolment: it starts with a token, and ends with a certificate.

Invariant: before it sends anything, the daemon at the other end has shown the authority's certificate that the token
names, and has proven a certificate of that authority. It never sends the token or anything from which the secret could
be computed.
"""

import secrets
import socket
import ssl
from collections.abc import Callable
from typing import Final

from haclusterd.adapters.network.authority_files import utc_now
from haclusterd.adapters.network.certificates import fingerprint_of, pin_of, require_issued
from haclusterd.model.addresses import address_text
from haclusterd.model.enrolment import Admitted, Apply, Denied, Hello, Message, News
from haclusterd.model.records import replace
from haclusterd.protocol.enrolment import (
    FRAME_BYTES_MAX,
    NONCE_SIZE,
    Unreadable,
    decode,
    encode,
    proof_of,
)
from haclusterd.protocol.enrolment_token import Token, proof_key_of
from haclusterd.wire.framing import HEADER_BYTES, FrameTooLongError, payload_size

CONNECT_TIMEOUT_S: Final = 10.0
ANSWER_TIMEOUT_S: Final = 180.0


class NoMemberAnswersError(Exception):
    """No address of the token answers; the message says how each failed."""


class WrongAuthorityError(Exception):
    """The other end is not of the cluster that made the token; nothing was sent to it."""


def enrol(
    token: Token, application: Callable[[Hello], Apply], waiting: Callable[[str], None]
) -> tuple[Hello, Admitted | Denied]:
    """Apply at the first address that answers; `waiting` is called with what is awaited.

    Raises NoMemberAnswersError, WrongAuthorityError, or OSError when the connection is lost: applying again, with the
    same request, is then harmless.
    """
    connection = _connect(token)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # The certificate is verified below, by the token: no authority is known yet.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with connection, context.wrap_socket(connection) as stream:
        hello = _read(stream)
        if not isinstance(hello, Hello):
            raise WrongAuthorityError(f"what answers is no daemon that invites: {_describe(hello)}")
        session_certificate = _recognise(stream, hello, token)
        mine = replace(application(hello), invitation=token.invitation, nonce=secrets.token_bytes(NONCE_SIZE))
        proof = proof_of(proof_key_of(token.secret), hello, session_certificate, mine)
        stream.sendall(encode(replace(mine, proof=proof)))
        stream.settimeout(ANSWER_TIMEOUT_S)
        while True:
            message = _read(stream)
            if isinstance(message, News):
                waiting(message.text)
            elif isinstance(message, Admitted | Denied):
                return hello, message
            else:
                raise ConnectionError(f"an answer that is none: {_describe(message)}")


def _connect(token: Token) -> socket.socket:
    failures = []
    for address in token.addresses:
        try:
            return socket.create_connection(address, CONNECT_TIMEOUT_S)
        except OSError as error:
            failures.append(f"{address_text(address)}: {error.strerror or error}")
    raise NoMemberAnswersError("; ".join(failures))


def _recognise(stream: ssl.SSLSocket, hello: Hello, token: Token) -> str:
    """Return the fingerprint of the other end's certificate, if it is that of a node of the token's cluster."""
    certificate = stream.getpeercert(binary_form=True)
    try:
        pin = pin_of(hello.authority.encode())
        if certificate is None or pin != token.pin:
            raise WrongAuthorityError("the token was made by another cluster than the one that answers")
        require_issued(hello.authority.encode(), certificate, now=utc_now())
    except ValueError as error:
        raise WrongAuthorityError(str(error)) from None
    return fingerprint_of(certificate)


def _read(stream: ssl.SSLSocket) -> Message | Unreadable:
    try:
        size = payload_size(_read_exactly(stream, HEADER_BYTES), FRAME_BYTES_MAX)
    except FrameTooLongError as error:
        return Unreadable(str(error))
    return decode(_read_exactly(stream, size))


def _read_exactly(stream: ssl.SSLSocket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = stream.recv(size - len(data))
        if not part:
            raise ConnectionError("the connection was closed")
        data += part
    return data


def _describe(message: Message | Unreadable) -> str:
    return message.problem if isinstance(message, Unreadable) else type(message).__name__
