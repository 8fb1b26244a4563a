"""One node's store on a virtual clock: the production core and queue bridge, a `Life` for each of its two threads.

What a real Raft thread does between wake-ups is here an event of its own; how long the other side takes to notice is
drawn, so that the two threads interleave in every order over the seeds.
"""

import logging
import random
from collections.abc import Callable

from haclusterd.adapters.network.peer_messages import RaftPeerMessages
from haclusterd.adapters.raft.library import supported_library
from haclusterd.model.ids import NodeName
from haclusterd.ports.pacer import Pacer
from haclusterd.ports.store import StateMachine
from haclusterd.raft.core import RaftCore
from haclusterd.raft.queues import MainSide, QueuePair, RaftSide
from haclusterd.raft.settings import RaftSettings
from haclusterd.simulator.hosts.disks import SimulatedFiles, SyncWorker
from haclusterd.simulator.hosts.hosts import Boot, Host
from haclusterd.simulator.hosts.network import Greeting, Streams
from haclusterd.simulator.hosts.world import MS, Event, Life, between

_log = logging.getLogger(__name__)

WAKE_US = (5, 200)
"""How long a thread takes to notice that it was woken."""
LONGEST_WAIT_US = 100 * MS


class SimulatedRaft:
    """The two sides of one process's store; `main` is the `Store`."""

    def __init__(
        self,
        *,
        host: Host,
        boot: Boot,
        main_life: Life,
        raft_life: Life,
        process: Life,
        streams: Streams,
        settings: RaftSettings,
        machine: StateMachine,
        chance: random.Random,
        pacer: Pacer,
        loading_us: int,
        fail: Callable[[str], None],
        greeting: Greeting,
        peer_messages: RaftPeerMessages,
        messages_chance: random.Random,
    ) -> None:
        """`messages_chance`: of what `peer_messages` sends, apart from what else is drawn."""
        self._greeting = greeting
        self._peer_messages = peer_messages
        self._messages_chance = messages_chance
        self._host = host
        self._boot = boot
        self._main_life = main_life
        self._raft_life = raft_life
        self._process = process
        self._streams = streams
        self._chance = chance
        self._loading_us = loading_us
        self._timer: Event | None = None
        self._armed_us = 0
        self._is_open = False
        self._pumped_us = 0
        self._disk_worker = SyncWorker(host.disk, raft_life)
        self._pair = QueuePair(wake_raft=self._wake_raft, wake_main=self._wake_main)
        self.core = RaftCore(
            settings=settings,
            files=SimulatedFiles(host.disk, process),
            machine=machine,
            clock=boot.clock.now,
            fraction=chance.random,
            worker=self,
            make_library=supported_library(),
            send=self._send,
            deliver=self._pair.deliver,
            room=self._pair.room,
            fail=fail,
            complain=_log.error,
        )
        self._side = RaftSide(self._pair, self.core, alive=pacer.stamp_raft, main_silence_ms=pacer.main_silence_ms)
        self.main = MainSide(self._pair, begin=self._begin, end=self._end)

    # The transport's end

    @property
    def node(self) -> NodeName:
        """See `StreamEnd.node`."""
        return self._host.node

    @property
    def boot_id(self) -> str:
        """See `StreamEnd.boot_id`."""
        return self._boot.boot_id

    def objection(self, peer: NodeName, boot_id: str) -> str:
        """See `Greeting.objection`."""
        return self._greeting.objection(peer, boot_id)

    def kept_out(self, peer: NodeName, why: str) -> None:
        """See `Greeting.kept_out`."""
        self._greeting.kept_out(peer, why)

    def connected(self, peer: NodeName) -> None:
        """See `StreamEnd.connected`."""
        self.core.peer_connected(peer)
        self._peer_messages.connected(peer)
        self._arm()

    def disconnected(self, peer: NodeName) -> None:
        """See `StreamEnd.disconnected`."""
        self._peer_messages.disconnected(peer)
        self.core.peer_disconnected(peer)
        self._arm()

    def received(self, peer: NodeName, data: bytes) -> None:
        """See `StreamEnd.received`."""
        if self._peer_messages.take(peer, data):
            return
        if not self.core.receive(peer, data):
            self._streams.close(self._host.name, peer)
        self._arm()

    def send_if_idle(self, peer: NodeName, frame: bytes) -> None:
        """See `Links.send_if_idle`."""
        self._streams.send_beside(self._host.name, peer, frame, self._messages_chance)

    # Threads

    def _post(self, call: Callable[[NodeName, bytes], None], to: NodeName, frame: bytes) -> None:
        self._raft_life.after(between(self._messages_chance, WAKE_US), lambda: call(to, frame))

    def run(self, work: Callable[[], object], done: Callable[[object], None]) -> None:
        """See `raft.worker.Worker.run`."""

        def finished(result: object) -> None:
            done(result)
            self._arm()

        self._disk_worker.run(work, finished)

    def _begin(self) -> None:
        """Open at once, so that a refusal is an exception, but let the time of loading pass before anything is said."""
        self.core.open()
        self._raft_life.after(self._loading_us, self._loaded)

    def _loaded(self) -> None:
        self._is_open = True
        self._streams.listen(self._host.name, self._raft_life, self, boot=self._boot.life)
        self._peer_messages.attach(self._post, self)
        self._wake_raft()

    def _end(self) -> None:
        if self._is_open:
            self._is_open = False
            self._peer_messages.detach()
            self.core.stop()

    def _wake_raft(self) -> None:
        self._raft_life.after(between(self._chance, WAKE_US), self._pump)

    def _wake_main(self) -> None:
        self._main_life.after(between(self._chance, WAKE_US), self.main.pump)

    def _pump(self) -> None:
        if not self._is_open:
            return
        self._pumped_us = self._host.world.now_us
        self._side.pump()
        self._arm()

    def _arm(self) -> None:
        """Have the core ticked when it wants to; it settles by itself after each call."""
        if not self._is_open:
            return
        due_us = min(self._boot.clock.virtual_us(self.core.due()), self._pumped_us + LONGEST_WAIT_US)
        due_us = max(due_us, self._host.world.now_us + MS // 2)
        if self._timer is not None:
            if self._timer.call is not None and self._armed_us == due_us:
                return
            self._timer.cancel()
        self._armed_us = due_us
        self._timer = self._raft_life.at(due_us, self._pump)

    def _send(self, peer: NodeName, frame: bytes) -> None:
        self._streams.send(self._host.name, peer, frame)
