"""The cluster's authority, in a directory that only root can read, on the node where the cluster was formed."""

import datetime as dt
import time
from collections.abc import Iterable
from pathlib import Path

from haclusterd.adapters.network.certificates import (
    AUTHORITY_KEY,
    NODE_CERTIFICATE,
    Credentials,
    adopt_certificate,
    begin_renewal,
    facts_of,
    pin_of,
    read_authority,
    sign_renewal,
    sign_request,
)
from haclusterd.model.certificates import CertificateFacts
from haclusterd.model.ids import NodeName
from haclusterd.ports.enrolment import AuthorityMissingError

AUTHORITY_DIRECTORY = "authority"
"""The authority's directory, beside the node's certificate."""


def utc_now() -> dt.datetime:
    """Return the present time by the wall clock."""
    return dt.datetime.fromtimestamp(time.clock_gettime(time.CLOCK_REALTIME), dt.UTC)


class AuthorityFiles:
    """Reads the authority's key for each use, and this node's certificate once, at the beginning.

    Status shows that copy: a disk that hangs must not delay every request for the status.
    """

    def __init__(self, credentials: Path) -> None:
        self._credentials = credentials
        self._default = credentials / AUTHORITY_DIRECTORY
        self._own = self._read_own()

    def certificate(self, directory: str) -> tuple[str, bytes]:
        """See `ports.enrolment.Authority`."""
        found = self._read(directory).certificate
        return found.decode(), pin_of(found)

    def sign(self, directory: str, request: str, node: NodeName, hosts: Iterable[str]) -> str:
        """See `ports.enrolment.Authority`."""
        return sign_request(self._read(directory), request.encode(), node, hosts, now=utc_now()).decode()

    def has_key(self) -> bool:
        """See `ports.enrolment.Authority`."""
        return (self._default / AUTHORITY_KEY).exists()

    def sign_renewal(self, request: str, node: NodeName, hosts: Iterable[str], present: str) -> str:
        """See `ports.enrolment.Authority`."""
        now = utc_now()
        return sign_renewal(self._read(""), request, node, hosts, present=present.encode(), now=now).decode()

    def begin_renewal(self, node: NodeName) -> str:
        """See `ports.enrolment.Authority`."""
        try:
            return begin_renewal(self._credentials, node)
        except OSError:
            return ""

    def adopt(self, certificate: str) -> bool:
        """See `ports.enrolment.Authority`."""
        try:
            is_adopted = adopt_certificate(self._credentials, certificate.encode())
        except OSError:
            return False
        if is_adopted:
            self._own = certificate
        return is_adopted

    def own_certificate(self) -> str:
        """See `ports.enrolment.Authority`."""
        return self._own

    def _read_own(self) -> str:
        try:
            return (self._credentials / NODE_CERTIFICATE).read_text()
        except OSError:
            return ""

    def facts(self, certificate: str) -> CertificateFacts | None:
        """See `ports.enrolment.Authority`."""
        try:
            return facts_of(certificate.encode())
        except ValueError:
            return None

    def _read(self, directory: str) -> Credentials:
        place = Path(directory) if directory else self._default
        try:
            return read_authority(place)
        except OSError as error:
            raise AuthorityMissingError(f"{place}: {error.strerror or error}") from None
        except ValueError as error:
            raise AuthorityMissingError(f"{place}: {error}") from None
