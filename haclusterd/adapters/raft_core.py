"""One Raft node without threads, sockets or clocks: everything it touches is injected.

The real adapter drives it from a thread with TLS sockets and real files, the simulator on a virtual clock; both run this
class. It joins the guarded library object (store_pysyncobj.py), journal, snapshot and state machine, and holds the
barrier: nothing that reveals an unsynced entry, term or vote leaves before the sync (raft.md, guards 1-10 and 14).

It must never block, start a thread, read a clock or draw a random number by itself.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from haclusterd.adapters.raft_settings import RaftSettings
from haclusterd.model.ids import NodeName, Term
from haclusterd.model.instants import Instant
from haclusterd.ports.files import Files
from haclusterd.ports.store import StateMachine, StoreEvent


class Worker(Protocol):
    """Runs blocking work beside the Raft thread. At most one sync and one snapshot job are under way at a time."""

    def run(self, work: Callable[[], object], done: Callable[[object], None]) -> None:
        """Run `work` elsewhere and later call `done(result)` on the Raft thread, never inside this call.

        `work` does not raise. The simulator runs `work` and `done` together at the completion event: what a crash
        prevents before it was never synced.
        """
        ...


@dataclass(frozen=True, slots=True)
class RaftStatus:
    """What the core would tell a person or a test; no decision may rest on it (guard 11)."""

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

    Call `open` once, then `tick` whenever `due` has come (and at least every 100 ms), `receive` for every frame. All calls
    come from one thread. After `fail` was called the core is dead: every call returns at once, nothing is sent any more.
    """

    def __init__(
        self,
        *,
        settings: RaftSettings,
        files: Files,
        machine: StateMachine,
        clock: Callable[[], Instant],
        chance: random.Random,
        worker: Worker,
        send: Callable[[NodeName, bytes], None],
        deliver: Callable[[StoreEvent], None],
        room: Callable[[], int],
        fail: Callable[[str], None],
    ) -> None:
        """Keep what is injected; nothing is read before `open`.

        `send` hands one frame to the link of a connected peer, in order. `room` says how many entries may be
        delivered now. `fail` ends the process (exit code 75) with a reason.
        """
        raise NotImplementedError

    def open(self) -> None:
        """Lock and load the data; raise StoreDamaged or StoreRefused. Calls `restore` and `appended` on the machine."""
        raise NotImplementedError

    def tick(self) -> None:
        """Do what is due now: elections, heartbeats, commits, applying, snapshots."""
        raise NotImplementedError

    def due(self) -> Instant:
        """Return the earliest instant at which `tick` would do something by itself."""
        raise NotImplementedError

    def receive(self, peer: NodeName, frame: bytes) -> bool:
        """Handle one frame of a connected peer; False when it is not a valid message (close that link)."""
        raise NotImplementedError

    def peer_connected(self, peer: NodeName) -> None:
        """A link to `peer` is up; frames to and from it are in order until `peer_disconnected`."""
        raise NotImplementedError

    def peer_disconnected(self, peer: NodeName) -> None:
        """The link to `peer` is gone, with whatever was under way on it."""
        raise NotImplementedError

    def propose(self, entry: bytes) -> bool:
        """Append `entry` as leader, or pass it to the leader; False when too much waits."""
        raise NotImplementedError

    def transfer_leadership(self, to: NodeName) -> None:
        """As leader, ask `to` to campaign now, if it has the whole log."""
        raise NotImplementedError

    def status(self) -> RaftStatus:
        """Describe the node."""
        raise NotImplementedError

    def stop(self) -> None:
        """End: sync what is unsynced and release the files."""
        raise NotImplementedError
