"""Who shows a client certificate: it stands for a token, which the daemon judges as any other.

The handshake proves to this process who is at the other end, and this process could prove that to nobody else. So it
is given no right to say of somebody that they are an operator: it holds a token for each name of a certificate, and can
do what those tokens may (docs/design/0011-rest.md, section 8).
"""

import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass

REST: Final = "REST"
WEB: Final = "web"
TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{1,256}")
NAME_KINDS: Final = ("CN", "DNS", "email", "URI")
"""The common name of the subject, and the kinds of subjectAltName (RFC 5280, section 4.2.1.6)."""


@dataclass(frozen=True, slots=True)
class Asker:
    """In whose name a request is made, and what the history is to say of its way."""

    token: str
    interface: str
    """`REST` or `web`."""
    person: str = ""
    """The name in the certificate, or whom the bearer of the token names; empty: the token alone."""

    @property
    def origin(self) -> str:
        """Return it for the history (`model.requests.ORIGIN`)."""
        return f"{self.interface} for {self.person}" if self.person else self.interface


class ClientCertificates:
    """What certificates stand for."""

    def __init__(self, wall: Callable[[], WallTime], tokens: tuple[tuple[str, str], ...] = ()) -> None:
        """`wall`: what time it is; `tokens`: names as `CN:alice` or `DNS:ansible.example.org`, each with a token.

        The first name that a certificate has counts.
        """
        self._wall = wall
        self._tokens = tokens

    def take(self, tokens: tuple[tuple[str, str], ...]) -> None:
        """Let certificates stand for these tokens from now on."""
        self._tokens = tokens

    def find(self, certificate: Mapping[str, Any] | None) -> Asker | None:
        """Return who shows a certificate (`SSLSocket.getpeercert`) that the handshake has verified; None: nobody known.

        A connection may live on when its certificate has expired; then it shows nobody.
        """
        if not certificate or 1000 * ssl.cert_time_to_seconds(certificate["notAfter"]) <= self._wall():
            return None
        names = set(_names(certificate))
        return next((Asker(token, REST, name) for name, token in self._tokens if name in names), None)


def _names(certificate: Mapping[str, Any]) -> Iterator[str]:
    for part in certificate.get("subject", ()):
        for key, value in part:
            if key == "commonName":
                yield f"CN:{value}"
    for kind, value in certificate.get("subjectAltName", ()):
        if kind in NAME_KINDS[1:]:
            yield f"{kind}:{value}"


NO_CLIENTS: Final = ClientCertificates(lambda: WallTime(0))
