"""PySyncObj 0.3.17 behind `raft/library.py`: the only module that imports it.

The library keeps term, vote and commit index, elects, counts acknowledgements and steps down. Other decisions
(docs/design/0002-store.md) are made by `raft/consensus.py`; this class redirects them there, by overriding private
methods of the library by their mangled names. So the version is pinned, and every name is checked at start.

Invariant: no byte from disk or network reaches pickle, sockets, files or clocks of the library: those names are
replaced by ones that refuse, before the class is ever used.
"""

import threading
import zlib
from collections.abc import Callable, Collection
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

from haclusterd.model.ids import NodeName
from haclusterd.ports.store import StoreRefusedError
from haclusterd.raft.frames import Message
from haclusterd.raft.journal import Journal
from haclusterd.raft.library import LibraryOwner, MakeLibrary
from haclusterd.raft.settings import RaftSettings, RaftTimers

SUPPORTED_VERSION = "0.3.17"

METHODS = (
    "_SyncObj__onMessageReceived",
    "_SyncObj__sendAppendEntries",
    "_SyncObj__applyLogEntries",
    "_SyncObj__doApplyCommand",
    "_SyncObj__generateRaftTimeout",
    "_SyncObj__onBecomeLeader",
    "_SyncObj__tryLogCompaction",
    "_SyncObj__loadDumpFile",
    "_SyncObj__setCurrentTerm",
    "_SyncObj__setState",
    "_SyncObj__onLeaderChanged",
    "_checkCommandsToApply",
    "_onTick",
)
"""Private methods that are overridden or called here; a release that lacks one is not the expected one."""
ATTRIBUTES = (
    "_poller",
    "_SyncObj__raftLog",
    "_SyncObj__raftState",
    "_SyncObj__raftLeader",
    "_SyncObj__raftCurrentTerm",
    "_SyncObj__raftCommitIndex",
    "_SyncObj__raftLastApplied",
    "_SyncObj__raftElectionDeadline",
    "_SyncObj__raftMatchIndex",
    "_SyncObj__lastResponseTime",
    "_SyncObj__newAppendEntriesTime",
    "_SyncObj__transferInProgress",
    "_SyncObj__connectedNodes",
    "_SyncObj__otherNodes",
    "_SyncObj__selfNode",
    "_SyncObj__votesCount",
    "_SyncObj__startTime",
    "_SyncObj__numOneSecondDumps",
)
"""Private attributes that are used here, or that the overriding code relies on."""

_FOLLOWER, _LEADER = 0, 2


class _Running(threading.local):
    """The clock of the node that runs on this thread now: the library asks a module for the time, not an object."""

    clock: Callable[[], int] | None = None


_running = _Running()


def _monotonic() -> float:
    assert _running.clock is not None
    return _running.clock() / 1000


class PickleRefusedError(Exception):
    """Something tried to pickle or unpickle."""


def _refuse_pickle(*_: object, **__: object) -> NoReturn:
    raise PickleRefusedError("nothing is ever pickled or unpickled here")


class _RefusedRandom:
    random = staticmethod(_refuse_pickle)


class _NullPoller:
    def poll(self, timeout: float) -> None:
        """Do nothing: the transport is not the library's."""


def _guard_library() -> None:
    """Replace what the library imports, and does not get as arguments, by our own or by what refuses."""
    library = pysyncobj.syncobj
    library.monotonicTime = _monotonic
    library.random = _RefusedRandom
    library.PIPE_NOTIFIER_ENABLED = False
    library.createJournal = lambda journal: journal
    for name in ("load", "loads", "dump", "dumps"):
        setattr(pysyncobj.pickle, name, _refuse_pickle)
    pysyncobj.journal.loads = _refuse_pickle
    pysyncobj.journal.dumps = _refuse_pickle


_guard_library()


def supported_library() -> MakeLibrary:
    """Return the maker of nodes, after version and private names were checked; raises StoreRefusedError."""
    version = pysyncobj.version.VERSION
    if version != SUPPORTED_VERSION:
        raise StoreRefusedError(f"pysyncobj {version} is installed, only {SUPPORTED_VERSION} is supported")
    missing = [name for name in METHODS if not callable(getattr(SyncObj, name, None))]
    if missing:
        problem = f"pysyncobj {version} lacks {', '.join(missing)}"
        raise StoreRefusedError(f"{problem}: this is not the release it claims to be")
    return GuardedSyncObj


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
    """Return the library's object for a node."""
    return _VoterNode(name)


