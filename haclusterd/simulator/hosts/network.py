"""The network between hosts: which directions are cut, how datagrams fare, and streams that behave like TCP.

Datagrams are delayed, lost, doubled and reordered. A stream is first in, first out; what is sent into a cut direction
waits, as TCP retransmits it, until the session ends. A session ends for both ends when a process dies on a running host
(FIN or RST, if the path is open); when a host loses power nobody is notified, and only silence ends it.

There may be several networks, numbered from 0 on as the addresses of a member are. A cut of a direction concerns all of
them, a cut of a link one. A heartbeat goes over each; a session is made over the first that is open, and made again
over another one when its own is silent (`adapters.raft.transport`).
"""

import random
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from haclusterd.model.ids import NodeName
from haclusterd.model.records import dataclass, field
from haclusterd.simulator.hosts.sealed import Sealed
from haclusterd.simulator.hosts.world import MS, Life, World, between


@dataclass(slots=True)
class NetworkConditions:
    """How the network treats what is sent where nothing is cut: delays, loss, repetition, reordering."""

    delay_us: tuple[int, int] = (100, 600)
    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    """Share of datagrams that are late by up to `late_us`."""
    late_us: int = 50 * MS


class Network:
    """Cuts, and the conditions where nothing is cut; every part of the network asks here whether something passes."""

    def __init__(self, world: World, links: int = 1) -> None:
        self.world = world
        self.links = links
        """How many networks connect the hosts."""
        self.conditions = NetworkConditions()
        self.chance: random.Random = world.chance("network")
        self._cut: set[tuple[NodeName, NodeName]] = set()
        self._deaf: set[tuple[NodeName, NodeName]] = set()
        self._filtered: set[tuple[NodeName, NodeName]] = set()
        """Directions in which no segment of a stream passes, while datagrams do."""
        self._extra_us: dict[tuple[NodeName, NodeName], int] = {}
        self._cut_links: set[tuple[NodeName, NodeName, int]] = set()
        """Directions of one network in which nothing passes."""
        self._slow_links_us: dict[int, int] = {}
        """How much longer everything travels on one network."""
        self._slowed_us: dict[int, int] = {}
        """When that changed last."""
        self._changed_us: dict[tuple[NodeName, NodeName], int] = {}
        self._link_changed_us: dict[tuple[NodeName, NodeName, int], int] = {}
        self._conditions_us = 0
        self._watchers: list[Callable[[], None]] = []

    def when_changed(self, call: Callable[[], None]) -> None:
        """Call `call` after each change of the cuts."""
        self._watchers.append(call)

    def passes(self, source: NodeName, target: NodeName, link: int = 0) -> bool:
        """Tell whether that direction of a network is open."""
        return (source, target) not in self._cut and (source, target, link) not in self._cut_links

    def cut(self, source: NodeName, target: NodeName) -> None:
        """Cut one direction."""
        self._cut.add((source, target))
        self._changed(source, target)

    def restore(self, source: NodeName, target: NodeName) -> None:
        """Open one direction again."""
        self._cut.discard((source, target))
        self._changed(source, target)

    def cut_link(self, source: NodeName, target: NodeName, link: int) -> None:
        """Cut one direction on one network."""
        self._cut_links.add((source, target, link))
        self._link_changed(source, target, link)

    def restore_link(self, source: NodeName, target: NodeName, link: int) -> None:
        """Open it again."""
        self._cut_links.discard((source, target, link))
        self._link_changed(source, target, link)

    def slow_link(self, link: int, extra_ms: int) -> None:
        """Let everything on one network travel longer; 0 ms: as usual again."""
        self.world.record(f"link {link} takes {extra_ms} ms more")
        self._slow_links_us[link] = extra_ms * MS
        self._slowed_us[link] = self.world.now_us

    def open_link(self, one: NodeName, other: NodeName, besides: int | None = None) -> int | None:
        """Return the first network on which streams pass both ways, leaving one out; None: there is none."""
        for link in range(self.links):
            is_open = self.passes_streams(one, other, link) and self.passes_streams(other, one, link)
            if is_open and link != besides:
                return link
        return None

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

    def passes_streams(self, source: NodeName, target: NodeName, link: int = 0) -> bool:
        """Tell whether segments of streams of that direction arrive."""
        return self.passes(source, target, link) and (source, target) not in self._filtered

    def delay_datagrams(self, source: NodeName, target: NodeName, extra_ms: int) -> None:
        """Let the datagrams of one direction travel longer."""
        self._extra_us[(source, target)] = extra_ms * MS
        self._changed(source, target)

    def extra_us(self, source: NodeName, target: NodeName) -> int:
        """Return how much longer datagrams of that direction travel."""
        return self._extra_us.get((source, target), 0)

    def passes_datagrams(self, source: NodeName, target: NodeName, link: int = 0) -> bool:
        """Tell whether datagrams of that direction arrive."""
        return self.passes(source, target, link) and (source, target) not in self._deaf

    def restore_all(self) -> None:
        """Open every direction."""
        self._extra_us.clear()
        for link in sorted(link for link, extra_us in self._slow_links_us.items() if extra_us):
            self.slow_link(link, 0)
        for source, target, link in sorted(self._cut_links):
            self.restore_link(source, target, link)
        for source, target in sorted(self._deaf):
            self.pass_datagrams(source, target)
        for source, target in sorted(self._filtered):
            self.pass_streams(source, target)
        for source, target in sorted(self._cut):
            self.restore(source, target)

    def delay_us(self, link: int = 0) -> int:
        """Draw how long something travels."""
        return between(self.chance, self.conditions.delay_us) + self._slow_links_us.get(link, 0)

    def set_conditions(self, conditions: NetworkConditions) -> None:
        """Treat what is sent in another way from now on."""
        self.world.record(f"conditions {conditions}")
        self.conditions = conditions
        self._conditions_us = self.world.now_us

    def calm_us(self, one: NodeName, other: NodeName) -> int:
        """Return for how long a network has been open both ways in good conditions; negative when none is."""
        is_bad = self.conditions.loss or self.conditions.reordering or self.conditions.delay_us[1] > 5 * MS
        if is_bad or self.extra_us(one, other) or self.extra_us(other, one):
            return -1
        return max(self._calm_link_us(one, other, link) for link in range(self.links))

    def _calm_link_us(self, one: NodeName, other: NodeName, link: int) -> int:
        ways = ((one, other), (other, one))
        is_open = all(self.passes_datagrams(*way, link) and self.passes_streams(*way, link) for way in ways)
        if not is_open or self._slow_links_us.get(link, 0):
            return -1
        changed = [self._changed_us.get(way, 0) for way in ways]
        changed += [self._link_changed_us.get((*way, link), 0) for way in ways]
        return self.world.now_us - max(*changed, self._slowed_us.get(link, 0), self._conditions_us)

    def _link_changed(self, source: NodeName, target: NodeName, link: int) -> None:
        state = "open" if (source, target, link) not in self._cut_links else "cut"
        self.world.record(f"path {source} {target} of link {link} {state}")
        self._link_changed_us[(source, target, link)] = self.world.now_us
        for call in self._watchers:
            call()

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

    def send(self, source: NodeName, target: NodeName, datagram: Sealed, link: int = 0) -> None:
        """Send on one network; it arrives never, once or twice."""
        network, conditions, chance = self._network, self._network.conditions, self._network.chance
        copies = 2 if conditions.duplication and chance.random() < conditions.duplication else 1
        for _ in range(copies):
            if conditions.loss and chance.random() < conditions.loss:
                continue
            delay_us = network.delay_us(link) + network.extra_us(source, target)
            if conditions.reordering and chance.random() < conditions.reordering:
                delay_us += chance.randint(0, conditions.late_us)
            network.world.after(delay_us, lambda: self._arrive(source, target, datagram, link))

    def _arrive(self, source: NodeName, target: NodeName, datagram: Sealed, link: int) -> None:
        listener = self._listeners.get(target)
        if listener is None or not self._network.passes_datagrams(source, target, link):
            return
        life, received = listener
        life.do(lambda: received(datagram))


