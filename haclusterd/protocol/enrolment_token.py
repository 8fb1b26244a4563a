"""The token of an invitation: where to ask, whom to believe, and a secret that proves that one was invited.

    hacl1-  base64url of: version u8, secret 16s, pin 32s, addresses (HOST:PORT, with commas), checksum 4s

The pin is the SHA-256 of the authority's certificate (DER). The checksum tells a token that was cut or mistyped from
one that is refused. What is derived from the secret is not the secret: the inviting daemon keeps only the derived
values.

Invariant: nothing here shows a secret in its representation.
"""

import base64
import binascii
import hashlib
from typing import Final

from haclusterd.model.addresses import Address, address_text, read_address
from haclusterd.model.records import dataclass, field

PREFIX: Final = "hacl1-"
SECRET_SIZE: Final = 16
_PIN_SIZE: Final = 32
_CHECKSUM_SIZE: Final = 4
_VERSION: Final = 1
_TOKEN_LENGTH_MAX: Final = 1024


class TokenUnreadableError(ValueError):
    """It is no token; the message says why."""


@dataclass(frozen=True, slots=True)
class Token:
    """What the invited node holds."""

    addresses: tuple[Address, ...]
    """Where the inviting daemon listens, first choice first."""
    pin: bytes
    secret: bytes = field(repr=False)

    @property
    def invitation(self) -> str:
        """The invitation's public name."""
        return invitation_of(self.secret)


def invitation_of(secret: bytes) -> str:
    """Return the public name of the invitation with this secret."""
    return hashlib.sha256(b"haclusterd invitation name\0" + secret).hexdigest()[:16]


def proof_key_of(secret: bytes) -> bytes:
    """Return the key under which knowledge of the secret is proven."""
    return hashlib.sha256(b"haclusterd invitation proof\0" + secret).digest()


def write_token(token: Token) -> str:
    """Return the token as text."""
    assert len(token.secret) == SECRET_SIZE
    assert len(token.pin) == _PIN_SIZE
    places = ",".join(map(address_text, token.addresses)).encode()
    body = bytes((_VERSION,)) + token.secret + token.pin + places
    return PREFIX + base64.urlsafe_b64encode(body + _checksum(body)).decode().rstrip("=")


def read_token(text: str) -> Token:
    """Read a token; raises TokenUnreadableError with a reason that shows nothing of it."""
    text = text.strip()
    if not text.startswith(PREFIX):
        remedy = "take the whole word that `crm cluster invite` printed"
        raise TokenUnreadableError(f"it does not begin with {PREFIX}: {remedy}")
    encoded = text.removeprefix(PREFIX)
    try:
        data = base64.b64decode(encoded + "=" * (-len(encoded) % 4), b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise TokenUnreadableError("it is damaged: take the whole word that `crm cluster invite` printed") from None
    body, checksum = data[:-_CHECKSUM_SIZE], data[-_CHECKSUM_SIZE:]
    is_whole = len(text) <= _TOKEN_LENGTH_MAX and len(body) > 1 + SECRET_SIZE + _PIN_SIZE
    if not is_whole or checksum != _checksum(body):
        raise TokenUnreadableError("it is damaged: take the whole word that `crm cluster invite` printed")
    if body[0] != _VERSION:
        raise TokenUnreadableError(f"it is of version {body[0]}; this program reads version {_VERSION}")
    secret, rest = body[1 : 1 + SECRET_SIZE], body[1 + SECRET_SIZE :]
    pin, places = rest[:_PIN_SIZE], rest[_PIN_SIZE:]
    try:
        addresses = tuple(read_address(place) for place in places.decode().split(","))
    except ValueError:
        raise TokenUnreadableError("it names no address") from None
    return Token(addresses, pin, secret)


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(b"haclusterd token\0" + body).digest()[:_CHECKSUM_SIZE]
