"""The replicated log: what is asked of Raft.

The store knows bytes. What they mean is injected as a `StateMachine`, which the store calls in log order, exactly once
per index and process life, on the Raft thread. Results cross to the main loop as immutable `StoreEvent`s in order.

Contract (each point has a test in tests/simulation and tests/unit/adapters):

* An entry is reported `Applied` only after it is on stable storage on a majority (Raft §5.3, §5.4.2).
* What was reported `Applied` anywhere is never lost or changed, whatever processes are killed (0002-store.md, 1-8).
* At start the machine is restored from the newest snapshot and the committed journal suffix is applied again: the main
  loop must not act on what it sees before its own process's `Join` (safety.md §1).
* `propose` promises nothing: an accepted proposal may be lost or be applied much later. The proposer repeats it under
  the same request id; the state machine makes the repetition harmless.
* `StateMachine.appended` sees every entry before this node acknowledges it to anybody, and after a restart every entry
  of the journal that is not yet applied, before the node says anything to anybody (safety.md §2, "Withdrawal").
  What it saw of an entry that can never be committed is taken back by `StateMachine.removed`.
* Votes are counted by the newest `VoterSet` in the log, committed or not. The leader lets a change of it take effect
  only when its own term has a committed entry, no other change is uncommitted, at most one vote is added or taken, it
  keeps its own, and the state machine agrees; otherwise the same entry is an ordinary one, which `apply` refuses.
* An I/O error on journal or snapshot ends the process (exit code 75); damage found at start refuses to start with
  `StoreDamagedError`, naming the file, the offset and the way to recover.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from haclusterd.model.followers import Followers
from haclusterd.model.ids import NodeName, Term
from haclusterd.model.records import dataclass
from haclusterd.model.steps import Steps

MAX_ENTRY_BYTES = 64 * 1024
"""Largest entry that can be proposed (safety.md §7)."""


class StoreDamagedError(Exception):
    """The data on disk cannot be trusted; the message says where, and how to recover."""


class StoreUnwritableError(Exception):
    """The data directory has too little room or cannot be written; a later start may find it better."""


class StoreRefusedError(Exception):
    """The store must not run here: foreign or missing identity, unsupported library version."""


class StoreBusyError(StoreRefusedError):
    """The store must not run here now: what it needs is in use, or is not there yet. Later it may be."""


@dataclass(frozen=True, slots=True)
class VoterSet:
    """Whose votes count, and who else gets the log (Raft thesis §4.1, §4.2.1)."""

    version: int
    """Counts the changes; each is at most one voter away from the one before."""
    voters: tuple[NodeName, ...]
    """Sorted."""
    learners: tuple[NodeName, ...] = ()
    """Sorted; they get the log and have no vote."""


@dataclass(frozen=True, slots=True)
class PeerPlaces:
    """Where the peers of one version of the members are reached, and who is shut out."""

    version: int
    addresses: Mapping[NodeName, tuple[tuple[str, int], ...]]
    """Of every member, this node included; no other node is talked to."""
    revoked: frozenset[str] = frozenset()
    """SHA-256 fingerprints of certificates that are refused, in hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class Appended:
    """An entry for which `StateMachine.is_awaited` is in the log of this node, which leads `term`.

    It is not committed. Whatever this node proposes for this very term from now on comes after it: that is applied
    after this entry or never. Left out when there is no room for it; nothing but speed may depend on it.
    """

    index: int
    term: Term
    entry: bytes


@dataclass(frozen=True, slots=True)
class Applied:
    """One committed entry was folded into the state; `outcome` is what `StateMachine.apply` returned."""

    index: int
    term: Term
    outcome: object
    entry: bytes
    """As it is in the log."""
    is_of_voters: bool = False
    """Whether it changes the voters: it was folded by `StateMachine.apply_voters`."""


@dataclass(frozen=True, slots=True)
class Restored:
    """The whole state was replaced, by the snapshot at start or by one from the leader."""

    index: int
    outcome: object
    """What `StateMachine.restore` returned."""


@dataclass(frozen=True, slots=True)
class LeadershipChanged:
    """Who leads, as far as this node knows; never a licence to act (guard 11)."""

    term: Term
    leader: NodeName | None
    is_self: bool


