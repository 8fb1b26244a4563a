"""One Raft node without threads, sockets or clocks: all of these are injected.

The real adapter drives it from a thread with TLS sockets and real files, the simulator on a virtual clock; both run
this class. It joins the consensus (consensus.py) and the library below it with journal, snapshots and state machine,
and keeps the barrier: no message that shows an unsynced entry, term or vote leaves before the sync
(docs/design/0002-store.md).

It must never block, start a thread, read a clock, draw a random number or write a log by itself.
"""

import hashlib
from collections import deque
from collections.abc import Callable, Sequence

from haclusterd.model.ids import NodeName, Term
from haclusterd.model.instants import Instant
from haclusterd.model.records import dataclass, replace
from haclusterd.model.steps import Steps, outcome_of
from haclusterd.ports.files import Files
from haclusterd.ports.store import (
    Appended,
    Applied,
    ReplicasDiffer,
    Restored,
    StateMachine,
    StoreBusyError,
    StoreDamagedError,
    StoreEvent,
    StoreRefusedError,
    StoreUnwritableError,
    VoterSet,
)
from haclusterd.raft.answer import AwaitedAnswer
from haclusterd.raft.consensus import Consensus
from haclusterd.raft.digests import Comparison, Digests
from haclusterd.raft.frames import NO_OP, REGULAR, VOTERS, Message, decode_frame, encode_frame
from haclusterd.raft.identity import REJOIN, Identity, mark_refused, mark_started, require_identity, require_machine
from haclusterd.raft.journal import (
    FIRST_INDEX,
    JOURNAL_NAME,
    Journal,
    KeptDigest,
    LogEntry,
    create_journal,
    open_journal,
)
from haclusterd.raft.library import MakeLibrary
from haclusterd.raft.notices import Notices
from haclusterd.raft.promises import Promises
from haclusterd.raft.settings import RaftSettings, RaftTimers
from haclusterd.raft.snapshot import SNAPSHOT_NAME, SnapshotFile, index_of, load_snapshot
from haclusterd.raft.snapshot_installation import Installable, SnapshotInstallation, UnreadableSnapshotError
from haclusterd.raft.snapshot_transfer import SnapshotSender
from haclusterd.raft.voter_sets import VoterSets
from haclusterd.raft.worker import Worker, catching

HELD_MAX = 1024
"""Maximum number of messages held back for a sync; further ones are dropped, as a link may drop them."""
JOURNAL_BYTES_MAX = 16 * 1024 * 1024
"""Size of the commands in the journal that makes a snapshot due early."""

_ENDED = object()


@dataclass(frozen=True, slots=True)
class RaftStatus:
    """The core's state, for display and tests; no decision may depend on it (guard 11)."""

    term: Term
    leader: NodeName | None
    is_leader: bool
    base_index: int
    last_index: int
    commit_index: int
    applied_index: int
    connected: tuple[NodeName, ...]


