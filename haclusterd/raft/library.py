"""What this room asks of the Raft library, and what the library asks back.

The library counts votes and copies, commits and falls back (docs/design/0002-store.md, "The library"). It keeps term,
vote, leader, commit index and its timers; everything else is decided by `Consensus`. No object of the library is seen
on this side: members are names, times are milliseconds of the owner's clock.
"""

from collections.abc import Collection
from typing import Protocol

from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant
from haclusterd.raft.frames import Message
from haclusterd.raft.journal import Journal
from haclusterd.raft.settings import RaftSettings, RaftTimers


class LibraryOwner(Protocol):
    """What the library asks while it ticks or handles a message; it owns the clock by which it does."""

    def clock(self) -> Instant:
        """Return the instant."""
        ...

    def election_timeout_ms(self) -> float:
        """Return how long to wait for a leader this time."""
        ...

    def transmit(self, peer: NodeName, message: Message) -> None:
        """Send a message of the library."""
        ...

    def begin_to_lead(self) -> None:
        """A majority has voted for this node; the first entry of its term follows."""
        ...

    def send_heartbeats(self) -> None:
        """Heartbeats are due, or a commit index is to be shown."""
        ...

    def apply_committed(self) -> bool:
        """Apply what may be applied; return whether the followers should learn of it at once."""
        ...

    def take_waiting(self) -> None:
        """Append the proposals that wait, or pass them on."""
        ...

    def compact(self) -> None:
        """Take a snapshot when one is due."""
        ...


class Library(Protocol):
    """One node of the library. Nothing here blocks, and nothing is sent but through the owner."""

    @property
    def term(self) -> int:
        """The current term."""
        ...

    @property
    def is_leader(self) -> bool:
        """Whether this node believes to lead."""
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
        """Whether a leader has asked this node to campaign, which it has not done yet."""
        ...

    def tick(self) -> None:
        """Do what is due: campaign, commit, apply, send, fall back."""
        ...

    def handle(self, peer: NodeName, message: Message) -> None:
        """Handle `request_vote`, `response_vote` or `timeout_now`."""
        ...

    def committed(self, index: int) -> None:
        """Take an entry for committed that the leader says is."""
        ...

    def applied(self, index: int) -> None:
        """All up to an entry was applied, one by one or with a snapshot."""
        ...

    # Terms and leaders.

    def enter_term(self, term: int) -> None:
        """Enter a newer term, without a vote in it."""
        ...

    def step_down(self) -> None:
        """Be a follower of nobody."""
        ...

    def follow(self, leader: NodeName) -> None:
        """Be a follower of `leader`."""
        ...

    def forget_leader(self) -> None:
        """Know of no leader any more; the role stays."""
        ...

    def end_transfer(self) -> None:
        """Forget that a leader has asked this node to campaign: another one leads."""
        ...

    # Members and links.

    def count_among(self, others: Collection[NodeName]) -> None:
        """Count the votes and copies of this node and of these from now on."""
        ...

    def has_copies(self, peer: NodeName, index: int) -> None:
        """Count a peer's copies of all entries up to `index`, and of no later one."""
        ...

    def heard(self, peer: NodeName) -> None:
        """A voter has answered this leader."""
        ...

    def connected(self, peer: NodeName) -> None:
        """A link is up."""
        ...

    def disconnected(self, peer: NodeName) -> None:
        """A link is gone."""
        ...

    def is_connected(self, peer: NodeName | None) -> bool:
        """Tell whether there is a link to a peer."""
        ...

    # Timers.

    def retime(self, timers: RaftTimers) -> None:
        """Take other timers."""
        ...

    def is_election_due(self) -> bool:
        """Tell whether this follower has waited for a leader long enough."""
        ...

    def wait_for_leader(self) -> None:
        """Wait for a leader, for a new election timeout from now on."""
        ...

    def campaign(self) -> None:
        """Stand for election at the next tick."""
        ...

    def is_heartbeat_due(self) -> bool:
        """Tell whether this leader's next heartbeats are due."""
        ...

    def heartbeats_sent(self) -> None:
        """This leader's next heartbeats are due one period from now."""
        ...

    def is_second_over(self) -> bool:
        """Tell whether the journal's timer of one second is due."""
        ...

    def next_election_ms(self) -> int:
        """Return when a follower's tick has something to do by itself."""
        ...

    def next_heartbeat_ms(self) -> int:
        """Return when a leader's tick has something to send by itself."""
        ...

    def majority_heard_ms(self) -> int | None:
        """Return when the answer came that completes the newest majority of this leader; None: it leads nobody."""
        ...


class MakeLibrary(Protocol):
    """Makes the library's node of a store, in the state that a journal holds."""

    def __call__(self, settings: RaftSettings, journal: Journal, owner: LibraryOwner) -> Library:
        """Return it; the owner is asked for its clock and an election timeout at once."""
        ...