@dataclass(frozen=True, slots=True)
class VoterLinks:
    """Which voters this node's Raft transport is connected to now."""

    connected: tuple[NodeName, ...]


@dataclass(frozen=True, slots=True)
class LearnersReady:
    """As leader: which learners lack so little of the log that a vote of theirs would not hold up commits."""

    learners: tuple[NodeName, ...]


@dataclass(frozen=True, slots=True)
class ReplicasDiffer:
    """The replicas differ and no majority agrees: nobody knows who is right. Empty: that is over."""

    why: str


StoreEvent = ReplicasDiffer | Appended | Applied | Restored | LeadershipChanged | VoterLinks | LearnersReady | Followers
"""`Followers` come from a leader only, while it leads."""


class StateMachine(Protocol):
    """What the log means. Called on the Raft thread only. No method may raise, block, or touch clock, chance or I/O."""

    def appended(self, entry: bytes) -> None:
        """See an entry that this node is about to acknowledge."""
        ...

    def is_awaited(self, entry: bytes) -> bool:
        """Tell, on the leader and quickly, whether the main loop is to see this entry before it is committed."""
        ...

    def removed(self, entry: bytes) -> None:
        """Take back an appended, never applied entry: another leader's entry is in its place for ever (Raft §5.3).

        Without this a deposed leader would keep a withdrawal that was never decided.
        """
        ...

    def prepare(self, entry: bytes) -> Steps[None] | None:
        """Begin what must be done before `apply` of this entry, the next one, takes little time; None: nothing.

        A step takes a few milliseconds; the store does all else that is due between two steps. It calls `apply` when
        the last one is done, or never: after a restart it begins again, and a `restore` in between makes it void.
        """
        ...

    def apply(self, index: int, term: Term, entry: bytes) -> object:
        """Fold a committed entry into the state and return an immutable outcome for the main loop."""
        ...

    def voter_set(self) -> VoterSet | None:
        """Return the voters of the applied state; None while it does not say, and those of the settings count."""
        ...

    def proposed_voters(self, entry: bytes) -> VoterSet | None:
        """Return what an entry would make of the voters; None for nearly all entries, and quickly so."""
        ...

    def may_change_voters(self, entry: bytes) -> bool:
        """Tell, on the leader, whether the applied state allows such an entry to take effect now."""
        ...

    def apply_voters(self, index: int, term: Term, entry: bytes) -> object:
        """Fold a committed entry that the log has followed since it was appended: it cannot be refused any more."""
        ...

    def snapshot(self) -> Callable[[], bytes]:
        """Return a function that encodes the state as it is now; it may run later and on another thread."""
        ...

    def read(self, data: bytes) -> Steps[object]:
        """Read what `snapshot` encoded, in steps like those of `prepare`; it changes nothing.

        A step raises ValueError when the data cannot be read.
        """
        ...

    def restore(self, state: object) -> object:
        """Replace the state by one that was read; return an immutable outcome for the main loop.

        Whatever `appended` showed before counts no more; entries that are kept after the snapshot are shown again.
        """
        ...


class Store(Protocol):
    """This node's end of the replicated log, seen from the main loop."""

    def start(self, deliver: Callable[[StoreEvent], None]) -> None:
        """Begin; events are delivered on the main loop, in order. Raises StoreDamagedError or StoreRefusedError."""
        ...

    def propose(self, entry: bytes, term: Term | None = None) -> bool:
        """Ask for `entry` to be appended; False when too much is in flight (try again later).

        While no leader is known it is dropped, as a message may be lost: who wants it repeats it. With `term`: only by
        this node, and only while it leads that term; otherwise the entry is dropped.
        """
        ...

    def considered(self, index: int) -> None:
        """Tell that what follows from the entries shown as `Appended` up to `index` is proposed.

        The leader's next write waits a moment for that, so that one sync serves both.
        """
        ...

    def transfer_leadership(self, to: NodeName) -> None:
        """Ask Raft, as leader, to hand over to `to`; nothing happens otherwise."""
        ...

    def retime(self, node_timeout_ms: int) -> None:
        """Let all timers follow from another node-timeout from now on."""
        ...

    def follow_places(self, places: PeerPlaces) -> None:
        """Reach peers there from now on; of two versions the newer one counts."""
        ...

    def stop(self) -> None:
        """End; nothing is delivered afterwards."""
        ...
