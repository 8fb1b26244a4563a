"""The voter sets in one node's log: whose votes count, and how the next set may differ from that.

A set counts from the moment its entry is appended, committed or not (Raft thesis §4.1), so the one before it is kept
until the change is applied: it counts again when the entry is truncated.

Invariant: there is always a set in force, and each is at most one voter away from the one before it.
"""

from haclusterd.ports.store import VoterSet
from haclusterd.raft.journal import FIRST_INDEX


class VoterSets:
    """The sets that may still count, oldest first, each with the index of its entry or of the snapshot that has it."""

    def __init__(self, first: VoterSet) -> None:
        """`first` counts until the log or a snapshot says otherwise."""
        self._first = first
        self._sets = [(FIRST_INDEX, first)]

    @property
    def newest(self) -> VoterSet:
        """The set in force."""
        return self._sets[-1][1]

    @property
    def newest_index(self) -> int:
        """The index since which it is in force."""
        return self._sets[-1][0]

    def is_one_step(self, proposed: VoterSet) -> bool:
        """Whether every majority of the voters in force shares a voter with every majority of the proposed ones."""
        current = self.newest
        is_next = proposed.version == current.version + 1
        return is_next and len({*proposed.voters} ^ {*current.voters}) <= 1

    def append(self, index: int, voter_set: VoterSet) -> None:
        """Let the set of an appended entry count from now on."""
        self._sets.append((index, voter_set))

    def remove_from(self, index: int) -> bool:
        """Take back the sets of truncated entries, `index` and later; return whether another one is in force now."""
        if self.newest_index < index:
            return False
        self._sets = [item for item in self._sets if item[0] < index]
        return True

    def apply(self, index: int) -> None:
        """Forget the sets before that of an applied entry."""
        self._sets = [item for item in self._sets if item[0] >= index]

    def restore(self, index: int, voter_set: VoterSet | None) -> None:
        """Take the set of a snapshot; None when its state does not say whose votes count."""
        self._sets = [(index, voter_set if voter_set is not None else self._first)]
