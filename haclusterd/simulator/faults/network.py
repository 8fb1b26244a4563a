"""Faults of the network: cuts of every kind, and datagrams that are lost, late, repeated or reordered."""

import random
from collections.abc import Iterable, Sequence

from haclusterd.model.ids import NodeName
from haclusterd.simulator.faults.base import Drawn, End, Kind
from haclusterd.simulator.hosts.network import NetworkConditions
from haclusterd.simulator.hosts.world import MS
from haclusterd.simulator.scenario import Cluster

Nodes = Sequence[NodeName]
Chance = random.Random
Fault = Drawn[Cluster]
Direction = tuple[NodeName, NodeName]
LASTS_MS = (100, 15_000)


def _cutting(text: str, directions: Iterable[Direction], lasts_ms: int) -> Fault:
    cut = tuple(directions)

    def begin(cluster: Cluster) -> End:
        return _cut(cluster, cut)

    return Drawn(text, begin, lasts_ms)


def _cut(cluster: Cluster, directions: Sequence[Direction]) -> End:
    for source, target in directions:
        cluster.network.cut(source, target)

    def end() -> None:
        for source, target in directions:
            cluster.network.restore(source, target)

    return end


def _between(some: Iterable[NodeName], others: Sequence[NodeName]) -> list[Direction]:
    return [direction for one in some for other in others for direction in ((one, other), (other, one))]


def cut_pair(chance: Chance, nodes: Nodes) -> Fault:
    """Two nodes do not reach each other."""
    one, other = chance.sample(nodes, 2)
    return _cutting(f"{one} and {other} are cut", [(one, other), (other, one)], chance.randint(*LASTS_MS))


def cut_one_way(chance: Chance, nodes: Nodes) -> Fault:
    """One node does not reach another."""
    one, other = chance.sample(nodes, 2)
    return _cutting(f"nothing of {one} reaches {other}", [(one, other)], chance.randint(*LASTS_MS))


def isolate(chance: Chance, nodes: Nodes) -> Fault:
    """A node reaches nobody."""
    node = chance.choice(nodes)
    rest = [name for name in nodes if name != node]
    return _cutting(f"{node} is isolated", _between([node], rest), chance.randint(*LASTS_MS))


def deafen(chance: Chance, nodes: Nodes) -> Fault:
    """A node hears nobody, or is heard by nobody."""
    node, hears = chance.choice(nodes), chance.random() < 0.5
    rest = [name for name in nodes if name != node]
    directions = [(node, name) if hears else (name, node) for name in rest]
    text = f"{node} is heard by nobody" if hears else f"{node} hears nobody"
    return _cutting(text, directions, chance.randint(*LASTS_MS))


def split(chance: Chance, nodes: Nodes) -> Fault:
    """Two parts that do not reach each other."""
    some = chance.sample(nodes, chance.randint(1, len(nodes) - 1))
    rest = [name for name in nodes if name not in some]
    return _cutting(f"{', '.join(sorted(some))} are split off", _between(some, rest), chance.randint(*LASTS_MS))


def bridge(chance: Chance, nodes: Nodes) -> Fault:
    """Two parts that do not reach each other, and one node that reaches both."""
    middle, *rest = chance.sample(nodes, len(nodes))
    size = chance.randint(1, len(rest) - 1)
    directions = _between(rest[:size], rest[size:])
    return _cutting(f"only {middle} reaches both parts of the others", directions, chance.randint(*LASTS_MS))


def cut_from_controller(chance: Chance, nodes: Nodes) -> Fault:
    """The DC and one node do not reach each other; the others hear both."""
    order = chance.sample(nodes, len(nodes))

    def begin(cluster: Cluster) -> End | None:
        controller = cluster.cib.status.controller
        if controller is None:
            return None
        other = next(name for name in order if name != controller.node)
        return _cut(cluster, _between([controller.node], [other]))

    return Drawn("the DC and one node are cut", begin, chance.randint(*LASTS_MS))


def break_sessions(chance: Chance, nodes: Nodes) -> Fault:
    """The connections between two nodes break; what was under way is gone, and new ones are made."""
    one, other = chance.sample(nodes, 2)

    def begin(cluster: Cluster) -> None:
        cluster.streams.close(one, other)

    return Drawn(f"the sessions of {one} and {other} break", begin)


def drop_datagrams(chance: Chance, nodes: Nodes) -> Fault:
    """Heartbeats of one direction are lost, everything else passes."""
    one, other = chance.sample(nodes, 2)

    def begin(cluster: Cluster) -> End:
        cluster.network.drop_datagrams(one, other)
        return lambda: cluster.network.pass_datagrams(one, other)

    return Drawn(f"no datagram of {one} reaches {other}", begin, chance.randint(*LASTS_MS))


def filter_one_kind(chance: Chance, nodes: Nodes) -> Fault:
    """Only TCP, or only UDP, is dropped: between two nodes or of one node, both ways or one way."""
    one, other = chance.sample(nodes, 2)
    is_tcp, is_whole, is_one_way = chance.random() < 0.7, chance.random() < 0.5, chance.random() < 0.3
    peers = [name for name in nodes if name != one] if is_whole else [other]
    ways = [(one, peer) for peer in peers]
    if not is_one_way:
        ways += [(peer, one) for peer in peers]
    if chance.random() < 0.5:
        ways = [(target, source) for source, target in ways]

    def begin(cluster: Cluster) -> End:
        network = cluster.network
        drop, let_pass = (
            (network.drop_streams, network.pass_streams)
            if is_tcp
            else (network.drop_datagrams, network.pass_datagrams)
        )
        for source, target in ways:
            drop(source, target)

        def end() -> None:
            for source, target in ways:
                let_pass(source, target)

        return end

    what, whom = "TCP" if is_tcp else "UDP", "all others" if is_whole else other
    how = "one way" if is_one_way else "both ways"
    return Drawn(f"{what} between {one} and {whom} is dropped, {how}", begin, chance.randint(1_000, 30_000))


def bad_network(chance: Chance, _nodes: Nodes) -> Fault:
    """Delay, loss, repetition and reordering, everywhere."""
    conditions = NetworkConditions(
        delay_us=(100, chance.choice((600, 5 * MS, 60 * MS))),
        loss=chance.choice((0.0, 0.02, 0.1, 0.3)),
        duplication=chance.choice((0.0, 0.1)),
        reordering=chance.choice((0.0, 0.1)),
    )

    def begin(cluster: Cluster) -> End:
        cluster.network.set_conditions(conditions)
        return lambda: cluster.network.set_conditions(NetworkConditions())

    return Drawn(f"bad network ({conditions})", begin, chance.randint(500, 15_000))


KINDS: tuple[Kind[Cluster], ...] = (
    Kind("cut a pair", 5, cut_pair),
    Kind("cut one way", 4, cut_one_way),
    Kind("isolate", 4, isolate),
    Kind("deafen", 2, deafen),
    Kind("split", 2, split),
    Kind("bridge", 2, bridge),
    Kind("cut from the DC", 2, cut_from_controller),
    Kind("break sessions", 2, break_sessions),
    Kind("drop datagrams", 2, drop_datagrams),
    Kind("filter TCP or UDP", 5, filter_one_kind),
    Kind("bad network", 4, bad_network),
)
