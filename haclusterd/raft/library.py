"""The interface between this room and the Raft library, in both directions.

The library counts votes and copies, commits, and steps down (docs/design/0002-store.md, "The library"). It keeps term,
vote, leader, commit index and its timers; everything else is decided by `Consensus`. No object of the library is
visible on this side: members are names, times are milliseconds of the owner's clock.
"""

from collections.abc import Collection
from typing import Protocol

from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant
from haclusterd.raft.frames import Message
from haclusterd.raft.journal import Journal
from haclusterd.raft.settings import RaftSettings, RaftTimers


class LibraryOwner(Protocol):
    """What the library calls while it ticks or handles a message; the owner has the clock."""

    def clock(self) -> Instant:
        """Return the present instant."""
        ...

    def election_timeout_ms(self) -> float:
        """Return the election timeout for this time."""
        ...

    def transmit(self, peer: NodeName, message: Message) -> None:
        """Send a message of the library."""
        ...

    def begin_to_lead(self) -> None:
        """A majority has voted for this node; the first entry of its term follows."""
        ...

    def send_heartbeats(self) -> None:
        """Heartbeats are due, or a commit index is to be sent."""
        ...

    def apply_committed(self) -> bool:
        """Apply what may be applied; return whether the followers should be informed at once."""
        ...

    def take_waiting(self) -> None:
        """Append the waiting proposals, or pass them to the leader; without one, drop them."""
        ...

    def compact(self) -> None:
        """Take a snapshot when one is due."""
        ...


class Library(Protocol):
    """One node of the library. Nothing here blocks, and everything is sent through the owner."""

    @property
    def term(self) -> int:
        """The current term."""
        ...

    @property
    def is_leader(self) -> bool:
        """Whether this node believes that it leads."""
        ...

    @property
    def leader(self) -> NodeName | None:
        """Who leads, as far as this node knows."""
        ...

    @property
    def commit_index(self) -> int:
        """The newest entry known to be committed."""
        ...

    @property
    def applied_index(self) -> int:
        """The newest entry that was applied."""
        ...

    @property
    def is_transferring(self) -> bool:
        """Whether a leader has asked this node to campaign, and it has not done so yet."""
        ...

    def tick(self) -> None:
        """Do what is due: campaign, commit, apply, send, step down."""
        ...

    def handle(self, peer: NodeName, message: Message) -> None:
        """Handle `request_vote`, `response_vote` or `timeout_now`."""
        ...

    def committed(self, index: int) -> None:
        """Take an entry as committed because the leader says so."""
        ...

    def applied(self, index: int) -> None:
        """Note that all entries up to `index` were applied, one by one or by a snapshot."""
        ...

    # Terms and leaders.

    def enter_term(self, term: int) -> None:
        """Enter a newer term, without a vote in it."""
        ...

    def step_down(self) -> None:
        """Become a follower without a leader."""
        ...

    def follow(self, leader: NodeName) -> None:
        """Become a follower of `leader`."""
        ...

    def forget_leader(self) -> None:
        """Forget the leader; the role stays."""
        ...

    def end_transfer(self) -> None:
        """Forget the request to campaign: another node leads."""
        ...

    # Members and links.

    def count_among(self, others: Collection[NodeName]) -> None:
        """Count the votes and copies of this node and of `others` from now on."""
        ...

    def has_copies(self, peer: NodeName, index: int) -> None:
        """Count a peer's copies of all entries up to `index`, and of no later one."""
        ...

    def heard(self, peer: NodeName) -> None:
        """Note that a voter has answered this leader."""
        ...

    def connected(self, peer: NodeName) -> None:
        """Note that a link is up."""
        ...

    def disconnected(self, peer: NodeName) -> None:
        """Note that a link is gone."""
        ...

    def is_connected(self, peer: NodeName | None) -> bool:
        """Return whether there is a link to a peer."""
        ...

    # Timers.

    def retime(self, timers: RaftTimers) -> None:
        """Take other timers."""
        ...

    def is_election_due(self) -> bool:
        """Return whether this follower's election timeout has passed."""
        ...

    def wait_for_leader(self) -> None:
        """Start a new election timeout."""
        ...

    def campaign(self) -> None:
        """Start an election at the next tick."""
        ...

    def is_heartbeat_due(self) -> bool:
        """Return whether this leader's next heartbeats are due."""
        ...

    def heartbeats_sent(self) -> None:
        """Note that heartbeats were sent: the next ones are due one period from now."""
        ...

    def is_second_over(self) -> bool:
        """Return whether the journal's timer of one second is due."""
        ...

    def next_election_ms(self) -> int:
        """Return when a follower's tick next has something to do without an event."""
        ...

    def next_heartbeat_ms(self) -> int:
        """Return when a leader's tick next has something to send without an event."""
        ...

    def majority_heard_ms(self) -> int | None:
        """Return when the answer came that completes this leader's newest majority; None: it does not lead."""
        ...


class MakeLibrary(Protocol):
    """Makes the library's node of a store, in the state of a journal."""

    def __call__(self, settings: RaftSettings, journal: Journal, owner: LibraryOwner) -> Library:
        """Return the node; it calls the owner's `clock` and `election_timeout_ms` at once."""
        ...
