"""The settings of a Raft node, and the timers that follow from node-timeout.

Everything here is plain data, made at the composition root or by a test. Invariant: all timers are derived from the one
number that the administrator sets, so that no two of them can contradict each other (safety.md §7).
"""

from haclusterd.model.ids import NodeName
from haclusterd.model.machine_marks import MachineMark
from haclusterd.model.records import dataclass
from haclusterd.model.timing import derive
from haclusterd.ports.store import MAX_ENTRY_BYTES as MAX_ENTRY_BYTES
from haclusterd.ports.store import VoterSet

MAX_SNAPSHOT_BYTES = 64 * 1024 * 1024
"""Largest snapshot file; twice the limit of the encoded state, so that the state's own check comes first."""

MAX_FRAME_BYTES = 1024 * 1024
"""Largest message on the wire."""


@dataclass(frozen=True, slots=True)
class RaftTimers:
    """The timers of one Raft node, in milliseconds."""

    tick_ms: int
    election_min_ms: int
    election_max_ms: int
    append_ms: int
    """Between two heartbeats of a leader."""
    fallback_ms: int
    """A leader that gets no answer from a majority for this long steps down, before another can be elected."""
    ping_ms: int
    """Between two pings of the transport on an idle link."""
    silence_ms: int
    """A link on which nothing arrives for this long is closed."""

    @property
    def disk_timeout_ms(self) -> int:
        """How long a leader's disk may hang, so that nothing commits, before another node should lead.

        It is far longer than an election: a disk under load delays other nodes too, and must not cause elections.
        """
        return 20 * self.election_min_ms

    @staticmethod
    def derive(node_timeout_ms: int) -> "RaftTimers":
        """Derive all timers from node-timeout (safety.md §7)."""
        timing = derive(node_timeout_ms)
        return RaftTimers(
            tick_ms=timing.tick_ms,
            election_min_ms=timing.election_min_ms,
            election_max_ms=timing.election_max_ms,
            append_ms=timing.append_ms,
            fallback_ms=timing.fallback_ms,
            ping_ms=timing.election_min_ms,
            silence_ms=8 * timing.append_ms,
        )


@dataclass(frozen=True, slots=True)
class RaftSettings:
    """Identity, voters, timers and limits of one Raft node."""

    cluster: str
    """The cluster's uuid, as text."""
    node: NodeName
    voters: tuple[NodeName, ...]
    """The voters while neither log nor snapshot says otherwise."""
    timers: RaftTimers
    learners: tuple[NodeName, ...] = ()
    """The other members, likewise."""
    boot_id: str = ""
    """The boot of its machine: peers know it, so that a copy is not taken for this node."""
    machine: tuple[MachineMark, ...] = ()
    """All marks of its machine, the most reliable first: a data directory of another machine is refused."""
    snapshot_every: int = 1000
    """Applied entries between two snapshots."""
    retained_entries: int = 200
    """Entries kept in the journal before a snapshot's end, so that a slow voter need not receive the whole state."""
    in_flight_max: int = 512
    """Entries that a leader appends before the oldest of them is applied; further proposals wait."""
    waiting_max: int = 256
    """Proposals that wait for a leader, or for room in flight; further ones are refused."""

    def __post_init__(self) -> None:
        assert self.node in (*self.voters, *self.learners)
        assert len(set(self.voters)) == len(self.voters)

    @property
    def voter_set(self) -> VoterSet:
        """The voter set with which an empty log begins."""
        return VoterSet(0, tuple(sorted(self.voters)), tuple(sorted(self.learners)))

    @property
    def peers(self) -> tuple[NodeName, ...]:
        """The other members, in a fixed order."""
        return tuple(sorted(name for name in (*self.voters, *self.learners) if name != self.node))
