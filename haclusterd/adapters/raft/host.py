"""What the guarded library object asks of the core around it: clock, chance, the way out, the log's meaning.

It must stay free of the library: whoever implements it never sees one of its objects.
"""

from collections.abc import Sequence
from typing import Protocol

from haclusterd.adapters.raft.frames import Message
from haclusterd.adapters.raft.journal import LogEntry
from haclusterd.model.ids import NodeName


class Host(Protocol):
    """What the guarded object asks of the core around it."""

    def clock(self) -> int:
        """Return the instant, in milliseconds."""
        ...

    def fraction(self) -> float:
        """Return a random number in [0, 1)."""
        ...

    def transmit(self, peer: NodeName, message: Message) -> None:
        """Send, or hold back until what the message shows is synced."""
        ...

    def may_vote(self) -> bool:
        """Tell whether this node may vote and campaign already: peers may yet know that its data is too old."""
        ...

    def remind(self, peer: NodeName) -> None:
        """Tell a peer what this node remembers of it: it lacks what it acknowledged to this leader."""
        ...

    def kind_of(self, entry: bytes) -> int:
        """Tell, as leader, as what a proposal enters the log: REGULAR, or VOTERS when it changes who votes."""
        ...

    def appended(self, entry: LogEntry) -> None:
        """An entry was added to the log."""
        ...

    def removed(self, entries: Sequence[LogEntry]) -> None:
        """Entries were truncated."""
        ...

    def is_prepared(self, entry: LogEntry) -> bool:
        """Tell whether the next entry may be applied; if not, it will be later."""
        ...

    def apply(self, entry: LogEntry) -> None:
        """Apply a committed entry."""
        ...

    def room(self) -> int:
        """Return how many entries may be applied now."""
        ...

    def compact(self) -> None:
        """Take a snapshot when one is due."""
        ...

    def send_snapshot(self, peer: NodeName) -> None:
        """Send some of the snapshot to a peer whose next entry is no longer in the log."""
        ...

    def violated(self, what: str) -> None:
        """An invariant of Raft does not hold; end the process."""
        ...
