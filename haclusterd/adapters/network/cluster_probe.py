"""Asks addresses whether a daemon of a certain cluster runs there, without credentials of that cluster.

A daemon shows its certificate before it checks the caller's; the certificate names its cluster's authority. That proves
nothing, and need not: a node that hears the old cluster must not form another one from it.
"""

import socket
import ssl
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum

from haclusterd.adapters.network.certificates import authority_name, issuer_name_of
from haclusterd.model.ids import NodeName
from haclusterd.model.records import dataclass

TIMEOUT_S = 2.0
"""For one address: the connection and the handshake."""
_ENDS = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""Of a TLS connection that is closed in the middle of its handshake."""


class Presence(StrEnum):
    """The result at one address."""

    SILENT = "silent"
    """Nothing listens."""
    OTHER = "other"
    """Something else listens, or another cluster."""
    UNSURE = "unsure"
    """Something listens and does not answer, or breaks off: a stopped or busy daemon looks like this."""
    HEARD = "heard"
    """A daemon of that cluster."""


@dataclass(frozen=True, slots=True)
class Heard:
    """The result for one node."""

    node: NodeName
    address: tuple[str, int]
    presence: Presence


def probe(cluster: str, addresses: Mapping[NodeName, Sequence[tuple[str, int]]]) -> tuple[Heard, ...]:
    """Ask every address for a daemon of the cluster (its uuid), all at once; never raises for network errors."""
    asked = [(node, address) for node, listed in sorted(addresses.items()) for address in listed]
    if not asked:
        return ()
    with ThreadPoolExecutor(max_workers=min(32, len(asked))) as pool:
        found = pool.map(lambda each: _presence(cluster, each[1]), asked)
        return tuple(Heard(node, address, presence) for (node, address), presence in zip(asked, found, strict=True))


def _presence(cluster: str, address: tuple[str, int]) -> Presence:
    try:
        stream = socket.create_connection(address, TIMEOUT_S)
    except OSError:
        return Presence.SILENT
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with stream, context.wrap_socket(stream) as secured:
            certificate = secured.getpeercert(binary_form=True)
    except OSError as error:
        # What breaks off before it has shown who it is may be a daemon that begins, ends or has too many callers.
        is_broken_off = not isinstance(error, ssl.SSLError) or isinstance(error, _ENDS)
        return Presence.UNSURE if is_broken_off else Presence.OTHER
    is_known = certificate is not None and issuer_name_of(certificate) == authority_name(cluster)
    return Presence.HEARD if is_known else Presence.OTHER
