"""PySyncObj 0.3.17 as a Raft core, guarded: the only room that imports it.

The library keeps term, vote and commit index, elects, counts acknowledgements and falls back. What it does wrong as
shipped (docs/design/0002-store.md) is replaced here, by overriding its private methods by their mangled names, so the
version is pinned and every name is checked at start. Replaced: the follower's half of AppendEntries (Raft Fig. 2), the
leader's replication, snapshots, applying, the command queue. Added: pre-vote (Raft thesis §9.6), one vote per peer and
term, terms on acknowledgements.

Invariant: no byte from disk or wire reaches pickle, sockets, files or clocks of the library: those names are replaced
by ones that refuse, before the class is ever used.
"""

import threading
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NoReturn

import pysyncobj.journal
import pysyncobj.pickle
import pysyncobj.serializer
import pysyncobj.syncobj
import pysyncobj.tcp_connection
import pysyncobj.version
from pysyncobj.config import SyncObjConf
from pysyncobj.node import Node
from pysyncobj.syncobj import SyncObj
from pysyncobj.transport import Transport

from haclusterd.adapters.raft.frames import NO_OP, Message
from haclusterd.adapters.raft.host import Host
from haclusterd.adapters.raft.journal import Journal, LogEntry
from haclusterd.adapters.raft.library_names import ATTRIBUTES, METHODS
from haclusterd.adapters.raft.progress import Progress
from haclusterd.adapters.raft.settings import RaftSettings
from haclusterd.model.followers import Follower
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant
from haclusterd.ports.store import StoreRefused, VoterSet

SUPPORTED_VERSION = "0.3.17"

BATCH_BYTES = 256 * 1024
"""Commands in one message."""
WINDOW_BYTES = 2 * 1024 * 1024
"""Commands sent to one peer and not yet acknowledged."""

_FOLLOWER, _LEADER = 0, 2


class _Running(threading.local):
    """The clock of the core that runs on this thread now: the library asks a module, not an object."""

    clock: Callable[[], int] | None = None


_running = _Running()


def _monotonic() -> float:
    assert _running.clock is not None
    return _running.clock() / 1000


class PickleRefused(Exception):  # noqa: N818 (a verdict, not an accident)
    """Something tried to pickle or unpickle."""


def _refuse_pickle(*_: object, **__: object) -> NoReturn:
    raise PickleRefused("nothing is ever pickled or unpickled here")


class _RefusedRandom:
    random = staticmethod(_refuse_pickle)


class _NullPoller:
    def poll(self, timeout: float) -> None:
        """Do nothing: the transport is not the library's."""


def _guard_library() -> None:
    library = pysyncobj.syncobj
    library.monotonicTime = _monotonic
    library.random = _RefusedRandom
    library.createPoller = lambda _: _NullPoller()
    library.PIPE_NOTIFIER_ENABLED = False
    library.createJournal = lambda journal: journal
    for name in ("load", "loads", "dump", "dumps"):
        setattr(pysyncobj.pickle, name, _refuse_pickle)
    pysyncobj.journal.loads = _refuse_pickle
    pysyncobj.journal.dumps = _refuse_pickle


_guard_library()


def require_supported_library() -> None:
    """Check the version and every private name that is used here; raises StoreRefused."""
    version = pysyncobj.version.VERSION
    if version != SUPPORTED_VERSION:
        raise StoreRefused(f"pysyncobj {version} is installed, only {SUPPORTED_VERSION} is supported")
    missing = [name for name in METHODS if not callable(getattr(SyncObj, name, None))]
    if missing:
        raise StoreRefused(f"pysyncobj {version} lacks {', '.join(missing)}: this is not the release it claims to be")


class _VoterNode(Node):  # type: ignore[misc]  # the library has no types
    """A node whose hash does not depend on PYTHONHASHSEED: the library iterates over sets of them."""

    def __init__(self, name: NodeName) -> None:
        super().__init__(name)
        self._hash = zlib.crc32(name.encode())

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _VoterNode) and self._id == other._id


@lru_cache(maxsize=1024)
def _node_of(name: NodeName) -> _VoterNode:
    """Return what stands for a node in the library."""
    return _VoterNode(name)


