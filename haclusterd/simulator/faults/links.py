"""Faults of one of several networks: while another one is whole, no node may be lost for them.

Source: Pacemaker and Corosync clusters use several links so that one switch, cable or interface may fail.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from haclusterd.model.ids import NodeName
from haclusterd.simulator.faults.base import Drawn, End, Kind
from haclusterd.simulator.hosts.world import MS, Event
from haclusterd.simulator.scenario import Cluster

Nodes = Sequence[NodeName]
Chance = random.Random
Fault = Drawn[Cluster]
Direction = tuple[NodeName, NodeName]
ANY = (0, 2)
"""Numbers of the networks that a fault may concern; a cluster that has fewer takes the remainder."""
NOT_THE_FIRST = (1, 1)
"""One that is not the first, so that every node is heard all the time."""
LASTS_MS = (200, 25_000)
FLAP_MS = (50, 3_000)


def _both_ways(some: Iterable[NodeName], others: Sequence[NodeName]) -> list[Direction]:
    pairs = [(one, other) for one in some for other in others if one != other]
    return list(dict.fromkeys([*pairs, *((other, one) for one, other in pairs)]))


def _cutting(text: str, ways: Sequence[Direction], number: int, lasts_ms: int) -> Fault:
    def begin(cluster: Cluster) -> End:
        return _cut(cluster, ways, number)

    return Drawn(f"{text} on link {number}", begin, lasts_ms)


def _cut(cluster: Cluster, ways: Sequence[Direction], number: int) -> End:
    network, link = cluster.network, number % cluster.network.links
    for way in ways:
        network.cut_link(*way, link)

    def end() -> None:
        for way in ways:
            network.restore_link(*way, link)

    return end


def cut_link(links: tuple[int, int], chance: Chance, nodes: Nodes) -> Fault:
    """Two nodes do not reach each other on one network, or only one way."""
    one, other = chance.sample(nodes, 2)
    ways = [(one, other)] if chance.random() < 0.5 else [(one, other), (other, one)]
    text = f"{one} and {other} are cut {'one way' if len(ways) == 1 else 'both ways'}"
    return _cutting(text, ways, chance.randint(*links), chance.randint(*LASTS_MS))


def lose_interface(links: tuple[int, int], chance: Chance, nodes: Nodes) -> Fault:
    """An interface of a node is dead, or only receives, or only sends."""
    node, how = chance.choice(nodes), chance.choice(("is dead", "only receives", "only sends"))
    rest = [name for name in nodes if name != node]
    ways = {
        "is dead": _both_ways([node], rest),
        "only receives": [(node, name) for name in rest],
        "only sends": [(name, node) for name in rest],
    }[how]
    return _cutting(f"the interface of {node} {how}", ways, chance.randint(*links), chance.randint(*LASTS_MS))


def lose_network(links: tuple[int, int], chance: Chance, nodes: Nodes) -> Fault:
    """A network is down, for all nodes."""
    return _cutting("all is cut", _both_ways(nodes, nodes), chance.randint(*links), chance.randint(*LASTS_MS))


def slow_network(links: tuple[int, int], chance: Chance, _nodes: Nodes) -> Fault:
    """Everything travels longer on one network, so that what went over the other one overtakes it."""
    number, extra_ms = chance.randint(*links), chance.choice((20, 200, 900))

    def begin(cluster: Cluster) -> End:
        link = number % cluster.network.links
        cluster.network.slow_link(link, extra_ms)
        return partial(cluster.network.slow_link, link, 0)

    return Drawn(f"link {number} takes {extra_ms} ms more", begin, chance.randint(*LASTS_MS))


def flap(links: tuple[int, int], chance: Chance, nodes: Nodes) -> Fault:
    """A cable makes contact now and then: the interface of a node, or a whole network, goes down and up."""
    node, number = chance.choice(nodes), chance.randint(*links)
    is_whole = chance.random() < 0.3
    ways = _both_ways(nodes, nodes) if is_whole else _both_ways([node], [name for name in nodes if name != node])
    pauses_ms = [chance.randint(*FLAP_MS) for _ in range(chance.randint(2, 8))]

    def begin(cluster: Cluster) -> End:
        return _Flapping(cluster, partial(_cut, cluster, ways, number), pauses_ms).end

    what = "the whole network" if is_whole else f"the interface of {node}"
    return Drawn(f"{what} on link {number} flaps", begin, chance.randint(*LASTS_MS))


class _Flapping:
    """A cut that comes and goes."""

    def __init__(self, cluster: Cluster, cut: Callable[[], End], pauses_ms: Sequence[int]) -> None:
        self._cluster = cluster
        self._cut = cut
        self._pauses_ms = pauses_ms
        self._turns = 0
        self._end: End | None = None
        self._next: Event | None = None
        self._turn()

    def _turn(self) -> None:
        end, self._end = self._end, None
        if end is None:
            self._end = self._cut()
        else:
            end()
        pause_ms = self._pauses_ms[self._turns % len(self._pauses_ms)]
        self._turns += 1
        self._next = self._cluster.world.after(pause_ms * MS, self._turn)

    def end(self) -> None:
        if self._next is not None:
            self._next.cancel()
        if self._end is not None:
            self._end()


def _kinds(links: tuple[int, int]) -> tuple[Kind[Cluster], ...]:
    return (
        Kind("cut on one link", 4, partial(cut_link, links)),
        Kind("lose an interface", 4, partial(lose_interface, links)),
        Kind("lose a network", 3, partial(lose_network, links)),
        Kind("slow network", 2, partial(slow_network, links)),
        Kind("flapping link", 2, partial(flap, links)),
    )


OF_LINKS: tuple[Kind[Cluster], ...] = _kinds(ANY)
OF_OTHER_LINKS: tuple[Kind[Cluster], ...] = _kinds(NOT_THE_FIRST)
"""The first network stays whole."""
