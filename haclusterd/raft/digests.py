"""Replicas compared at run time: digests of the state at agreed indexes.

Every node folds the same entries, so all states are equal, byte for byte. What breaks that (a bit that flips in memory,
a program that is not the same, an `apply` that looks at its machine) would otherwise go unnoticed until the replicas
order different things. Every node takes its snapshot at the same indexes, so the digest costs nothing more than a hash
of bytes that are written anyway; it tells every member, and each compares (docs/design/0002-store.md, "Replicas that
differ").

Invariant: a node is found wrong only by a majority of the voters that agree with each other. It must never decide who
is right where there is none.
"""

from collections.abc import Collection
from enum import Enum

from haclusterd.model.ids import NodeName

KEPT = 4
"""Indexes that are remembered, the newest ones."""


class Comparison(Enum):
    """What the digests at one index say."""

    OPEN = "too few have reported theirs"
    EQUAL = "a majority agrees with this node"
    WRONG = "a majority agrees, and not with this node"
    CONTESTED = "nobody has a majority, and no voter that is linked is missing"


class Digests:
    """What each member reported of its state, at the newest indexes."""

    def __init__(self, node: NodeName) -> None:
        self._node = node
        self._reported: dict[int, dict[NodeName, bytes]] = {}

    def note(self, node: NodeName, index: int, digest: bytes) -> None:
        """Remember what a node's state is at an index."""
        self._reported.setdefault(index, {})[node] = digest
        for old in sorted(self._reported)[:-KEPT]:
            del self._reported[old]

    def newest_own(self) -> tuple[int, bytes] | None:
        """Return the newest index at which this node's digest is known, with the digest."""
        own = [index for index, digests in self._reported.items() if self._node in digests]
        return (max(own), self._reported[max(own)][self._node]) if own else None

    def compare(self, index: int, voters: Collection[NodeName], linked: Collection[NodeName]) -> Comparison:
        """Compare what is known of an index; `linked` are the members that this node has a session with."""
        digests = self._reported.get(index, {})
        if self._node not in digests:
            return Comparison.OPEN
        of_voters = {name: digest for name, digest in digests.items() if name in voters}
        for digest in sorted(set(of_voters.values())):
            if 2 * sum(each == digest for each in of_voters.values()) > len(voters):
                return Comparison.EQUAL if digest == digests[self._node] else Comparison.WRONG
        is_complete = all(name in digests for name in voters if name in linked)
        differs = len({*of_voters.values(), digests[self._node]}) > 1
        return Comparison.CONTESTED if differs and is_complete else Comparison.OPEN

    def describe(self, index: int) -> str:
        """Say who has which digest, for a person."""
        digests = self._reported.get(index, {})
        parts = ", ".join(f"{name} {digests[name].hex()[:12]}" for name in sorted(digests))
        return f"the replicas differ at entry {index}: {parts}"