class _OwnersTransport(Transport):  # type: ignore[misc]  # the library has no types
    """The library's transport, which sends through the owner."""

    ready = True

    def __init__(self, owner: LibraryOwner, node: Node, others: list[Node]) -> None:
        super().__init__(None, node, others)
        self._owner = owner

    def send(self, node: Node, message: Message) -> bool:
        """Pass a message of the library to its owner."""
        self._owner.transmit(node.id, message)
        return True


class GuardedSyncObj(SyncObj):  # type: ignore[misc]  # the library has no types
    """One node of the library; see `raft.library.Library`. What the library does on its own, it does in `tick`."""

    _SyncObj__raftElectionDeadline: float
    _SyncObj__newAppendEntriesTime: float
    _SyncObj__raftLeader: Any
    _SyncObj__raftCurrentTerm: int
    _SyncObj__raftCommitIndex: int
    _SyncObj__raftLastApplied: int

    def __init__(self, settings: RaftSettings, journal: Journal, owner: LibraryOwner) -> None:
        self._owner = owner
        _running.clock = owner.clock
        timers = settings.timers
        node = _node_of(settings.node)
        others = [_node_of(name) for name in settings.voter_set.voters if name != settings.node]
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
                pollerType="select",
                raftMinTimeout=timers.election_min_ms / 1000,
                raftMaxTimeout=timers.election_max_ms / 1000,
                appendEntriesPeriod=timers.append_ms / 1000,
                leaderFallbackTimeout=timers.fallback_ms / 1000,
                connectionTimeout=_connection_timeout_s(timers),
            ),
            nodeClass=_VoterNode,
            transport=_OwnersTransport(owner, node, others),
        )
        missing = [name for name in ATTRIBUTES if not hasattr(self, name)]
        if missing:
            raise StoreRefusedError(f"pysyncobj {SUPPORTED_VERSION} lacks {', '.join(missing)}")
        self._poller = _NullPoller()

    def _now_s(self) -> float:
        return self._owner.clock() / 1000

    # `raft.library.Library`.

    @property
    def term(self) -> int:
        """See `Library.term`."""
        return self._SyncObj__raftCurrentTerm

    @property
    def is_leader(self) -> bool:
        """See `Library.is_leader`."""
        return bool(self._SyncObj__raftState == _LEADER)

    @property
    def leader(self) -> NodeName | None:
        """See `Library.leader`."""
        node = self._SyncObj__raftLeader
        return None if node is None else NodeName(node.id)

    @property
    def commit_index(self) -> int:
        """See `Library.commit_index`."""
        return self._SyncObj__raftCommitIndex

    @property
    def applied_index(self) -> int:
        """See `Library.applied_index`."""
        return self._SyncObj__raftLastApplied

    @property
    def is_transferring(self) -> bool:
        """See `Library.is_transferring`."""
        return bool(self._SyncObj__transferInProgress)

    def tick(self) -> None:
        """See `Library.tick`."""
        _running.clock = self._owner.clock
        self._onTick(0.0)

    def handle(self, peer: NodeName, message: Message) -> None:
        """See `Library.handle`."""
        _running.clock = self._owner.clock
        self._SyncObj__onMessageReceived(_node_of(peer), message)

    def committed(self, index: int) -> None:
        """See `Library.committed`."""
        self._SyncObj__raftCommitIndex = index

    def applied(self, index: int) -> None:
        """See `Library.applied`."""
        self._SyncObj__raftLastApplied = index

    def enter_term(self, term: int) -> None:
        """See `Library.enter_term`."""
        self._SyncObj__setCurrentTerm(term, None)

    def step_down(self) -> None:
        """See `Library.step_down`."""
        self._SyncObj__setState(_FOLLOWER)
        self._SyncObj__raftLeader = None

    def follow(self, leader: NodeName) -> None:
        """See `Library.follow`."""
        node = _node_of(leader)
        if self._SyncObj__raftLeader != node:
            self._SyncObj__onLeaderChanged()
            self._SyncObj__raftLeader = node
        self._SyncObj__setState(_FOLLOWER)

    def forget_leader(self) -> None:
        """See `Library.forget_leader`."""
        self._SyncObj__raftLeader = None

    def end_transfer(self) -> None:
        """See `Library.end_transfer`."""
        self._SyncObj__transferInProgress = False

    def count_among(self, others: Collection[NodeName]) -> None:
        """See `Library.count_among`; new members count as having answered just now."""
        nodes = {_node_of(name) for name in others}
        self._SyncObj__otherNodes = nodes
        now = self._now_s()
        for node in nodes:
            self._SyncObj__lastResponseTime.setdefault(node, now)
        for node in set(self._SyncObj__lastResponseTime) - nodes:
            del self._SyncObj__lastResponseTime[node]

    def has_copies(self, peer: NodeName, index: int) -> None:
        """See `Library.has_copies`."""
        self._SyncObj__raftMatchIndex[_node_of(peer)] = index

    def heard(self, peer: NodeName) -> None:
        """See `Library.heard`."""
        self._SyncObj__lastResponseTime[_node_of(peer)] = self._now_s()

    def connected(self, peer: NodeName) -> None:
        """See `Library.connected`."""
        self._SyncObj__connectedNodes.add(_node_of(peer))

    def disconnected(self, peer: NodeName) -> None:
        """See `Library.disconnected`."""
        self._SyncObj__connectedNodes.discard(_node_of(peer))

    def is_connected(self, peer: NodeName | None) -> bool:
        """See `Library.is_connected`."""
        return peer is not None and _node_of(peer) in self._SyncObj__connectedNodes

    def retime(self, timers: RaftTimers) -> None:
        """See `Library.retime`; a follower's election timeout starts again."""
        self.conf.leaderFallbackTimeout = timers.fallback_ms / 1000
        self.conf.appendEntriesPeriod = timers.append_ms / 1000
        self.conf.connectionTimeout = _connection_timeout_s(timers)
        latest = self._now_s() + timers.append_ms / 1000
        self._SyncObj__newAppendEntriesTime = min(self._SyncObj__newAppendEntriesTime, latest)
        self.wait_for_leader()

    def is_election_due(self) -> bool:
        """See `Library.is_election_due`."""
        return self._now_s() > self._SyncObj__raftElectionDeadline

    def wait_for_leader(self) -> None:
        """See `Library.wait_for_leader`."""
        self._SyncObj__raftElectionDeadline = self._now_s() + self._owner.election_timeout_ms() / 1000

    def campaign(self) -> None:
        """See `Library.campaign`."""
        self._SyncObj__raftElectionDeadline = 0

    def is_heartbeat_due(self) -> bool:
        """See `Library.is_heartbeat_due`."""
        return self._now_s() > self._SyncObj__newAppendEntriesTime

    def heartbeats_sent(self) -> None:
        """See `Library.heartbeats_sent`."""
        self._SyncObj__newAppendEntriesTime = self._now_s() + self.conf.appendEntriesPeriod

    def is_second_over(self) -> bool:
        """See `Library.is_second_over`."""
        return bool(self._now_s() - self._SyncObj__startTime > self._SyncObj__numOneSecondDumps)

    def next_election_ms(self) -> int:
        """See `Library.next_election_ms`."""
        return int(self._SyncObj__raftElectionDeadline * 1000) + 1

    def next_heartbeat_ms(self) -> int:
        """See `Library.next_heartbeat_ms`."""
        return int(self._SyncObj__newAppendEntriesTime * 1000) + 1

    def majority_heard_ms(self) -> int | None:
        """See `Library.majority_heard_ms`."""
        answers = sorted(self._SyncObj__lastResponseTime.values(), reverse=True)
        # With the answers sorted, newest first, the one that completes the majority decides when to step down.
        return int(answers[(len(answers) + 1) // 2 - 1] * 1000) if answers else None

    # Called by the library, in place of its own methods.

    def _SyncObj__generateRaftTimeout(self) -> float:  # noqa: N802 (the library\'s name)
        return self._owner.election_timeout_ms() / 1000

    def _SyncObj__onBecomeLeader(self) -> None:  # noqa: N802 (the library\'s name)
        self._owner.begin_to_lead()
        SyncObj._SyncObj__onBecomeLeader(self)

    def _SyncObj__sendAppendEntries(self) -> None:  # noqa: N802 (the library\'s name)
        self._owner.send_heartbeats()

    def _SyncObj__applyLogEntries(self) -> bool:  # noqa: N802 (the library\'s name)
        return self._owner.apply_committed()

    def _checkCommandsToApply(self) -> None:  # noqa: N802 (the library\'s name)
        self._owner.take_waiting()

    def _SyncObj__tryLogCompaction(self) -> None:  # noqa: N802 (the library\'s name)
        self._owner.compact()

    def _SyncObj__doApplyCommand(self, *_: object) -> NoReturn:  # noqa: N802 (the library\'s name)
        raise AssertionError("entries are applied by Consensus.apply_committed")

    def _SyncObj__loadDumpFile(self, *_: object) -> NoReturn:  # noqa: N802 (the library\'s name)
        raise AssertionError("snapshots are loaded by RaftCore")


def _connection_timeout_s(timers: RaftTimers) -> float:
    return max(timers.silence_ms, timers.election_max_ms) / 1000
