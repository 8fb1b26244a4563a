"""What this node decides as follower, candidate and leader; the library below counts votes and acknowledged copies.

Replaced, because the library as shipped does it wrong (docs/design/0002-store.md): the follower's half of AppendEntries
(Raft Fig. 2), the leader's replication, snapshots, applying, the command queue. Added: pre-vote (Raft thesis §9.6), one
vote per peer and term, terms on acknowledgements.

Invariant: entries are sent only from where the logs are known to agree; after a new link or a refusal the leader
compares first. An acknowledgement counts only in its term, and no entry counts before it is synced here too.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from haclusterd.model.followers import Follower
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.records import dataclass, field
from haclusterd.ports.store import VoterSet
from haclusterd.raft.frames import NO_OP, Message
from haclusterd.raft.journal import Journal, LogEntry
from haclusterd.raft.library import MakeLibrary
from haclusterd.raft.settings import RaftSettings

BATCH_BYTES = 256 * 1024
"""Maximum size of the commands in one message."""
WINDOW_BYTES = 2 * 1024 * 1024
"""Maximum size of the commands sent to one peer and not yet acknowledged."""


class Host(Protocol):
    """What the consensus needs of the core around it: clock, randomness, sending, the meaning of entries."""

    def clock(self) -> Instant:
        """Return the present instant."""
        ...

    def fraction(self) -> float:
        """Return a random number in [0, 1)."""
        ...

    def transmit(self, peer: NodeName, message: Message) -> None:
        """Send a message, or hold it back until what it shows is synced."""
        ...

    def may_vote(self) -> bool:
        """Return whether this node may vote and campaign yet: peers may still report that its data is too old."""
        ...

    def remind(self, peer: NodeName) -> None:
        """Tell a peer what this node remembers of it, because it lacks what it acknowledged to this leader."""
        ...

    def kind_of(self, entry: bytes) -> int:
        """Return, as leader, the kind of a proposal in the log: REGULAR, or VOTERS if it changes the voters."""
        ...

    def appended(self, entry: LogEntry) -> None:
        """Called when an entry was added to the log."""
        ...

    def removed(self, entries: Sequence[LogEntry]) -> None:
        """Called when entries were truncated."""
        ...

    def is_prepared(self, entry: LogEntry) -> bool:
        """Return whether the next entry may be applied; if not, it will be later."""
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
        """End the process: an invariant of Raft does not hold."""
        ...


@dataclass(slots=True)
class Progress:
    """What a leader knows of one peer: where to continue, and how much is in flight.

    It advances only on acknowledgements in this leader's term.
    """

    next: int
    answered_at: Instant
    """When the peer last answered; before its first answer, when this leader's term began."""
    advanced_at: Instant
    """When the peer last acknowledged a further entry, or lacked none."""
    match: int = 0
    """The newest entry that the peer has acknowledged: up to it the logs agree, and it is on the peer's disk."""
    is_probing: bool = True
    """Whether the logs are still compared: until the first acknowledgement only empty messages are sent."""
    in_flight: deque[tuple[int, int]] = field(default_factory=deque)
    """Last index and size in bytes of each message with entries that is not acknowledged."""
    in_flight_bytes: int = 0

    def restart(self, next_index: int) -> None:
        """Compare the logs again, from `next_index` on."""
        self.next = next_index
        self.is_probing = True
        self.in_flight.clear()
        self.in_flight_bytes = 0

    def sent(self, last_index: int, size: int) -> None:
        """Note a message with entries."""
        self.next = last_index + 1
        self.in_flight.append((last_index, size))
        self.in_flight_bytes += size

    def acknowledged(self, index: int) -> None:
        """Note that the peer holds all entries up to `index`."""
        self.match = index
        self.is_probing = False
        self.next = max(self.next, index + 1)
        while self.in_flight and self.in_flight[0][0] <= index:
            self.in_flight_bytes -= self.in_flight.popleft()[1]


