"""The network between hosts: which directions are cut, how datagrams fare, and streams that behave like TCP.

Datagrams are delayed, lost, doubled and reordered. A stream is first in, first out; what is sent into a cut direction
waits, as TCP retransmits it, until the session ends. A session ends for both ends when a process dies on a running host
(FIN or RST, if the path is open); when a host loses power nobody is told, and only silence ends it.
"""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from haclusterd.model.ids import NodeName
from haclusterd.simulator.sealed import Sealed
from haclusterd.simulator.world import MS, Life, World


@dataclass(slots=True)
class Weather:
    """How the network treats what is sent."""

    delay_us: tuple[int, int] = (100, 600)
    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    """Share of datagrams that are late by up to `late_us`."""
    late_us: int = 50 * MS


class Network:
    """Cuts and weather; every part of the network asks here whether something passes."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.weather = Weather()
        self.chance: random.Random = world.chance("network")
        self._cut: set[tuple[NodeName, NodeName]] = set()
        self._deaf: set[tuple[NodeName, NodeName]] = set()
        self._filtered: set[tuple[NodeName, NodeName]] = set()
        """Directions in which no segment of a stream passes, while datagrams do."""
        self._extra_us: dict[tuple[NodeName, NodeName], int] = {}
        self._changed_us: dict[tuple[NodeName, NodeName], int] = {}
        self._weather_us = 0
        self._watchers: list[Callable[[], None]] = []

    def when_changed(self, call: Callable[[], None]) -> None:
        """Call `call` after each change of the cuts."""
        self._watchers.append(call)

    def passes(self, source: NodeName, target: NodeName) -> bool:
        """Tell whether that direction is open."""
        return (source, target) not in self._cut

    def cut(self, source: NodeName, target: NodeName) -> None:
        """Cut one direction."""
        self._cut.add((source, target))
        self._changed(source, target)

    def mend(self, source: NodeName, target: NodeName) -> None:
        """Open one direction again."""
        self._cut.discard((source, target))
        self._changed(source, target)

    def drop_datagrams(self, source: NodeName, target: NodeName) -> None:
        """Drop datagrams of one direction, as a filter or a full buffer does; streams pass."""
        self._deaf.add((source, target))
        self._changed(source, target)

    def pass_datagrams(self, source: NodeName, target: NodeName) -> None:
        """Let them pass again."""
        self._deaf.discard((source, target))
        self._changed(source, target)

    def drop_streams(self, source: NodeName, target: NodeName) -> None:
        """Drop the segments of streams of one direction, as a filter for TCP does; datagrams pass.

        Sessions do not end by that, but by the silence that follows, and none is made while a direction is dropped.
        """
        self._filtered.add((source, target))
        self._changed(source, target)

    def pass_streams(self, source: NodeName, target: NodeName) -> None:
        """Let them pass again."""
        self._filtered.discard((source, target))
        self._changed(source, target)

    def passes_streams(self, source: NodeName, target: NodeName) -> bool:
        """Tell whether segments of streams of that direction arrive."""
        return self.passes(source, target) and (source, target) not in self._filtered

    def delay_datagrams(self, source: NodeName, target: NodeName, extra_ms: int) -> None:
        """Let the datagrams of one direction travel longer."""
        self._extra_us[(source, target)] = extra_ms * MS
        self._changed(source, target)

    def extra_us(self, source: NodeName, target: NodeName) -> int:
        """Return how much longer datagrams of that direction travel."""
        return self._extra_us.get((source, target), 0)

    def passes_datagrams(self, source: NodeName, target: NodeName) -> bool:
        """Tell whether datagrams of that direction arrive."""
        return self.passes(source, target) and (source, target) not in self._deaf

    def mend_all(self) -> None:
        """Open every direction."""
        self._extra_us.clear()
        for source, target in sorted(self._deaf):
            self.pass_datagrams(source, target)
        for source, target in sorted(self._filtered):
            self.pass_streams(source, target)
        for source, target in sorted(self._cut):
            self.mend(source, target)

    def delay_us(self) -> int:
        """Draw how long something travels."""
        return self.chance.randint(*self.weather.delay_us)

    def set_weather(self, weather: Weather) -> None:
        """Treat what is sent in another way from now on."""
        self.world.record(f"weather {weather}")
        self.weather = weather
        self._weather_us = self.world.now_us

    def calm_us(self, one: NodeName, other: NodeName) -> int:
        """Return for how long both directions have been open in good weather; negative when they are not."""
        is_bad = self.weather.loss or self.weather.reordering or self.weather.delay_us[1] > 5 * MS
        is_open = all(
            self.passes_datagrams(*way) and self.passes_streams(*way) for way in ((one, other), (other, one))
        )
        if is_bad or not is_open or self.extra_us(one, other) or self.extra_us(other, one):
            return -1
        changed = (self._changed_us.get((one, other), 0), self._changed_us.get((other, one), 0), self._weather_us)
        return self.world.now_us - max(changed)

    def _changed(self, source: NodeName, target: NodeName) -> None:
        what = {(True, True): "open", (True, False): "open to datagrams", (False, True): "open to streams"}
        state = what.get((self.passes_datagrams(source, target), self.passes_streams(source, target)), "cut")
        self.world.record(f"path {source} {target} {state}")
        self._changed_us[(source, target)] = self.world.now_us
        for call in self._watchers:
            call()


class Datagrams:
    """UDP between the pacers. A datagram to a host where nobody listens is gone."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._listeners: dict[NodeName, tuple[Life, Callable[[Sealed], None]]] = {}

    def listen(self, node: NodeName, life: Life, received: Callable[[Sealed], None]) -> None:
        """Deliver to `received(datagram)` until the life ends or somebody else listens."""
        self._listeners[node] = (life, received)

    def send(self, source: NodeName, target: NodeName, datagram: Sealed) -> None:
        """Send; it arrives never, once or twice."""
        network, weather, chance = self._network, self._network.weather, self._network.chance
        copies = 2 if weather.duplication and chance.random() < weather.duplication else 1
        for _ in range(copies):
            if weather.loss and chance.random() < weather.loss:
                continue
            delay_us = network.delay_us() + network.extra_us(source, target)
            if weather.reordering and chance.random() < weather.reordering:
                delay_us += chance.randint(0, weather.late_us)
            network.world.after(delay_us, lambda: self._arrive(source, target, datagram))

    def _arrive(self, source: NodeName, target: NodeName, datagram: Sealed) -> None:
        listener = self._listeners.get(target)
        if listener is None or not self._network.passes_datagrams(source, target):
            return
        life, received = listener
        life.do(lambda: received(datagram))