class RaftCore:
    """One node of the replicated log.

    Call `open` once, then `tick` when `due` has come (and at least every 100 ms), and `receive` for every frame. All
    calls come from one thread. After a call of `fail` the core is dead: every call returns at once, and nothing is
    sent.
    """

    def __init__(
        self,
        *,
        settings: RaftSettings,
        files: Files,
        machine: StateMachine,
        clock: Callable[[], Instant],
        fraction: Callable[[], float],
        worker: Worker,
        make_library: MakeLibrary,
        send: Callable[[NodeName, bytes], None],
        deliver: Callable[[StoreEvent], None],
        room: Callable[[], int],
        fail: Callable[[str], None],
        complain: Callable[[str], None],
    ) -> None:
        """Store what is injected; nothing is read before `open`.

        `send` passes one frame to the link of a connected peer, in order; it must not call back into a core. `room`
        returns how many entries may be delivered now. `fail` ends the process (exit code 75) with a reason; `complain`
        writes one line to the log, and this node continues. `fraction` returns a random number in [0, 1).
        """
        self._settings = settings
        self._files = files
        self._machine = machine
        self.clock = clock
        self.fraction = fraction
        self._worker = worker
        self._make_library = make_library
        self._send = send
        self._deliver = deliver
        self.room = room
        self._fail = fail
        self._complain = complain
        self._is_open = False
        self._is_dead = False
        self._hand_over_after = Instant(0)
        self._hand_overs = 0
        self._sync_began: Instant | None = None
        self._answer = AwaitedAnswer()
        self._connected: set[NodeName] = set()
        self._held: deque[tuple[NodeName, Message]] = deque()
        self._snapshot_file = SnapshotFile(files, settings.cluster, worker)
        self._senders: dict[NodeName, SnapshotSender] = {}
        self._installation = SnapshotInstallation(self._snapshot_file, machine)
        self._preparing: Steps[None] | None = None
        """Preparation of the next entry to apply."""
        self._prepared_index = FIRST_INDEX
        """The newest prepared entry: only a prepared one may be applied."""
        self._links: tuple[NodeName, ...] = ()
        """Connected peers, sorted by name."""
        self._notices = Notices()
        self._voter_sets = VoterSets(settings.voter_set)
        self._journal: Journal
        self._promises: Promises
        self._digests = Digests(settings.node)
        self._captured: tuple[int, Term, Callable[[], bytes]] | None = None
        """The state at an agreed index, from which the next snapshot is made."""
        self._is_contested = False
        self._raft: Consensus

    # Start and end.

    def open(self) -> None:
        """Lock and load the data; calls `restore` and `appended` on the machine.

        Raises StoreDamagedError, StoreRefusedError, or StoreUnwritableError: what was read is written again before it
        counts.
        """
        try:
            self._open()
        except OSError as error:
            raise StoreUnwritableError(f"{self._files.describe(JOURNAL_NAME)}: {error}") from error

    def _open(self) -> None:
        settings = self._settings
        try:
            self._files.lock()
        except BlockingIOError:
            raise StoreBusyError(f"{self._files.describe('lock')}: another process uses this data directory") from None
        identity = require_identity(self._files, settings.cluster, settings.node)
        require_machine(self._files, identity, settings.machine)
        self._require_journal(identity)
        snapshot = load_snapshot(self._files, settings.cluster)
        ending = None if snapshot is None else (snapshot.index, int(snapshot.term))
        self._journal = open_journal(self._files, settings.cluster, settings.node, ending)
        mark_started(self._files, identity, settings.machine)
        self._remember_digest(self._journal.digest)
        if snapshot is not None:
            self._snapshot_file.index = snapshot.index
            try:
                # Nobody waits for this node yet: it may take its time.
                outcome = self._machine.restore(outcome_of(self._machine.read(snapshot.payload)))
            except ValueError as error:
                raise StoreDamagedError(f"{self._files.describe(SNAPSHOT_NAME)}: {error}. {REJOIN}") from error
            self._deliver(Restored(snapshot.index, outcome))
            self._voter_sets.restore(snapshot.index, self._machine.voter_set())
            if snapshot.index % settings.snapshot_every == 0:
                # The process may have ended after the snapshot and before its digest was recorded.
                self._digests.note(settings.node, snapshot.index, hashlib.sha256(snapshot.payload).digest())
        for entry in self._journal.entries_from(self._snapshot_file.index + 1):
            self.appended(entry)
        others = [name for name in self.voter_set.voters if name != settings.node]
        until = Instant(self.clock() + settings.timers.election_max_ms)
        self._promises = Promises(self._journal, others, until=until)
        self._raft = Consensus(settings, self._journal, self, self._snapshot_file.index, self._make_library)
        self._is_open = True
        self._follow_voters()

    def _remember_digest(self, kept: KeptDigest) -> None:
        """Continue from the previous process: a restart must not forget that the replicas differ."""
        if kept.entry:
            self._digests.note(self._settings.node, kept.entry, kept.digest)
        if kept.is_contested:
            self._is_contested = True
            self._deliver(ReplicasDiffer(f"the replicas differed at entry {kept.entry}, and no majority agreed since"))

    def _note_digest(self) -> None:
        """Make durable what a restart must not forget."""
        newest = self._digests.newest_own()
        if newest is not None:
            self._journal.note_digest(KeptDigest(newest[0], self._is_contested, newest[1]))

    def _require_journal(self, identity: Identity) -> None:
        if self._files.read(JOURNAL_NAME) is not None:
            return
        if identity.is_started or self._files.read(SNAPSHOT_NAME) is not None:
            path = self._files.describe(JOURNAL_NAME)
            problem = f"{path} is missing, but this node has voted and promised before (amnesia)"
            raise StoreRefusedError(f"{problem}. {REJOIN}")
        create_journal(self._files, self._settings.cluster, self._settings.node)

    def stop(self) -> None:
        """Stop: nothing is sent, written or delivered any more. What was not synced was promised to nobody."""
        self._is_dead = True

    def tick(self) -> None:
        """Do what is due now: elections, heartbeats, commits, applying, snapshots."""
        if self._is_dead:
            return
        self._take_step()
        self._settle()
        if self._sync_began is not None and self.clock() - self._sync_began > self.timers.disk_timeout_ms:
            # Heartbeats need no disk, so no other node would ever campaign; and nothing commits here.
            self.hand_over()

    @property
    def is_at_long_work(self) -> bool:
        """Whether every tick takes one step of a long task."""
        return not self._is_dead and (self._preparing is not None or self._installation.is_reading)

    @property
    def heartbeat_at(self) -> Instant | None:
        """When this node last sent its heartbeats; None while it does not lead."""
        return self._raft.heartbeat_at if self._raft.is_leader else None

    def due(self) -> Instant:
        """Return the earliest instant at which `tick` has something to do without an event."""
        if self.is_at_long_work:
            return self.clock()
        return Instant(min(self._raft.due_ms, self._answer.due()))

    def status(self) -> RaftStatus:
        """Describe the node."""
        raft = self._raft
        return RaftStatus(
            term=Term(raft.term),
            leader=raft.leader,
            is_leader=raft.is_leader,
            base_index=self._journal.base[0],
            last_index=self._journal.last_index,
            commit_index=raft.commit_index,
            applied_index=raft.applied_index,
            connected=self._links,
        )

    # Links.

    def peer_connected(self, peer: NodeName) -> None:
        """Note a link to `peer`; its frames are in order until `peer_disconnected`."""
        if self._is_dead:
            return
        self._drop_link(peer)
        self._connected.add(peer)
        self._links = tuple(sorted(self._connected))
        self.remind(peer)
        self._raft.connected(peer)
        newest = self._digests.newest_own()
        if newest is not None:
            self.transmit(peer, {"type": "digest", "index": newest[0], "digest": newest[1]})
        self._settle()

    def peer_disconnected(self, peer: NodeName) -> None:
        """Note that the link to `peer` is gone, with everything in flight on it."""
        if self._is_dead:
            return
        self._drop_link(peer)
        self._raft.disconnected(peer)
        self._settle()

    def _drop_link(self, peer: NodeName) -> None:
        self._connected.discard(peer)
        self._links = tuple(sorted(self._connected))
        self._senders.pop(peer, None)
        self._held = deque(item for item in self._held if item[0] != peer)

    def receive(self, peer: NodeName, frame: bytes) -> bool:
        """Handle one frame of a connected peer; return False when it is not a valid message (close that link)."""
        if self._is_dead or peer not in self._connected:
            return True
        message = decode_frame(frame)
        if message is None:
            return False
        self._promises.seen(peer, message)
        if message["type"] == "recall":
            self._on_recall(peer, message)
        elif message["type"] == "digest":
            self._compare(peer, message["index"], message["digest"])
        elif message["type"] == "install_snapshot":
            self._on_install_snapshot(peer, message)
        elif message["type"] == "snapshot_received":
            self._on_snapshot_received(peer, message)
        else:
            self._raft.handle(peer, message)
            self._promises.acknowledged(peer, self._raft.acknowledged(peer))
        self._settle()
        return True

    def _on_recall(self, peer: NodeName, message: Message) -> None:
        why = self._promises.heard(peer, message)
        if why:
            self._end_for_good(why)

    def _end_for_good(self, why: str) -> None:
        """Stop, and do not start again with this data: this node no longer holds what it promised."""
        try:
            mark_refused(self._files, require_identity(self._files, self._settings.cluster, self._settings.node), why)
        except (OSError, StoreDamagedError, StoreRefusedError) as error:
            why = f"{why}; it could not be marked, and will be found again ({error})"
        self.violated(f"{why}. {REJOIN}")

    # Requests.

    def propose(self, entry: bytes, term: Term | None = None) -> bool:
        """Append `entry` as leader, or pass it to the leader; return False when too much is waiting.

        While no leader is known it is dropped; with `term`, unless this node leads that term when its turn comes.
        """
        if self._is_dead or len(self._raft.waiting) >= self._settings.waiting_max:
            return False
        self._raft.waiting.append((entry, term))
        return True

    def considered(self, index: int) -> None:
        """Note that all that follows from `Appended` entries up to `index` is proposed: no write waits for it."""
        self._answer.considered(index)

    def transfer_leadership(self, to: NodeName) -> None:
        """As leader, ask `to` to campaign now, if it has the whole log."""
        if not self._is_dead:
            self._raft.transfer(to)

    @property
    def timers(self) -> RaftTimers:
        """The timers in force."""
        return self._settings.timers

    def retime(self, timers: RaftTimers) -> None:
        """Take other timers; voters may differ in them for a moment, which costs an election at worst."""
        if not self._is_dead:
            self._settings = replace(self._settings, timers=timers)
            self._raft.retime(self._settings)

    @property
    def main_loop_timeout_ms(self) -> int:
        """How long a leader's main loop may be silent before another node should lead, in ms."""
        return self._settings.timers.silence_ms

    def hand_over(self) -> None:
        """As leader, ask the connected peers in turn to campaign, one per maximum election time."""
        now = self.clock()
        if self._is_dead or not self._raft.is_leader or now < self._hand_over_after or not self._connected:
            return
        self._hand_over_after = Instant(now + self._settings.timers.election_max_ms)
        self._hand_overs += 1
        candidates = sorted(self._connected & {*self.voter_set.voters})
        if not candidates:
            return
        self.transfer_leadership(candidates[self._hand_overs % len(candidates)])

    # One step.

    def _take_step(self) -> None:
        """Continue a long task by one step: ticks and messages in between keep this node's role."""
        if self._installation.is_reading:
            # First, because it invalidates the preparation of an older entry.
            self._read_on()
        elif self._preparing is not None and next(self._preparing, _ENDED) is _ENDED:
            self._preparing = None
            self._prepared_index = self._raft.applied_index + 1

    def _settle(self) -> None:
        """Let the library do what follows from the event, then write and report."""
        if self._is_dead:
            return
        self._raft.step()
        self._continue_installation()
        self._begin_sync()
        self._notify()

    def _begin_sync(self) -> None:
        is_waiting = self._answer.holds(self.clock())
        if self._is_dead or (is_waiting and self._raft.is_leader):
            return
        write = self._journal.begin_write()
        if write is not None:
            self._sync_began = self.clock()
            self._worker.run(catching(write), self._synced)
            self._raft.began()

    def _synced(self, result: object) -> None:
        if self._is_dead or self._stop_on_error(JOURNAL_NAME, result):
            return
        self._sync_began = None
        self._journal.written()
        self._release_held()
        self._raft.synced()
        self._settle()

    def _stop_on_error(self, name: str, result: object) -> bool:
        if not isinstance(result, OSError):
            return False
        self.violated(f"{self._files.describe(name)}: {result}")
        return True

    def _notify(self) -> None:
        if self._is_dead or self.room() == 0:
            return
        raft, notices = self._raft, self._notices
        for event in (
            *notices.of_leadership(raft),
            *notices.of_links(self._links),
            *notices.of_learners(raft, self.voter_set.learners, self._connected),
            *notices.of_followers(raft, self.timers, self.clock()),
        ):
            self._deliver(event)

    # Called by the consensus (`consensus.Host`).

    def transmit(self, peer: NodeName, message: Message) -> None:
        """Send, or hold back while term and vote are not synced."""
        if self._is_dead or peer not in self._connected:
            return
        if self._journal.is_vote_synced and not self._held:
            self._send(peer, encode_frame(message))
        elif len(self._held) < HELD_MAX:
            self._held.append((peer, message))

    def _release_held(self) -> None:
        if not self._journal.is_vote_synced:
            return
        held, self._held = self._held, deque()
        for peer, message in held:
            self._send(peer, encode_frame(message))

    def may_vote(self) -> bool:
        """Return whether this node may vote and campaign yet (promises.py)."""
        return self._promises.may_vote(self.clock())

    def remind(self, peer: NodeName) -> None:
        """Tell a peer what this node remembers of it; a peer that lacks it ends."""
        self.transmit(peer, self._promises.recall(peer, self._raft.led(peer)))

    def kind_of(self, entry: bytes) -> int:
        """Return VOTERS for a permitted change of the voters (Raft thesis §4.1, with a committed entry first).

        Otherwise it is an ordinary entry, which `apply` refuses with a reason, equally on every node.
        """
        proposed = self._machine.proposed_voters(entry)
        if proposed is None:
            return REGULAR
        is_allowed = (
            self._is_one_step(proposed)
            and self._has_own_commit()
            and self._is_last_change_applied()
            and self._machine.may_change_voters(entry)
        )
        if is_allowed and not self._keeps_own_vote(proposed):
            self.hand_over()
            return REGULAR
        return VOTERS if is_allowed else REGULAR

    def _keeps_own_vote(self, proposed: VoterSet) -> bool:
        return self._settings.node in proposed.voters

    def _is_one_step(self, proposed: VoterSet) -> bool:
        return self._voter_sets.is_one_step(proposed)

    def _has_own_commit(self) -> bool:
        """Whether no entry of an earlier term can still be committed by voters that this leader does not count."""
        return self._raft.has_committed_in_term

    def _is_last_change_applied(self) -> bool:
        return self._voter_sets.newest_index <= self._raft.applied_index

    @property
    def voter_set(self) -> VoterSet:
        """The voter set in force: the newest in the log, committed or not."""
        return self._voter_sets.newest

    def appended(self, entry: LogEntry) -> None:
        """Pass an entry to the state machine; votes are counted by its voter set from now on."""
        command, index, term = entry
        if command[0] != NO_OP:
            self._machine.appended(command[1:])
            self._show(Appended(index, Term(term), command[1:]))
        if command[0] == VOTERS:
            proposed = self._machine.proposed_voters(command[1:])
            if proposed is None:
                self.violated(f"entry {index} changes the voters in words that this version does not know")
                return
            self._voter_sets.append(index, proposed)
            self._follow_voters()

    def _show(self, event: Appended) -> None:
        """Show an entry to a leader's main loop before its commit, if that can continue from it."""
        if self._is_open and self._raft.is_leader and self.room() and self._machine.is_awaited(event.entry):
            self._deliver(event)
            self._answer.shown(event.index, self.clock())

    def removed(self, entries: Sequence[LogEntry]) -> None:
        """Take back entries that can never be committed, newest first."""
        for command, _, _ in reversed(entries):
            if command[0] != NO_OP:
                self._machine.removed(command[1:])
        if entries and self._voter_sets.remove_from(entries[0][1]):
            self._follow_voters()

    def _follow_voters(self) -> None:
        if self._is_open:
            self._raft.follow_voters(self.voter_set)
            self._journal.forget_promises({*self.voter_set.voters, *self.voter_set.learners})

    def is_prepared(self, entry: LogEntry) -> bool:
        """Return whether the next entry may be applied now; otherwise it is being prepared, one step per tick."""
        command, index, _ = entry
        if command[0] == NO_OP or self._prepared_index == index:
            return True
        if self._preparing is None:
            self._preparing = self._machine.prepare(command[1:])
        return self._preparing is None

    def apply(self, entry: LogEntry) -> None:
        """Fold a committed entry into the state."""
        command, index, term = entry
        payload, is_voters = command[1:], command[0] == VOTERS
        fold = self._machine.apply_voters if is_voters else self._machine.apply
        outcome = fold(index, Term(term), payload)
        self._deliver(Applied(index, Term(term), outcome, payload, is_voters))
        if is_voters:
            self._voter_sets.apply(index)
        if index % self._settings.snapshot_every == 0:
            self._captured = (index, Term(term), self._machine.snapshot())

    def violated(self, what: str) -> None:
        """Stop for good: memory and disk, or this node and its peers, disagree."""
        self._is_dead = True
        self._fail(what)

    # Snapshots of this node.

    def compact(self) -> None:
        """Take a snapshot when enough entries were applied since the last one."""
        if self._snapshot_file.is_being_written or self._installation.is_under_way:
            return
        captured, self._captured = self._captured, None
        if captured is not None and captured[0] > self._snapshot_file.index:
            self._take_snapshot(*captured)
            return
        applied = self._raft.applied_index
        count = applied - self._snapshot_file.index
        is_due = count >= self._settings.snapshot_every or (count > 0 and self._journal.size_bytes > JOURNAL_BYTES_MAX)
        if not is_due:
            return
        self._take_snapshot(applied, Term(self._journal.term_at(applied) or 0), self._machine.snapshot())

    def _take_snapshot(self, index: int, term: Term, encode: Callable[[], bytes]) -> None:
        self._snapshot_file.take(index, term, encode, lambda result: self._compacted(index, result))

    def _compare(self, node: NodeName, index: int, digest: bytes) -> None:
        """Take a node's digest, and end the process when a majority of the voters has another one than this node."""
        self._digests.note(node, index, digest)
        comparison = self._digests.compare(index, self.voter_set.voters, self._connected)
        if comparison is Comparison.WRONG:
            self._end_for_good(f"{self._digests.describe(index)}; a majority has another state than this node")
        elif comparison is Comparison.CONTESTED:
            self._is_contested = True
            self._deliver(ReplicasDiffer(self._digests.describe(index)))
        elif comparison is Comparison.EQUAL and self._is_contested:
            self._is_contested = False
            self._deliver(ReplicasDiffer(""))
        self._note_digest()

    def _compacted(self, index: int, result: object) -> None:
        if self._is_dead or self._stop_on_error(SNAPSHOT_NAME, result):
            return
        self._snapshot_file.index = index
        keep = 0 if self._journal.size_bytes > JOURNAL_BYTES_MAX else self._settings.retained_entries
        self._journal.compact(index - keep)
        self._settle()
        if isinstance(result, bytes) and index % self._settings.snapshot_every == 0:
            for peer in self._links:
                self.transmit(peer, {"type": "digest", "index": index, "digest": result})
            self._compare(self._settings.node, index, result)

    # Snapshots for a peer.

    def send_snapshot(self, peer: NodeName) -> None:
        """Send as much of the newest snapshot as the window allows; an empty chunk serves as a heartbeat."""
        sender = self._senders.get(peer)
        now = self.clock()
        if sender is None or sender.index < self._journal.base[0]:
            image = self._files.read(SNAPSHOT_NAME)
            assert image is not None
            # The file may be newer than the newest snapshot that this thread knows.
            stuck_after_ms = self._settings.timers.election_max_ms
            sender = SnapshotSender(index_of(image), image, stuck_after_ms=stuck_after_ms, now=now)
            self._senders[peer] = sender
        for offset, data in sender.chunks(now):
            self.transmit(
                peer,
                {
                    "type": "install_snapshot",
                    "term": self._raft.term,
                    "index": sender.index,
                    "total": len(sender.image),
                    "offset": offset,
                    "data": data,
                },
            )

    def _on_snapshot_received(self, peer: NodeName, message: Message) -> None:
        sender = self._senders.get(peer)
        if not self._raft.answered(peer, message["term"]) or sender is None or sender.index != message["index"]:
            return
        if sender.answered(message["offset"], self.clock()):
            self.send_snapshot(peer)

    # Snapshots from the leader.

    def _on_install_snapshot(self, peer: NodeName, message: Message) -> None:
        if not self._raft.follow(peer, message["term"]):
            return
        index, total = message["index"], message["total"]
        if index <= self._raft.applied_index:
            self._raft.acknowledge_installed(peer, index)
            return
        self._installation.receive(peer, index, total, message["offset"], message["data"])
        self._write_received()
        held = self._installation.held_bytes(index, total)
        self.transmit(peer, {"type": "snapshot_received", "term": self._raft.term, "index": index, "offset": held})

    def _write_received(self) -> None:
        self._installation.write(self._raft.applied_index, self._received_written)

    def _received_written(self, result: object) -> None:
        if self._is_dead or self._stop_on_error(SNAPSHOT_NAME, result):
            return
        complaint = self._installation.written(result)
        if complaint:
            self._complain(complaint)
        self._settle()

    def _continue_installation(self) -> None:
        self._write_received()
        if not self._is_dead and self._installation.begin_reading(self._raft.applied_index, has_room=self.room() > 0):
            self._read_on()

    def _read_on(self) -> None:
        """Take one step; replace the state after the last one."""
        if self.room() == 0:
            return
        try:
            installable = self._installation.read_on()
        except UnreadableSnapshotError as error:
            self.violated(str(error))
            return
        if installable is not None:
            self._install(installable)

    def _install(self, installable: Installable) -> None:
        peer, snapshot = installable.peer, installable.snapshot
        self._preparing = None
        self._journal.install(snapshot.index, snapshot.term)
        outcome = self._machine.restore(installable.state)
        self._raft.installed(snapshot.index)
        self._voter_sets.restore(snapshot.index, self._machine.voter_set())
        self._follow_voters()
        self._deliver(Restored(snapshot.index, outcome))
        for entry in self._journal.entries_from(snapshot.index + 1):
            self.appended(entry)
        if self._raft.leader == peer:
            self._raft.acknowledge_installed(peer, snapshot.index)