class Consensus:
    """One Raft node; called only by `RaftCore`, and by the library during `step` and `handle`."""

    def __init__(
        self, settings: RaftSettings, journal: Journal, host: Host, applied_index: int, make_library: MakeLibrary
    ) -> None:
        self._settings = settings
        self._journal = journal
        self._host = host
        self.clock = host.clock
        self.transmit = host.transmit
        self.compact = host.compact
        self._progress: dict[NodeName, Progress] = {}
        self._voters: tuple[NodeName, ...] = ()
        self._targets: tuple[NodeName, ...] = ()
        """The other members, to which a leader sends the log."""
        self._voted: dict[NodeName, int] = {}
        self._pre_voters: set[NodeName] = set()
        self._campaign_term: int | None = None
        self._heard_leader_ms = host.clock() - settings.timers.election_max_ms
        self._verified: tuple[NodeName, int, int] | None = None
        """The leader, its term, and the entry up to which this log is known to agree with the leader's."""
        self.heartbeat_at: Instant | None = None
        """When this node, as leader, last sent heartbeats to every connected peer."""
        self._shown_commit = 0
        """As leader: the commit index that the followers know."""
        self.waiting: deque[tuple[bytes, int | None]] = deque()
        """Proposals, each with the only term in which this node may append it as leader; None: any."""
        self.library = make_library(settings, journal, self)
        self.library.applied(applied_index)
        self.follow_voters(settings.voter_set)

    def follow_voters(self, voter_set: VoterSet) -> None:
        """Count votes and acknowledgements by another voter set from now on, and send the log to its members."""
        own = self._settings.node
        self._voters = voter_set.voters
        self._targets = tuple(name for name in sorted((*voter_set.voters, *voter_set.learners)) if name != own)
        self.library.count_among([name for name in voter_set.voters if name != own])
        for name in self._targets:
            if name not in self._progress:
                self._progress[name] = self._new_progress()
            self._count(name)
        self._pre_voters &= {*voter_set.voters}

    def _new_progress(self) -> Progress:
        now = Instant(self._host.clock())
        return Progress(self._journal.last_index + 1, answered_at=now, advanced_at=now)

    @property
    def may_vote(self) -> bool:
        """Whether this node's own vote counts."""
        return self._settings.node in self._voters

    @property
    def has_committed_in_term(self) -> bool:
        """Whether this leader has committed an entry of its term: only then may it change the voters."""
        return self.is_leader and self._journal.term_at(self.commit_index) == self.term

    def acknowledged(self, peer: NodeName) -> int:
        """Return, as leader, the newest committed entry that a peer has acknowledged; 0: there is none."""
        is_followed = self.is_leader and peer in self._targets
        return min(self._progress[peer].match, self.commit_index) if is_followed else 0

    def led(self, peer: NodeName) -> tuple[int, int]:
        """Return, as leader, the term and the newest entry that a peer has acknowledged in it; otherwise zeros."""
        return (self.term, self._progress[peer].match) if self.is_leader and peer in self._targets else (0, 0)

    def lag(self, peer: NodeName) -> int:
        """Return how many entries a peer lacks, as far as this leader knows."""
        progress = self._progress.get(peer)
        return self._journal.last_index - (0 if progress is None else progress.match)

    def followers_behind(self, timeout_ms: int) -> tuple[Follower, ...]:
        """Return, as leader, the followers that have not answered, or have lacked committed entries, for `timeout_ms`.

        A peer that is being sent a snapshot is not behind: how long it takes to read one depends on the state.
        """
        now = Instant(self._host.clock())
        behind = []
        for peer in self._targets if self.is_leader else ():
            progress = self._progress[peer]
            if progress.match >= self.commit_index or progress.next <= self._journal.base[0]:
                progress.advanced_at = now
            if now - min(progress.answered_at, progress.advanced_at) >= timeout_ms:
                is_linked = self.library.is_connected(peer)
                behind.append(Follower(peer, progress.answered_at, progress.advanced_at, is_linked))
        return tuple(behind)

    def forget_silence(self) -> None:
        """Measure the silence of all peers from now on: this node itself stood still."""
        now = Instant(self._host.clock())
        for progress in self._progress.values():
            progress.answered_at = progress.advanced_at = now

    # Called by the core.

    @property
    def term(self) -> int:
        """The current term."""
        return self.library.term

    @property
    def is_leader(self) -> bool:
        """Whether this node believes that it leads."""
        return self.library.is_leader

    @property
    def leader(self) -> NodeName | None:
        """Who leads, as far as this node knows."""
        return self.library.leader

    @property
    def leadership(self) -> tuple[int, NodeName | None, bool]:
        """Term, leader, and whether that is this node."""
        library = self.library
        return library.term, library.leader, library.is_leader

    @property
    def commit_index(self) -> int:
        """The newest entry known to be committed."""
        return self.library.commit_index

    @property
    def applied_index(self) -> int:
        """The newest entry that was applied."""
        return self.library.applied_index

    @property
    def due_ms(self) -> int:
        """When `step` next has something to do without an event."""
        if not self.is_leader:
            return self.library.next_election_ms()
        heartbeat, heard = self.library.next_heartbeat_ms(), self.library.majority_heard_ms()
        return heartbeat if heard is None else min(heartbeat, heard + self._settings.timers.fallback_ms)

    def connected(self, peer: NodeName) -> None:
        """Note that a link is up: what was sent on an earlier one may be lost."""
        self.library.connected(peer)
        progress = self._progress.get(peer)
        if self.is_leader and progress is not None and peer in self._targets:
            progress.restart(progress.match + 1)
            self._probe_from_end(progress)

    def disconnected(self, peer: NodeName) -> None:
        """Note that a link is gone."""
        self.library.disconnected(peer)

    def step(self) -> None:
        """Do what is due; after most messages there is nothing to do."""
        if self._is_idle():
            self._host.compact()
            return
        self._prepare_election()
        self.library.tick()

    def _is_idle(self) -> bool:
        """Whether a tick would change nothing: nothing is due, to be sent, committed or applied."""
        library = self.library
        if self.waiting or library.applied_index < library.commit_index:
            return False
        if library.is_leader and (library.commit_index < self._journal.last_index or library.is_heartbeat_due()):
            return False
        return not library.is_second_over() and self.clock() < self.due_ms

    def handle(self, peer: NodeName, message: Message) -> None:
        """Handle a message of a connected peer."""
        kind = message["type"]
        own = _OWN_MESSAGES.get(kind)
        if kind == "request_vote" and not self._host.may_vote():
            return
        if own is not None:
            own(self, peer, message)
        elif kind == "response_vote" and not self._is_new_vote(peer, message["term"]):
            return
        else:
            if kind == "response_vote":
                self._voted[peer] = message["term"]
            self.library.handle(peer, message)

    def _is_new_vote(self, voter: NodeName, term: int) -> bool:
        return voter in self._voters and self._voted.get(voter) != term

    def _on_apply_command(self, _: NodeName, message: Message) -> None:
        if self.is_leader and len(self.waiting) < self._settings.waiting_max:
            self.waiting.append((message["command"], None))

    def began(self) -> None:
        """Note that a write has begun: its entries are sent to the others meanwhile (Raft thesis §10.2.1)."""
        if self.is_leader:
            self._send_to_all(is_heartbeat=False)

    def synced(self) -> None:
        """Note that a write became durable: count it, or send the acknowledgements that wait for it."""
        if self.is_leader:
            for peer in self._targets:
                self._count(peer)
        else:
            self._acknowledge()

    def installed(self, index: int) -> None:
        """Note that the state was replaced by a snapshot up to `index`, and the journal begins there."""
        self.library.applied(index)
        if self.commit_index < index:
            self.library.committed(index)
            self._journal.setRaftCommitIndex(index)

    def transfer(self, to: NodeName) -> None:
        """Ask `to` to campaign, if this node leads and `to` has every entry that was sent to anyone.

        Entries that are not even being written were sent to nobody; requiring them would keep a leader whose disk
        hangs.
        """
        is_candidate = self.is_leader and to != self._settings.node and to in self._voters
        if is_candidate and self._progress[to].match >= self._journal.begun_index:
            self._host.transmit(to, {"type": "timeout_now", "term": self.term})

    def retime(self, settings: RaftSettings) -> None:
        """Take other timers; a follower's election timeout starts again."""
        self._settings = settings
        self.library.retime(settings.timers)

    # Elections.

    def election_timeout_ms(self) -> float:
        """See `LibraryOwner.election_timeout_ms`."""
        timers = self._settings.timers
        span = timers.election_max_ms - timers.election_min_ms
        return timers.election_min_ms + span * self._host.fraction()

    def _prepare_election(self) -> None:
        """Ask for pre-votes when the election timer has expired; the library campaigns only after a majority of them.

        Otherwise a voter that was cut off would raise the term on its return, and depose a healthy leader.
        """
        if self.is_leader or not self.library.is_election_due():
            return
        if not self._host.may_vote():
            self.library.wait_for_leader()
            return
        if not self.may_vote:
            self.library.wait_for_leader()
            self.library.forget_leader()
            return
        if self.library.is_transferring or self._campaign_term == self.term + 1:
            self._campaign_term = None
            return
        self.library.wait_for_leader()
        self.library.forget_leader()
        self._pre_voters = {self._settings.node}
        for peer in self._voters:
            if peer == self._settings.node:
                continue
            self._host.transmit(
                peer,
                {
                    "type": "request_pre_vote",
                    "term": self.term + 1,
                    "last_log_index": self._journal.last_index,
                    "last_log_term": self._journal.last_term,
                },
            )
        self._count_pre_votes()

    def _on_request_pre_vote(self, peer: NodeName, message: Message) -> None:
        timers = self._settings.timers
        own_log = (self._journal.last_term, self._journal.last_index)
        silence_ms = self._host.clock() - self._heard_leader_ms
        is_leader_alive = self.is_leader or silence_ms < timers.election_min_ms - timers.append_ms
        granted = (
            message["term"] > self.term
            and (message["last_log_term"], message["last_log_index"]) >= own_log
            and not is_leader_alive
            and self._host.may_vote()
        )
        self._host.transmit(
            peer,
            {"type": "response_pre_vote", "term": self.term, "asked_term": message["term"], "granted": granted},
        )

    def _on_response_pre_vote(self, peer: NodeName, message: Message) -> None:
        if message["term"] > self.term:
            self._step_down(message["term"])
        elif peer in self._voters and self._is_granted_now(message):
            self._pre_voters.add(peer)
            self._count_pre_votes()

    def _is_granted_now(self, message: Message) -> bool:
        return bool(message["granted"] and message["asked_term"] == self.term + 1 and self._pre_voters)

    def _count_pre_votes(self) -> None:
        if not self.is_leader and 2 * len(self._pre_voters) > len(self._voters):
            self._pre_voters = set()
            self._campaign_term = self.term + 1
            self.library.campaign()

    def _step_down(self, term: int) -> None:
        self.library.enter_term(term)
        self.library.step_down()
        self._pre_voters = set()

    def begin_to_lead(self) -> None:
        """See `LibraryOwner.begin_to_lead`: the peers' logs are compared from the end of this log on."""
        self._progress = {peer: self._new_progress() for peer in self._targets}
        for peer in self._targets:
            self._count(peer)
        self._verified = None

    # The follower's half.

    def follow(self, peer: NodeName, term: int) -> bool:
        """Accept `peer` as the leader of `term`; return False when the term is over."""
        if term < self.term:
            self._answer(peer, next_index=self._journal.last_index + 1, refused_index=0)
            return False
        if term == self.term and self.is_leader:
            self._host.violated(f"{peer} and {self._settings.node} both lead term {term}")
            return False
        if term > self.term:
            self.library.end_transfer()
            self.library.enter_term(term)
        self._heard_leader_ms = self._host.clock()
        self._pre_voters = set()
        self._campaign_term = None
        if not self.library.is_transferring:
            self.library.wait_for_leader()
        self.library.follow(peer)
        return True

    def _on_append_entries(self, peer: NodeName, message: Message) -> None:
        if not self.follow(peer, message["term"]):
            return
        previous = message["prevLogIdx"]
        base_index = self._journal.base[0]
        if previous > self._journal.last_index:
            self._answer(peer, next_index=self._journal.last_index + 1, refused_index=previous)
            return
        # Entries below the base are covered by a snapshot, so they are committed and agree with any leader's log.
        if previous >= base_index and self._journal.term_at(previous) != message["prevLogTerm"]:
            hint = self._first_of_term(previous)
            if self._remove_from(previous):
                self._answer(peer, next_index=hint, refused_index=previous)
            return
        if not self._take_entries(message["entries"]):
            return
        verified = max(previous + len(message["entries"]), base_index)
        # Raft Fig. 2: entries after the last one of this message are not known to agree with the leader's log.
        committed = min(message["commit_index"], verified)
        if committed > self.commit_index:
            self.library.committed(committed)
            self._journal.setRaftCommitIndex(committed)
        self._verified = (peer, self.term, verified)
        self._acknowledge()

    def _take_entries(self, entries: Sequence[Sequence[Any]]) -> bool:
        """Add new entries; those that are here already stay, with all after them (a message may arrive twice)."""
        for command, index, term in entries:
            own_term = self._journal.term_at(index)
            if index <= self._journal.base[0] or own_term == term:
                continue
            if own_term is not None and not self._remove_from(index):
                return False
            self._add(command, index, term)
        return True

    def _remove_from(self, index: int) -> bool:
        if index <= self.commit_index:
            self._host.violated(f"the leader's log disagrees with the committed entry {index}")
            return False
        self._host.removed(self._journal.truncate(index))
        return True

    def _add(self, command: bytes, index: int, term: int) -> None:
        self._journal.add(command, index, term)
        self._host.appended((command, index, term))

    def _first_of_term(self, index: int) -> int:
        """Return the first entry of the term of the entry at `index`: the next one worth comparing."""
        term = self._journal.term_at(index)
        while index > self.commit_index + 1 and self._journal.term_at(index - 1) == term:
            index -= 1
        return index

    def _acknowledge(self) -> None:
        """Report to the leader how much of its log is here and synced; the rest follows after the sync."""
        if self._verified is None or self._verified[1] != self.term:
            return
        leader, _, verified = self._verified
        self._answer(leader, next_index=min(verified, self._journal.synced_index) + 1, refused_index=None)

    def acknowledge_installed(self, peer: NodeName, index: int) -> None:
        """Report to the leader that all entries up to `index` are here."""
        self._verified = (peer, self.term, index)
        self._acknowledge()

    def _answer(self, leader: NodeName, *, next_index: int, refused_index: int | None) -> None:
        message = {"term": self.term, "next_node_idx": next_index, "success": refused_index is None}
        self._host.transmit(leader, {"type": "next_node_idx", **message, "refused_index": refused_index or 0})

    # The leader's half.

    def answered(self, peer: NodeName, term: int) -> bool:
        """Note an answer of a follower; return False when it is not to the leader of this term."""
        if term > self.term:
            self._step_down(term)
        if not self.is_leader or term != self.term:
            return False
        if peer in self._voters:
            self.library.heard(peer)
        if peer in self._targets:
            self._progress[peer].answered_at = Instant(self._host.clock())
        return True

    def _on_next_node_idx(self, peer: NodeName, message: Message) -> None:
        if not self.answered(peer, message["term"]) or peer not in self._targets:
            return
        progress = self._progress[peer]
        match = progress.match
        next_index = message["next_node_idx"]
        if message["success"]:
            acknowledged = next_index - 1
            if match <= acknowledged <= self._journal.last_index and (acknowledged > match or progress.is_probing):
                progress.acknowledged(acknowledged)
                progress.advanced_at = progress.answered_at
                self._count(peer)
                self._replicate(peer, is_heartbeat=False)
        elif message["refused_index"] > match:
            progress.restart(max(match + 1, min(next_index, message["refused_index"])))
            self._replicate(peer, is_heartbeat=True)
        elif message["refused_index"] > 0:
            self._host.remind(peer)

    def _count(self, peer: NodeName) -> None:
        """Let the library count a peer's copies, as far as this node has the entries on its own disk too.

        The library counts the leader's own copy from the moment an entry is appended.
        """
        self.library.has_copies(peer, min(self._progress[peer].match, self._journal.synced_index))

    def send_heartbeats(self) -> None:
        """See `LibraryOwner.send_heartbeats`: send each connected peer what it lacks, or an empty message."""
        self.library.heartbeats_sent()
        self._shown_commit = self.commit_index
        self.heartbeat_at = Instant(self._host.clock())
        self._send_to_all(is_heartbeat=True)

    def _send_to_all(self, *, is_heartbeat: bool) -> None:
        for peer in self._targets:
            if self.library.is_connected(peer):
                self._replicate(peer, is_heartbeat=is_heartbeat)

    def _probe_from_end(self, progress: Progress) -> None:
        """Start comparing at the end of the log if nothing is known, as after an election."""
        if progress.match == 0:
            progress.next = self._journal.begun_index + 1

    def _replicate(self, peer: NodeName, *, is_heartbeat: bool) -> None:
        """Send what the peer lacks and the window allows, as far as it is on this node's disk or being written."""
        progress = self._progress[peer]
        if progress.next <= self._journal.base[0]:
            self._host.send_snapshot(peer)
            return
        is_sent = False
        while not progress.is_probing and progress.in_flight_bytes < WINDOW_BYTES:
            entries = self._batch(progress.next)
            if not entries:
                break
            self._send_append(peer, progress.next - 1, entries)
            progress.sent(entries[-1][1], sum(len(entry[0]) for entry in entries))
            is_sent = True
        if is_heartbeat and not is_sent:
            self._send_append(peer, min(progress.next - 1, self._journal.begun_index), [])

    def _batch(self, index: int) -> list[LogEntry]:
        """Return entries from `index` on that are synced or being written, at least one if there is any."""
        first, last = self._journal.base[0], self._journal.begun_index
        size, end = 0, index
        while end <= last and size < BATCH_BYTES:
            size += len(self._journal[end - first][0])
            end += 1
        return self._journal[index - first : end - first]

    def _send_append(self, peer: NodeName, previous: int, entries: list[LogEntry]) -> None:
        self._host.transmit(
            peer,
            {
                "type": "append_entries",
                "term": self.term,
                # The only voter counts its own copy before it is synced; learners must not.
                "commit_index": min(self.commit_index, self._journal.synced_index),
                "prevLogIdx": previous,
                "prevLogTerm": self._journal.term_at(previous),
                "entries": entries,
            },
        )

    def take_waiting(self) -> None:
        """See `LibraryOwner.take_waiting`."""
        if self.is_leader:
            while self.waiting and self._journal.last_index - self.applied_index < self._settings.in_flight_max:
                entry, term = self.waiting.popleft()
                if term in (None, self.term):
                    self._add(bytes((self._host.kind_of(entry),)) + entry, self._journal.last_index + 1, self.term)
        elif self.leader is not None and self.library.is_connected(self.leader):
            while self.waiting:
                entry, term = self.waiting.popleft()
                if term is None:
                    message = {"type": "apply_command", "command": entry}
                    self._host.transmit(self.leader, message)
        elif self.leader is None:
            # Who still wants one repeats it. Kept until there is a leader, it would also take effect when it was given
            # up long ago, and answered with "no quorum".
            self.waiting.clear()

    # Applying, snapshots.

    def apply_committed(self) -> bool:
        """Apply entries that are committed and synced here, while the main loop has room; return whether any was."""
        applied = self.applied_index
        until = min(self.commit_index, self._journal.synced_index, applied + self._host.room())
        if until <= applied:
            return False
        first = self._journal.base[0]
        for entry in self._journal[applied + 1 - first : until + 1 - first]:
            if not self._host.is_prepared(entry):
                break
            self.library.applied(entry[1])
            if entry[0][0] != NO_OP:
                self._host.apply(entry)
        # The followers need not wait until this node is ready to apply what is committed.
        return self.applied_index > applied or self.commit_index > self._shown_commit


_OWN_MESSAGES: dict[str, Callable[[Consensus, NodeName, Message], None]] = {
    "request_pre_vote": Consensus._on_request_pre_vote,
    "response_pre_vote": Consensus._on_response_pre_vote,
    "append_entries": Consensus._on_append_entries,
    "next_node_idx": Consensus._on_next_node_idx,
    "apply_command": Consensus._on_apply_command,
}
