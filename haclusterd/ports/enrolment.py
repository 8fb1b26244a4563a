"""What letting in new nodes asks of the world: the cluster's authority, and a listener that is open to those invited.

Contract: the authority's key never leaves its adapter. The listener reads one application from each applicant, at most
a few at a time, and knows nothing of secrets; every connection that ends without an application is reported to `noted`.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from haclusterd.model.addresses import Address
from haclusterd.model.certificates import CertificateFacts
from haclusterd.model.enrolment import Admitted, Apply, Denied, Hello, News
from haclusterd.model.ids import NodeName


class AuthorityMissingError(Exception):
    """The authority's key is not here; the message says where it was looked for."""


class Authority(Protocol):
    """Signs the certificates of the cluster's nodes."""

    def certificate(self, directory: str) -> tuple[str, bytes]:
        """Return the authority's certificate (PEM) and its pin; `directory` as in `sign`.

        Raises AuthorityMissingError.
        """
        ...

    def sign(self, directory: str, request: str, node: NodeName, hosts: Iterable[str]) -> str:
        """Return a certificate (PEM) for a request.

        `directory` holds the authority's key; empty: the one beside this node's certificate. Raises
        AuthorityMissingError, or ValueError when the request is not one for this node.
        """
        ...

    def has_key(self) -> bool:
        """Return whether the authority's key lies beside this node's certificate."""
        ...

    def sign_renewal(self, request: str, node: NodeName, hosts: Iterable[str], present: str) -> str:
        """Return another certificate for what `begin_renewal` asks; `present` is the one in force (both PEM).

        Raises AuthorityMissingError, or ValueError when the holder of the present key did not ask.
        """
        ...

    def begin_renewal(self, node: NodeName) -> str:
        """Make a new key for this node, and return what the authority is asked; empty when it cannot be kept."""
        ...

    def adopt(self, certificate: str) -> bool:
        """Take a certificate for the key of `begin_renewal` into use; False when it is for no such key."""
        ...

    def own_certificate(self) -> str:
        """Return this node's certificate (PEM): what the daemon found when it began, or has adopted since.

        Empty when it could not be read. It takes no look at the disk.
        """
        ...

    def facts(self, certificate: str) -> CertificateFacts | None:
        """Return what a certificate (PEM) says; None when it is none."""
        ...


class Applicant(Protocol):
    """One new node that has connected."""

    @property
    def address(self) -> str:
        """Where it comes from, for the log."""
        ...

    @property
    def session_certificate(self) -> str:
        """The fingerprint of the certificate that this daemon showed on this connection."""
        ...

    def tell(self, message: News | Admitted | Denied) -> None:
        """Send it a message; after `Admitted` or `Denied` the connection is closed.

        Nothing happens when it has gone.
        """
        ...


class EnrolmentListener(Protocol):
    """Where new nodes connect to."""

    def open(
        self,
        addresses: tuple[Address, ...],
        greeting: Callable[[], Hello],
        applied: Callable[[Applicant, Hello, Apply], None],
        noted: Callable[[str, str], None],
    ) -> tuple[Address, ...]:
        """Listen at these addresses too; return those that are listened at. Raises OSError when none can be had.

        Everything is called on the main loop: `greeting` for each applicant, `applied` with its application, `noted`
        with its address and why it was sent away without having applied.
        """
        ...

    def close(self) -> None:
        """Listen no more; applications that are under way are finished."""
        ...
