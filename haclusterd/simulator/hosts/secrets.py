"""A `SecretKeeper` without cryptography: what it seals can be read, and is the same in every run of a seed.

Who may open what is as with the real one: only who has the key that is sealed for it, and a value only under its name.
"""

import random
from collections.abc import Mapping

from haclusterd.model.ids import NodeName
from haclusterd.model.secrets import Secrets, WrappedKey


class SimulatedKeeper:
    """Seals and opens for one node."""

    def __init__(self, node: NodeName, chance: random.Random) -> None:
        self._node = node
        self._chance = chance

    def public_key(self) -> str:
        """See `SecretKeeper.public_key`."""
        return f"public key of {self._node}"

    def new_key(self, members: Mapping[NodeName, str]) -> tuple[str, Mapping[NodeName, WrappedKey]]:
        """See `SecretKeeper.new_key`."""
        key_id = f"{self._chance.getrandbits(64):016x}"
        return key_id, _wrapped(key_id, members)

    def share(self, secrets: Secrets, members: Mapping[NodeName, str]) -> Mapping[NodeName, WrappedKey]:
        """See `SecretKeeper.share`."""
        return _wrapped(secrets.key_id, members) if self.has_key(secrets) else {}

    def has_key(self, secrets: Secrets) -> bool:
        """See `SecretKeeper.has_key`."""
        own = secrets.keys.get(self._node)
        return bool(secrets.key_id) and own == _wrapped(secrets.key_id, {self._node: self.public_key()})[self._node]

    def seal(self, secrets: Secrets, name: str, value: str) -> str | None:
        """See `SecretKeeper.seal`."""
        return f"{secrets.key_id} {name} {value}" if self.has_key(secrets) else None

    def open(self, secrets: Secrets, name: str, sealed: str) -> str | None:
        """See `SecretKeeper.open`."""
        begin = f"{secrets.key_id} {name} "
        return sealed.removeprefix(begin) if self.has_key(secrets) and sealed.startswith(begin) else None

    def read_pacemakers(self, resource: str, parameter: str) -> str | None:  # noqa: ARG002 (the port has it)
        """See `SecretKeeper.read_pacemakers`."""
        return None


def _wrapped(key_id: str, members: Mapping[NodeName, str]) -> dict[NodeName, WrappedKey]:
    return {name: WrappedKey(public_key, f"{key_id} for {public_key}") for name, public_key in sorted(members.items())}