class _HostTransport(Transport):  # type: ignore[misc]  # the library has no types
    """The library's way out."""

    ready = True

    def __init__(self, host: Host, node: Node, others: list[Node]) -> None:
        super().__init__(None, node, others)
        self._host = host

    def send(self, node: Node, message: Message) -> bool:
        """Hand a message of the library to the host."""
        self._host.transmit(node.id, message)
        return True


class GuardedSyncObj(SyncObj):  # type: ignore[misc]  # the library has no types
    """One Raft node; every call must come through `RaftCore`, which calls `enter` first."""

    _SyncObj__raftElectionDeadline: float
    _SyncObj__newAppendEntriesTime: float
    _SyncObj__raftLeader: Any
    _SyncObj__raftCurrentTerm: int
    _SyncObj__raftCommitIndex: int
    _SyncObj__raftLastApplied: int

    def __init__(self, settings: RaftSettings, journal: Journal, host: Host, applied_index: int) -> None:
        require_supported_library()
        self._settings = settings
        self._journal = journal
        self._host = host
        self._progress: dict[NodeName, Progress] = {}
        self._voters: tuple[NodeName, ...] = ()
        self._targets: tuple[NodeName, ...] = ()
        self._voted: dict[NodeName, int] = {}
        self._pre_voters: set[NodeName] = set()
        self._campaign_term: int | None = None
        self._heard_leader_ms = host.clock() - settings.timers.election_max_ms
        self._verified: tuple[NodeName, int, int] | None = None
        self.heartbeat_at: Instant | None = None
        """When this node, as leader, last sent something to every connected peer."""
        self._shown_commit = 0
        """As leader: what the followers were told is committed."""
        self.waiting: deque[tuple[bytes, int | None]] = deque()
        """Proposals, each with the term in which alone this node may append it, as its leader; None: any."""
        self.enter()
        timers = settings.timers
        node = _node_of(settings.node)
        voter_set = settings.voter_set
        others = [_node_of(name) for name in voter_set.voters if name != settings.node]
        super().__init__(
            node,
            others,
            SyncObjConf(
                autoTick=False,
                journalFile=journal,
                fullDumpFile=None,
                useFork=False,
                appendEntriesUseBatch=False,
                dynamicMembershipChange=False,
                raftMinTimeout=timers.election_min_ms / 1000,
                raftMaxTimeout=timers.election_max_ms / 1000,
                appendEntriesPeriod=timers.append_ms / 1000,
                leaderFallbackTimeout=timers.fallback_ms / 1000,
                connectionTimeout=max(timers.silence_ms, timers.election_max_ms) / 1000,
            ),
            nodeClass=_VoterNode,
            transport=_HostTransport(host, node, others),
        )
        missing = [name for name in ATTRIBUTES if not hasattr(self, name)]
        if missing:
            raise StoreRefused(f"pysyncobj {SUPPORTED_VERSION} lacks {', '.join(missing)}")
        self._SyncObj__raftLastApplied = applied_index
        self.follow_voters(voter_set)

    def follow_voters(self, voter_set: VoterSet) -> None:
        """Count votes and acknowledgements by another voter set from now on, and send the log to its members."""
        own = self._settings.node
        self._voters = voter_set.voters
        self._targets = tuple(name for name in sorted((*voter_set.voters, *voter_set.learners)) if name != own)
        others = {_node_of(name) for name in voter_set.voters if name != own}
        self._SyncObj__otherNodes = others
        now = _monotonic()
        for name in self._targets:
            if name not in self._progress:
                self._progress[name] = self._new_progress()
            self._count(name)
        for node in others:
            self._SyncObj__lastResponseTime.setdefault(node, now)
        for node in set(self._SyncObj__lastResponseTime) - others:
            del self._SyncObj__lastResponseTime[node]
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
        """Whether this leader knows what is committed: only then may it change the voters."""
        return self.is_leader and self._journal.term_at(self.commit_index) == self.term

    def acknowledged(self, peer: NodeName) -> int:
        """Return, as leader, the newest committed entry that a peer has acknowledged; 0 when there is none."""
        is_followed = self.is_leader and peer in self._targets
        return min(self._progress[peer].match, self.commit_index) if is_followed else 0

    def led(self, peer: NodeName) -> tuple[int, int]:
        """Return, as leader, the term and the newest entry that a peer has acknowledged in it; zeros otherwise."""
        return (self.term, self._progress[peer].match) if self.is_leader and peer in self._targets else (0, 0)

    def lag(self, peer: NodeName) -> int:
        """Return how many entries a peer is not known to have, as far as this leader knows."""
        progress = self._progress.get(peer)
        return self._journal.last_index - (0 if progress is None else progress.match)

    def followers_behind(self, patience_ms: int) -> tuple[Follower, ...]:
        """Return, as leader, who has not answered for so long, or has for so long lacked what is committed.

        A peer that is sent a snapshot has not fallen behind: how long it takes to read one depends on the state.
        """
        now = Instant(self._host.clock())
        behind = []
        for peer in self._targets if self.is_leader else ():
            progress = self._progress[peer]
            if progress.match >= self.commit_index or progress.next <= self._journal.base[0]:
                progress.advanced_at = now
            if now - min(progress.answered_at, progress.advanced_at) >= patience_ms:
                is_linked = _node_of(peer) in self._SyncObj__connectedNodes
                behind.append(Follower(peer, progress.answered_at, progress.advanced_at, is_linked))
        return tuple(behind)

    def forget_silence(self) -> None:
        """Count the silence of all peers from now on: this node stood still itself."""
        now = Instant(self._host.clock())
        for progress in self._progress.values():
            progress.answered_at = progress.advanced_at = now

    def enter(self) -> None:
        """Make this node's clock the library's, on this thread."""
        _running.clock = self._host.clock

    # What the core asks.

    @property
    def term(self) -> int:
        """The current term."""
        return self._SyncObj__raftCurrentTerm

    @property
    def is_leader(self) -> bool:
        """Whether this node believes to lead."""
        return bool(self._SyncObj__raftState == _LEADER)

    @property
    def leader(self) -> NodeName | None:
        """Who leads, as far as this node knows."""
        node = self._SyncObj__raftLeader
        return None if node is None else NodeName(node.id)

    @property
    def commit_index(self) -> int:
        """The newest entry known to be committed."""
        return self._SyncObj__raftCommitIndex

    @property
    def applied_index(self) -> int:
        """The newest entry that was applied."""
        return self._SyncObj__raftLastApplied

    @property
    def due_ms(self) -> int:
        """When `step` has something to do by itself."""
        if not self.is_leader:
            return int(self._SyncObj__raftElectionDeadline * 1000) + 1
        heartbeat = int(self._SyncObj__newAppendEntriesTime * 1000) + 1
        answers = sorted(self._SyncObj__lastResponseTime.values(), reverse=True)
        if not answers:
            return heartbeat
        # With the answers sorted, newest first, the one that completes the majority decides when to fall back.
        decisive = answers[(len(answers) + 1) // 2 - 1]
        return min(heartbeat, int(decisive * 1000) + self._settings.timers.fallback_ms)

    def connected(self, peer: NodeName) -> None:
        """A link is up: what was sent on an older one may be lost."""
        node = _node_of(peer)
        self._SyncObj__connectedNodes.add(node)
        progress = self._progress.get(peer)
        if self.is_leader and progress is not None and peer in self._targets:
            progress.restart(progress.match + 1)
            self._probe_from_end(progress)

    def disconnected(self, peer: NodeName) -> None:
        """A link is gone."""
        self._SyncObj__connectedNodes.discard(_node_of(peer))

    def step(self) -> None:
        """Do what is due; most messages leave nothing to do."""
        if self._is_idle():
            self._host.compact()
            return
        self._prepare_election()
        self._onTick(0.0)

    def _is_idle(self) -> bool:
        """Whether a tick would change nothing: nothing is due, and there is nothing to send, to commit or to apply."""
        committed = self._SyncObj__raftCommitIndex
        if self.waiting or self._SyncObj__raftLastApplied < committed:
            return False
        now_ms = self._host.clock()
        now = now_ms / 1000
        if self.is_leader and (committed < self._journal.last_index or now > self._SyncObj__newAppendEntriesTime):
            return False
        is_second_over = now - self._SyncObj__startTime > self._SyncObj__numOneSecondDumps
        return not is_second_over and now_ms < self.due_ms

    def handle(self, peer: NodeName, message: Message) -> None:
        """Handle a message of a connected peer."""
        self._SyncObj__onMessageReceived(_node_of(peer), message)

    def began(self) -> None:
        """A write has begun: what it makes durable here goes to the others meanwhile (Raft thesis §10.2.1)."""
        if self.is_leader:
            self._send_to_all(is_heartbeat=False)

    def synced(self) -> None:
        """A write became durable: count it, or tell who waits for it."""
        if self.is_leader:
            for peer in self._targets:
                self._count(peer)
        else:
            self._acknowledge()

    def installed(self, index: int) -> None:
        """The state was replaced by a snapshot that ends at `index`, and the journal begins there."""
        self._SyncObj__raftLastApplied = index
        if self.commit_index < index:
            self._SyncObj__raftCommitIndex = index
            self._journal.setRaftCommitIndex(index)

    def transfer(self, to: NodeName) -> None:
        """Ask `to` to campaign, if this node leads and `to` has all that anybody else can have of its log.

        What is not being written here was sent to nobody; asking for it would keep a leader whose disk stands still.
        """
        is_heir = self.is_leader and to != self._settings.node and to in self._voters
        if is_heir and self._progress[to].match >= self._journal.begun_index:
            self._host.transmit(to, {"type": "timeout_now", "term": self.term})

    def retime(self, settings: RaftSettings) -> None:
        """Take other timers; a follower counts its patience anew."""
        self._settings = settings
        timers = settings.timers
        self.conf.leaderFallbackTimeout = timers.fallback_ms / 1000
        self.conf.appendEntriesPeriod = timers.append_ms / 1000
        self.conf.connectionTimeout = max(timers.silence_ms, timers.election_max_ms) / 1000
        now = _monotonic()
        self._SyncObj__newAppendEntriesTime = min(self._SyncObj__newAppendEntriesTime, now + timers.append_ms / 1000)
        self._SyncObj__raftElectionDeadline = now + self._SyncObj__generateRaftTimeout()

    # Elections.

    def _SyncObj__generateRaftTimeout(self) -> float:  # noqa: N802 (the library\'s name)
        timers = self._settings.timers
        span = timers.election_max_ms - timers.election_min_ms
        return (timers.election_min_ms + span * self._host.fraction()) / 1000

    def _prepare_election(self) -> None:
        """Ask for pre-votes when the election timer has run out; the library campaigns only after a majority of them.

        Without this a voter that was cut off would raise the term, and depose a healthy leader, at its return.
        """
        if self.is_leader or _monotonic() <= self._SyncObj__raftElectionDeadline:
            return
        if not self._host.may_vote():
            self._SyncObj__raftElectionDeadline = _monotonic() + self._SyncObj__generateRaftTimeout()
            return
        if not self.may_vote:
            self._SyncObj__raftElectionDeadline = _monotonic() + self._SyncObj__generateRaftTimeout()
            self._SyncObj__raftLeader = None
            return
        if self._SyncObj__transferInProgress or self._campaign_term == self.term + 1:
            self._campaign_term = None
            return
        self._SyncObj__raftElectionDeadline = _monotonic() + self._SyncObj__generateRaftTimeout()
        self._SyncObj__raftLeader = None
        self._pre_voters = {self._settings.node}
        for peer in self._voters:
            if peer == self._settings.node:
                continue
            self._host.transmit(
                peer,
                {
                    "type": "request_pre_vote",
                    "term": self.term + 1,
                    "last_log_index": self._SyncObj__getCurrentLogIndex(),
                    "last_log_term": self._SyncObj__getCurrentLogTerm(),
                },
            )
        self._count_pre_votes()

    def _on_request_pre_vote(self, node: Node, message: Message) -> None:
        timers = self._settings.timers
        own_log = (self._SyncObj__getCurrentLogTerm(), self._SyncObj__getCurrentLogIndex())
        silence_ms = self._host.clock() - self._heard_leader_ms
        is_leader_alive = self.is_leader or silence_ms < timers.election_min_ms - timers.append_ms
        granted = (
            message["term"] > self.term
            and (message["last_log_term"], message["last_log_index"]) >= own_log
            and not is_leader_alive
            and self._host.may_vote()
        )
        self._host.transmit(
            node.id,
            {"type": "response_pre_vote", "term": self.term, "asked_term": message["term"], "granted": granted},
        )

    def _on_response_pre_vote(self, node: Node, message: Message) -> None:
        if message["term"] > self.term:
            self._step_down(message["term"])
        elif node.id in self._voters and self._is_granted_now(message):
            self._pre_voters.add(node.id)
            self._count_pre_votes()

    def _is_granted_now(self, message: Message) -> bool:
        return bool(message["granted"] and message["asked_term"] == self.term + 1 and self._pre_voters)

    def _count_pre_votes(self) -> None:
        if not self.is_leader and 2 * len(self._pre_voters) > len(self._voters):
            self._pre_voters = set()
            self._campaign_term = self.term + 1
            self._SyncObj__raftElectionDeadline = 0

    def _step_down(self, term: int) -> None:
        self._SyncObj__setCurrentTerm(term, None)
        self._SyncObj__setState(_FOLLOWER)
        self._SyncObj__raftLeader = None
        self._pre_voters = set()

    def _SyncObj__onBecomeLeader(self) -> None:  # noqa: N802 (the library\'s name)
        self._progress = {peer: self._new_progress() for peer in self._targets}
        for peer in self._targets:
            self._count(peer)
        self._verified = None
        SyncObj._SyncObj__onBecomeLeader(self)

    # Messages.

    def _SyncObj__onMessageReceived(self, node: Node, message: Message) -> None:  # noqa: N802 (the library\'s name)
        kind = message["type"]
        own = _OWN_MESSAGES.get(kind)
        if kind == "request_vote" and not self._host.may_vote():
            return
        if own is not None:
            own(self, node, message)
        elif kind == "response_vote" and not self._is_new_vote(node.id, message["term"]):
            return
        else:
            if kind == "response_vote":
                self._voted[node.id] = message["term"]
            SyncObj._SyncObj__onMessageReceived(self, node, message)

    def _is_new_vote(self, voter: NodeName, term: int) -> bool:
        return voter in self._voters and self._voted.get(voter) != term

    def _on_apply_command(self, _: Node, message: Message) -> None:
        if self.is_leader and len(self.waiting) < self._settings.waiting_max:
            self.waiting.append((message["command"], None))

    # The follower's half.

    def follow(self, peer: NodeName, term: int) -> bool:
        """Accept `peer` as the leader of `term`; False when the term is over."""
        node = _node_of(peer)
        if term < self.term:
            self._answer(peer, next_index=self._journal.last_index + 1, refused_index=0)
            return False
        if term == self.term and self.is_leader:
            self._host.violated(f"{peer} and {self._settings.node} both lead term {term}")
            return False
        if term > self.term:
            self._SyncObj__transferInProgress = False
            self._SyncObj__setCurrentTerm(term, None)
        self._heard_leader_ms = self._host.clock()
        self._pre_voters = set()
        self._campaign_term = None
        if not self._SyncObj__transferInProgress:
            self._SyncObj__raftElectionDeadline = _monotonic() + self._SyncObj__generateRaftTimeout()
        if self._SyncObj__raftLeader != node:
            self._SyncObj__onLeaderChanged()
            self._SyncObj__raftLeader = node
        self._SyncObj__setState(_FOLLOWER)
        return True

    def _on_append_entries(self, node: Node, message: Message) -> None:
        peer = NodeName(node.id)
        if not self.follow(peer, message["term"]):
            return
        previous = message["prevLogIdx"]
        base_index = self._journal.base[0]
        if previous > self._journal.last_index:
            self._answer(peer, next_index=self._journal.last_index + 1, refused_index=previous)
            return
        # What lies below the base is covered by a snapshot, so it is committed and agrees with any leader's log.
        if previous >= base_index and self._journal.term_at(previous) != message["prevLogTerm"]:
            hint = self._first_of_term(previous)
            if self._remove_from(previous):
                self._answer(peer, next_index=hint, refused_index=previous)
            return
        if not self._take_entries(message["entries"]):
            return
        verified = max(previous + len(message["entries"]), base_index)
        # Raft Fig. 2: nothing behind the last entry of this message is known to agree with the leader's log.
        committed = min(message["commit_index"], verified)
        if committed > self.commit_index:
            self._SyncObj__raftCommitIndex = committed
            self._journal.setRaftCommitIndex(committed)
        self._verified = (peer, self.term, verified)
        self._acknowledge()

    def _take_entries(self, entries: Sequence[Sequence[Any]]) -> bool:
        """Add what is new; entries that are here already stay, with all behind them (a message may come twice)."""
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
        """Return the first entry of the term of the entry at `index`: where it is worth to compare next."""
        term = self._journal.term_at(index)
        while index > self.commit_index + 1 and self._journal.term_at(index - 1) == term:
            index -= 1
        return index

    def _acknowledge(self) -> None:
        """Tell the leader how much of its log is here and synced; the rest follows after the sync."""
        if self._verified is None or self._verified[1] != self.term:
            return
        leader, _, verified = self._verified
        self._answer(leader, next_index=min(verified, self._journal.synced_index) + 1, refused_index=None)

    def acknowledge_installed(self, peer: NodeName, index: int) -> None:
        """Tell the leader that all up to `index` is here."""
        self._verified = (peer, self.term, index)
        self._acknowledge()

    def _answer(self, leader: NodeName, *, next_index: int, refused_index: int | None) -> None:
        message = {"term": self.term, "next_node_idx": next_index, "success": refused_index is None}
        self._host.transmit(leader, {"type": "next_node_idx", **message, "refused_index": refused_index or 0})

    # The leader's half.

    def answered(self, peer: NodeName, term: int) -> bool:
        """Note a sign of life of a follower; False when it is not for the leader of this term."""
        if term > self.term:
            self._step_down(term)
        if not self.is_leader or term != self.term:
            return False
        if peer in self._voters:
            self._SyncObj__lastResponseTime[_node_of(peer)] = _monotonic()
        if peer in self._targets:
            self._progress[peer].answered_at = Instant(self._host.clock())
        return True

    def _on_next_node_idx(self, node: Node, message: Message) -> None:
        if not self.answered(node.id, message["term"]) or node.id not in self._targets:
            return
        progress = self._progress[node.id]
        match = progress.match
        next_index = message["next_node_idx"]
        if message["success"]:
            acknowledged = next_index - 1
            if match <= acknowledged <= self._journal.last_index and (acknowledged > match or progress.is_probing):
                progress.acknowledged(acknowledged)
                progress.advanced_at = progress.answered_at
                self._count(node.id)
                self._replicate(node, is_heartbeat=False)
        elif message["refused_index"] > match:
            progress.restart(max(match + 1, min(next_index, message["refused_index"])))
            self._replicate(node, is_heartbeat=True)
        elif message["refused_index"] > 0:
            self._host.remind(node.id)

    def _count(self, peer: NodeName) -> None:
        """Let the library count a peer's copies, as far as this node has them on its own disk as well.

        It takes the leader for one of those who have an entry, from the moment it is appended.
        """
        self._SyncObj__raftMatchIndex[_node_of(peer)] = min(self._progress[peer].match, self._journal.synced_index)

    def _SyncObj__sendAppendEntries(self) -> None:  # noqa: N802 (the library\'s name)
        self._SyncObj__newAppendEntriesTime = _monotonic() + self._settings.timers.append_ms / 1000
        self._shown_commit = self.commit_index
        self.heartbeat_at = Instant(self._host.clock())
        self._send_to_all(is_heartbeat=True)

    def _send_to_all(self, *, is_heartbeat: bool) -> None:
        for peer in self._targets:
            node = _node_of(peer)
            if node in self._SyncObj__connectedNodes:
                self._replicate(node, is_heartbeat=is_heartbeat)

    def _probe_from_end(self, progress: Progress) -> None:
        """Begin to compare at the end of the log when nothing is known, as at an election."""
        if progress.match == 0:
            progress.next = self._journal.begun_index + 1

    def _replicate(self, node: Node, *, is_heartbeat: bool) -> None:
        """Send what the peer lacks and the window allows, as far as it is on this node's disk or on its way there."""
        progress = self._progress[node.id]
        if progress.next <= self._journal.base[0]:
            self._host.send_snapshot(node.id)
            return
        is_sent = False
        while not progress.is_probing and progress.in_flight_bytes < WINDOW_BYTES:
            entries = self._batch(progress.next)
            if not entries:
                break
            self._send_append(node, progress.next - 1, entries)
            progress.sent(entries[-1][1], sum(len(entry[0]) for entry in entries))
            is_sent = True
        if is_heartbeat and not is_sent:
            self._send_append(node, min(progress.next - 1, self._journal.begun_index), [])

    def _batch(self, index: int) -> list[LogEntry]:
        """Return entries from `index` on that are synced or being written, at least one if there is one."""
        first, last = self._journal.base[0], self._journal.begun_index
        size, end = 0, index
        while end <= last and size < BATCH_BYTES:
            size += len(self._journal[end - first][0])
            end += 1
        return self._journal[index - first : end - first]

    def _send_append(self, node: Node, previous: int, entries: list[LogEntry]) -> None:
        self._host.transmit(
            node.id,
            {
                "type": "append_entries",
                "term": self.term,
                # A voter alone counts its own copy before it is synced; learners must not.
                "commit_index": min(self.commit_index, self._journal.synced_index),
                "prevLogIdx": previous,
                "prevLogTerm": self._journal.term_at(previous),
                "entries": entries,
            },
        )

    def _checkCommandsToApply(self) -> None:  # noqa: N802 (the library\'s name)
        if self.is_leader:
            while self.waiting and self._journal.last_index - self.applied_index < self._settings.in_flight_max:
                entry, term = self.waiting.popleft()
                if term in (None, self.term):
                    self._add(bytes((self._host.kind_of(entry),)) + entry, self._journal.last_index + 1, self.term)
        elif self._SyncObj__raftLeader in self._SyncObj__connectedNodes:
            while self.waiting:
                entry, term = self.waiting.popleft()
                if term is None:
                    message = {"type": "apply_command", "command": entry}
                    self._host.transmit(self._SyncObj__raftLeader.id, message)

    # Applying, snapshots.

    def _SyncObj__applyLogEntries(self) -> bool:  # noqa: N802 (the library\'s name)
        """Apply what is committed and synced here, as far as the main loop has room; return whether anything was."""
        applied = self.applied_index
        until = min(self.commit_index, self._journal.synced_index, applied + self._host.room())
        if until <= applied:
            return False
        first = self._journal.base[0]
        for entry in self._journal[applied + 1 - first : until + 1 - first]:
            if not self._host.is_prepared(entry):
                break
            self._SyncObj__raftLastApplied = entry[1]
            if entry[0][0] != NO_OP:
                self._host.apply(entry)
        # The followers need not wait until this node is ready to apply what is committed.
        return self.applied_index > applied or self.commit_index > self._shown_commit

    def _SyncObj__tryLogCompaction(self) -> None:  # noqa: N802 (the library\'s name)
        self._host.compact()

    def _SyncObj__doApplyCommand(self, *_: object) -> NoReturn:  # noqa: N802 (the library\'s name)
        raise AssertionError("entries are applied by __applyLogEntries")

    def _SyncObj__loadDumpFile(self, *_: object) -> NoReturn:  # noqa: N802 (the library\'s name)
        raise AssertionError("snapshots are loaded by RaftCore")


_OWN_MESSAGES: dict[str, Callable[[GuardedSyncObj, Node, Message], None]] = {
    "request_pre_vote": GuardedSyncObj._on_request_pre_vote,
    "response_pre_vote": GuardedSyncObj._on_response_pre_vote,
    "append_entries": GuardedSyncObj._on_append_entries,
    "next_node_idx": GuardedSyncObj._on_next_node_idx,
    "apply_command": GuardedSyncObj._on_apply_command,
}