class Greeting(Protocol):
    """What one end of a session asks before it talks (`adapters.raft_transport`)."""

    def objection(self, peer: NodeName, boot_id: str) -> str:
        """Return why that boot of a peer is not talked to now; empty: it may be."""
        ...

    def kept_out(self, peer: NodeName, why: str) -> None:
        """A peer does not talk to this end."""
        ...


class StreamEnd(Greeting, Protocol):
    """What a process does with its sessions; every call is an event of the process."""

    @property
    def node(self) -> NodeName:
        """Return which node this end says it is; two machines may say the same."""
        ...

    @property
    def boot_id(self) -> str:
        """Return in which boot it runs."""
        ...

    def connected(self, peer: NodeName) -> None:
        """A session to `peer` is up."""
        ...

    def disconnected(self, peer: NodeName) -> None:
        """The session to `peer` is gone, with what was under way."""
        ...

    def received(self, peer: NodeName, data: bytes) -> None:
        """One message came from `peer`."""
        ...


@dataclass(slots=True)
class _Endpoint:
    life: Life
    end: StreamEnd


@dataclass(slots=True)
class _Direction:
    """One half of a session."""

    source: NodeName
    target: NodeName
    queue: deque[bytes] = field(default_factory=deque)
    """Sent, not yet arrived; the first one's arrival is under way when `is_moving`."""
    is_moving: bool = False
    arrives_at_us: int = 0
    flowed_at_us: int = 0
    is_open: bool = True
    """The target has not closed its end."""


class _Session:
    """One connection between two processes."""

    def __init__(self, streams: "Streams", ends: dict[NodeName, _Endpoint]) -> None:
        self.streams = streams
        self.ends = ends
        one, other = ends
        now = streams.network.world.now_us
        self.directions = {
            one: _Direction(one, other, flowed_at_us=now),
            other: _Direction(other, one, flowed_at_us=now),
        }

    def send(self, source: NodeName, data: bytes) -> None:
        direction = self.directions[source]
        direction.queue.append(data)
        self.move(direction)

    def move(self, direction: _Direction) -> None:
        """Let the first message travel, when the direction is open."""
        network = self.streams.network
        if direction.is_moving or not direction.queue or not network.passes_streams(direction.source, direction.target):
            return
        direction.is_moving = True
        arrives_us = max(network.world.now_us + network.delay_us(), direction.arrives_at_us)
        direction.arrives_at_us = arrives_us
        network.world.at(arrives_us, lambda: self._arrive(direction))

    def _arrive(self, direction: _Direction) -> None:
        direction.is_moving = False
        if not direction.queue or not self.streams.network.passes_streams(direction.source, direction.target):
            return
        data = direction.queue.popleft()
        target = self.ends[direction.target]
        if direction.is_open:
            target.life.do(lambda: self._hand_over(direction, data))
        self.move(direction)

    def _hand_over(self, direction: _Direction, data: bytes) -> None:
        if direction.is_open:
            self.ends[direction.target].end.received(self.ends[direction.source].end.node, data)

    def flows(self, direction: _Direction) -> bool:
        """Tell whether pings pass: the sender runs and the direction is open."""
        passes = self.streams.network.passes_streams(direction.source, direction.target)
        return passes and self.ends[direction.source].life.is_running

    def close(self, node: NodeName) -> None:
        """Close one end; the other end hears of it when the path is open."""
        incoming = self._incoming(node)
        if not incoming.is_open:
            return
        incoming.is_open = False
        incoming.queue.clear()
        endpoint, peer = self.ends[node], incoming.source
        name = self.ends[peer].end.node
        self.streams.forget(node, name, self)
        endpoint.life.after(0, lambda: endpoint.end.disconnected(name))
        network = self.streams.network
        if network.passes_streams(node, peer):
            network.world.after(network.delay_us(), lambda: self.close(peer))

    def _incoming(self, node: NodeName) -> _Direction:
        return next(direction for direction in self.directions.values() if direction.target == node)


