"""The one who can open and seal a cluster's secrets on this node.

Contract: the private key never leaves the adapter, and neither it nor a value is ever logged. Nothing raises: what
cannot be opened is None. All of it works in any thread and in a forked image.
"""

from collections.abc import Mapping
from typing import Protocol

from haclusterd.model.ids import NodeName
from haclusterd.model.secrets import Secrets, WrappedKey


class SecretKeeper(Protocol):
    """Seals and opens; it holds this node's key pair and nothing of the cluster's."""

    def public_key(self) -> str:
        """Return this node's public key; empty when it has none."""
        ...

    def new_key(self, members: Mapping[NodeName, str]) -> tuple[str, Mapping[NodeName, WrappedKey]]:
        """Make a secret key; return its id, and the key sealed for members with these public keys.

        Those with a public key that is none are left out.
        """
        ...

    def share(self, secrets: Secrets, members: Mapping[NodeName, str]) -> Mapping[NodeName, WrappedKey]:
        """Return the key in force sealed for members; empty when this node cannot open it."""
        ...

    def has_key(self, secrets: Secrets) -> bool:
        """Return whether this node can open what is sealed."""
        ...

    def seal(self, secrets: Secrets, name: str, value: str) -> str | None:
        """Seal a value by the key in force; None when this node does not have it."""
        ...

    def open(self, secrets: Secrets, name: str, sealed: str) -> str | None:
        """Return the value that was sealed under this name; None when it cannot be opened."""
        ...

    def read_pacemakers(self, resource: str, parameter: str) -> str | None:
        """Return what Pacemaker's `cibsecret` keeps on this node for a parameter; None: nothing, or damaged.

        It reads small files of the local disk.
        """
        ...
