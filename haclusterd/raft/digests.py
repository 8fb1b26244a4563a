"""Comparison of replicas at run time: digests of the state at agreed indexes.

Every node folds the same entries, so all states are equal, byte for byte. A violation (a flipped bit in memory, a
different program, an `apply` that depends on its machine) would otherwise go unnoticed until the replicas order
different things. Every node takes its snapshots at the same indexes, so a digest costs only a hash of bytes that are
written anyway; each node sends it to every member, and each compares (docs/design/0002-store.md, "Replicas that
differ").

Invariant: a node counts as wrong only if a majority of the voters agree on another digest. Without such a majority,
nothing here may decide who is right.
"""

from collections.abc import Collection
from enum import Enum

from haclusterd.model.ids import NodeName

KEPT = 4
"""Number of indexes that are remembered, the newest ones."""


class Comparison(Enum):
    """The result of comparing the digests at one index."""

    OPEN = "too few have reported theirs"
    EQUAL = "a majority agrees with this node"
    WRONG = "a majority agrees, and not with this node"
    CONTESTED = "nobody has a majority, and no voter that is linked is missing"


class Digests:
    """The members' digests at the newest indexes."""

    def __init__(self, node: NodeName) -> None:
        self._node = node
        self._reported: dict[int, dict[NodeName, bytes]] = {}

    def note(self, node: NodeName, index: int, digest: bytes) -> None:
        """Remember a node's digest at an index."""
        self._reported.setdefault(index, {})[node] = digest
        for old in sorted(self._reported)[:-KEPT]:
            del self._reported[old]

    def newest_own(self) -> tuple[int, bytes] | None:
        """Return the newest index at which this node's digest is known, with the digest."""
        own = [index for index, digests in self._reported.items() if self._node in digests]
        return (max(own), self._reported[max(own)][self._node]) if own else None

    def compare(self, index: int, voters: Collection[NodeName], linked: Collection[NodeName]) -> Comparison:
        """Compare the known digests at an index; `linked` are the members that this node has a session with."""
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
        """Return a text that says who has which digest, for administrators."""
        digests = self._reported.get(index, {})
        parts = ", ".join(f"{name} {digests[name].hex()[:12]}" for name in sorted(digests))
        return f"the replicas differ at entry {index}: {parts}"