class Streams:
    """TCP among the Raft transports: at most one session of each pair, made again when it is gone."""

    def __init__(self, network: Network, *, silence_ms: int, retry_ms: int = 100) -> None:
        self.network = network
        self._silence_us = silence_ms * MS
        self._retry_us = retry_ms * MS
        self._endpoints: dict[NodeName, _Endpoint] = {}
        self._sessions: dict[tuple[NodeName, NodeName], _Session] = {}
        """By (machine, the node that its peer says it is): each end of a session has its own entry."""
        network.when_changed(self._resume_moves)
        network.world.after(self._retry_us, self._look_after)

    def listen(self, node: NodeName, life: Life, end: StreamEnd, *, boot: Life) -> None:
        """Take part until the life ends. `boot` is the host's: when it ended first, nobody sends a FIN."""
        endpoint = _Endpoint(life, end)
        self._drop_all(node)
        self._endpoints[node] = endpoint
        life.at_end(lambda: self._ended(node, endpoint, is_host_alive=boot.is_alive))

    def send(self, source: NodeName, target: NodeName, data: bytes) -> bool:
        """Send on the session; False when there is none."""
        session = self._sessions.get((source, target))
        if session is None:
            return False
        session.send(source, data)
        return True

    def has_session(self, machine: NodeName) -> bool:
        """Tell whether anybody talks to a machine."""
        return any(name == machine for name, _ in self._sessions)

    def close(self, node: NodeName, peer: NodeName) -> None:
        """Close a session from one end."""
        session = self._sessions.get((node, peer))
        if session is not None:
            session.close(node)

    def forget(self, node: NodeName, peer: NodeName, session: _Session) -> None:
        """Take one end of a session out of the books."""
        if self._sessions.get((node, peer)) is session:
            del self._sessions[(node, peer)]

    def _ended(self, node: NodeName, endpoint: _Endpoint, *, is_host_alive: bool) -> None:
        if self._endpoints.get(node) is not endpoint:
            return
        del self._endpoints[node]
        for (name, _), session in list(self._sessions.items()):
            if name == node and is_host_alive:
                session.close(node)

    def _drop_all(self, node: NodeName) -> None:
        """A host that is back answers what it does not know with RST."""
        for session in [session for (name, _), session in self._sessions.items() if name == node]:
            session.close(node)

    def _resume_moves(self) -> None:
        for session in self._distinct():
            for direction in session.directions.values():
                session.move(direction)

    def _distinct(self) -> list[_Session]:
        return list({id(session): session for session in self._sessions.values()}.values())

    def _look_after(self) -> None:
        now = self.network.world.now_us
        for session in self._distinct():
            for direction in session.directions.values():
                if session.flows(direction):
                    direction.flowed_at_us = now
                elif now - direction.flowed_at_us >= self._silence_us:
                    self._close_if_able(session, direction.target)
        names = sorted(self._endpoints)
        for place, one in enumerate(names):
            for other in names[place + 1 :]:
                self._connect(one, other)
        self.network.world.after(self._retry_us, self._look_after)

    def _close_if_able(self, session: _Session, node: NodeName) -> None:
        if session.ends[node].life.is_running:
            session.close(node)

    def _connect(self, one: NodeName, other: NodeName) -> None:
        ends = {name: self._endpoints[name] for name in (one, other)}
        is_open = self.network.passes_streams(one, other) and self.network.passes_streams(other, one)
        if not is_open or not all(endpoint.life.is_running for endpoint in ends.values()):
            return
        first, second = ends[one].end.node, ends[other].end.node
        if first == second or ((one, second) in self._sessions and (other, first) in self._sessions):
            return
        if not self._is_welcome(ends[one].end, ends[other].end) or not self._is_welcome(ends[other].end, ends[one].end):
            return
        for name, peer in ((one, second), (other, first)):
            stale = self._sessions.get((name, peer))
            if stale is not None:
                stale.close(name)
        session = _Session(self, ends)
        self._sessions[(one, second)] = self._sessions[(other, first)] = session
        for name, peer in ((one, second), (other, first)):
            endpoint = ends[name]
            endpoint.life.after(0, lambda endpoint=endpoint, peer=peer: endpoint.end.connected(peer))  # type: ignore[misc]

    def _is_welcome(self, host: StreamEnd, guest: StreamEnd) -> bool:
        """Ask one end whether it talks to the other one, and let that hear why not."""
        objection = host.objection(guest.node, guest.boot_id)
        if objection:
            guest.kept_out(host.node, objection)
        return not objection