class Greeting(Protocol):
    """What one end of a session asks before it talks (`adapters.raft.transport`)."""

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

    def connected(self, peer: NodeName) -> None:
        """Report a session."""
        self.end.connected(peer)


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

    def __init__(self, streams: "Streams", ends: dict[NodeName, _Endpoint], link: int) -> None:
        self.streams = streams
        self.ends = ends
        self.link = link
        """The network that it was made over."""
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

    def send_beside(self, source: NodeName, data: bytes, chance: random.Random) -> None:
        """Send what may be lost, and never delays what is sent otherwise."""
        direction = self.directions[source]
        if direction.queue or not self._passes(direction):
            return
        world = self.streams.network.world
        travels_us = between(chance, self.streams.network.conditions.delay_us)
        target = self.ends[direction.target]
        world.after(travels_us, lambda: target.life.do(lambda: self._hand_over(direction, data)))

    def move(self, direction: _Direction) -> None:
        """Let the first message travel, when the direction is open."""
        network = self.streams.network
        if direction.is_moving or not direction.queue or not self._passes(direction):
            return
        direction.is_moving = True
        arrives_us = max(network.world.now_us + network.delay_us(self.link), direction.arrives_at_us)
        direction.arrives_at_us = arrives_us
        network.world.at(arrives_us, lambda: self._arrive(direction))

    def _arrive(self, direction: _Direction) -> None:
        direction.is_moving = False
        if not direction.queue or not self._passes(direction):
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
        return self._passes(direction) and self.ends[direction.source].life.is_running

    def _passes(self, direction: _Direction) -> bool:
        return self.streams.network.passes_streams(direction.source, direction.target, self.link)

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
        if network.passes_streams(node, peer, self.link):
            network.world.after(network.delay_us(self.link), lambda: self.close(peer))

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

    def send_beside(self, source: NodeName, target: NodeName, data: bytes, chance: random.Random) -> None:
        """Send on the session if nothing waits there, or lose it; how long it travels is drawn from `chance`."""
        session = self._sessions.get((source, target))
        if session is not None:
            session.send_beside(source, data, chance)

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
        if not all(endpoint.life.is_running for endpoint in ends.values()):
            return
        first, second = ends[one].end.node, ends[other].end.node
        if first == second:
            return
        session = self._sessions.get((one, second))
        is_whole = session is not None and (other, first) in self._sessions
        if session is not None and is_whole and not self._is_doubtful(session):
            return
        # A way that has become silent is left for another one, and for nothing else.
        link = self.network.open_link(one, other, session.link if session is not None and is_whole else None)
        if link is None:
            return
        if not self._is_welcome(ends[one].end, ends[other].end) or not self._is_welcome(ends[other].end, ends[one].end):
            return
        for name, peer in ((one, second), (other, first)):
            stale = self._sessions.get((name, peer))
            if stale is not None:
                stale.close(name)
        session = _Session(self, ends, link)
        self._sessions[(one, second)] = self._sessions[(other, first)] = session
        for name, peer in ((one, second), (other, first)):
            endpoint = ends[name]
            endpoint.life.after(0, partial(endpoint.connected, peer))

    def _is_welcome(self, host: StreamEnd, guest: StreamEnd) -> bool:
        """Ask one end whether it talks to the other one, and let that hear why not."""
        objection = host.objection(guest.node, guest.boot_id)
        if objection:
            guest.kept_out(host.node, objection)
        return not objection

    def _is_doubtful(self, session: _Session) -> bool:
        """Tell whether the end that dials has heard nothing for so long that another network is worth a try."""
        dialler = max(session.directions)
        incoming = next(each for each in session.directions.values() if each.target == dialler)
        silent_us = self.network.world.now_us - incoming.flowed_at_us
        return self.network.links > 1 and silent_us >= self._silence_us // 2
