"""One Raft core on a bench: a clock that is set by hand, peers that are played, a disk whose writes are let through."""

import random
from collections.abc import Callable
from typing import Any, Self

from haclusterd.adapters.raft.library import supported_library
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant
from haclusterd.ports.store import Applied, StoreEvent
from haclusterd.raft.core import RaftCore
from haclusterd.raft.frames import decode_frame, encode_frame
from haclusterd.raft.identity import create_identity
from haclusterd.raft.settings import RaftSettings, RaftTimers
from tests.simulation.store_world import CLUSTER, ListMachine, SimulatedDisk

Message = dict[str, Any]
N1, N2, N3, N4, N5 = (NodeName(f"n{number}") for number in range(1, 6))


class Bench:
    """`n1` of a cluster, with everybody else played by the test."""

    def __init__(self, voters: int = 3, **limits: int) -> None:
        self.disk = SimulatedDisk()
        create_identity(self.disk, CLUSTER, N1)
        names = (N1, N2, N3, N4, N5)[:voters]
        self.settings = RaftSettings(
            cluster=CLUSTER, node=N1, voters=names, timers=RaftTimers.derive(2000), **limits
        )
        self.now_ms = 1_000_000
        self.start()

    def start(self, *, is_deaf: bool = False) -> None:
        self.disk.is_locked = False
        self.sent: list[tuple[NodeName, Message]] = []
        self.jobs: list[tuple[Callable[[], object], Callable[[object], None]]] = []
        self.events: list[StoreEvent] = []
        self.failures: list[str] = []
        self.complaints: list[str] = []
        self.room = 1000
        self.machine = ListMachine()
        self.core = RaftCore(
            settings=self.settings,
            files=self.disk,
            machine=self.machine,
            clock=lambda: Instant(self.now_ms),
            fraction=random.Random(1).random,
            worker=self,
            make_library=supported_library(),
            send=self._send,
            deliver=self.events.append,
            room=lambda: self.room,
            fail=self.failures.append,
            complain=self.complaints.append,
        )
        self.core.open()
        assert self.sent == []
        for peer in self.settings.peers:
            self.core.peer_connected(peer)
            if not is_deaf:
                self.hear(peer, "recall", term=0, index=0, led_term=0, led_index=0)
        assert {message["type"] for _, message in self.take_sent()} <= {"recall", "digest"}

    def restart_deaf(self) -> Self:
        """Start again; the peers are linked and have not said yet what they remember."""
        self.core.stop()
        self.start(is_deaf=True)
        return self

    def lose_power(self) -> None:
        """Stop, forget what was not synced, start again."""
        self.core.stop()
        self.disk.put_back(self.disk.copy())
        self.start()

    def run(self, work: Callable[[], object], done: Callable[[object], None]) -> None:
        self.jobs.append((work, done))

    def let_disk_work(self) -> None:
        """Complete what was asked of the disk, and what follows from it."""
        while self.jobs:
            work, done = self.jobs.pop(0)
            done(work())

    def _send(self, peer: NodeName, frame: bytes) -> None:
        message = decode_frame(frame)
        assert message is not None
        self.sent.append((peer, message))

    def take_sent(self, kind: str | None = None) -> list[tuple[NodeName, Message]]:
        sent, self.sent = self.sent, []
        return [(peer, message) for peer, message in sent if kind is None or message["type"] == kind]

    def hear(self, peer: NodeName, kind: str, **fields: Any) -> None:
        """Let a peer say something."""
        assert self.core.receive(peer, encode_frame({"type": kind, **fields}))

    def hear_append(
        self,
        peer: NodeName,
        term: int,
        previous: tuple[int, int],
        entries: list[tuple[bytes, int, int]] | None = None,
        commit: int = 1,
    ) -> None:
        self.hear(
            peer,
            "append_entries",
            term=term,
            commit_index=commit,
            prevLogIdx=previous[0],
            prevLogTerm=previous[1],
            entries=entries or [],
        )

    def hear_acknowledgement(self, peer: NodeName, next_index: int, term: int | None = None) -> None:
        self.hear(
            peer,
            "next_node_idx",
            term=self.term if term is None else term,
            next_node_idx=next_index,
            success=True,
            refused_index=0,
        )

    def wait(self, span_ms: int) -> None:
        """Let time pass, ticking when due."""
        end = self.now_ms + span_ms
        while self.now_ms < end:
            self.now_ms = max(self.now_ms + 1, min(end, self.core.due()))
            self.core.tick()

    def campaign(self) -> None:
        """Run out the election timer and grant every pre-vote, up to the request for votes."""
        self.wait(self.settings.timers.election_max_ms + 1)
        asked = self.take_sent("request_pre_vote")
        for peer, message in asked:
            self.hear(peer, "response_pre_vote", term=self.term, asked_term=message["term"], granted=True)

    def lead(self) -> None:
        """Become leader, with the empty first entry of the term synced."""
        self.campaign()
        self.let_disk_work()
        for peer in self.settings.peers:
            self.hear(peer, "response_vote", term=self.term)
        assert self.core.status().is_leader
        self.let_disk_work()
        self.take_sent()

    @property
    def term(self) -> int:
        return self.core.status().term

    @property
    def applied(self) -> list[bytes]:
        return [event.outcome[0] for event in self.events if isinstance(event, Applied)]
