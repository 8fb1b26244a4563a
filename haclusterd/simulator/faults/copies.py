"""Copies of machines: disks that are cloned, and started in another machine beside the first one or in its place."""

import random
from collections.abc import Sequence

from haclusterd.model.ids import NodeName
from haclusterd.simulator.copies import MachineCopies
from haclusterd.simulator.faults.base import Drawn, End, Kind
from haclusterd.simulator.hosts.world import MS
from haclusterd.simulator.scenario import Cluster

Nodes = Sequence[NodeName]
Chance = random.Random
Fault = Drawn[Cluster]
WHOLE_SHARE = 0.5
"""Of the copies: those of the whole machine, which show what the first one shows."""


def copied_machine(chance: Chance, _nodes: Nodes) -> Fault:
    """A machine is copied, and the copy is started beside it."""
    place = chance.random()
    age_ms = chance.choice((0, 0, chance.randint(0, 15_000)))
    lasts_ms = chance.randint(1_000, 25_000)
    is_whole = chance.random() < WHOLE_SHARE

    def begin(cluster: Cluster) -> End | None:
        copies = MachineCopies.of(cluster)
        copy = copies.make(place, is_whole=is_whole)
        if copy is None:
            return None
        is_over: list[bool] = []

        def start() -> None:
            if not is_over:
                copies.begin(copy)

        def end() -> None:
            is_over.append(True)
            copies.end(copy)

        cluster.world.after(age_ms * MS, start)
        return end

    what = "machine" if is_whole else "machine's disk"
    return Drawn(f"a copy of a {what}, {age_ms} ms old, is started beside it", begin, age_ms + lasts_ms)


def copy_in_its_place(chance: Chance, _nodes: Nodes) -> Fault:
    """A machine is copied and switched off; the copy is started, and then the first one again."""
    place = chance.random()
    alone_ms, lasts_ms = chance.choice((200, 2_000, chance.randint(1_000, 15_000))), chance.randint(1_000, 20_000)
    is_whole = chance.random() < WHOLE_SHARE
    declared_after_ms = chance.randint(0, alone_ms)

    def begin(cluster: Cluster) -> End | None:
        copies = MachineCopies.of(cluster)
        copy = copies.make(place, is_whole=is_whole)
        if copy is None:
            return None
        first = cluster.hosts[copy.node]
        first.power_off()
        copies.begin(copy)
        cluster.world.after(declared_after_ms * MS, lambda: copies.say_it_is_the_node(copy))
        cluster.world.after(alone_ms * MS, first.power_on)
        return lambda: copies.end(copy)

    what = "copy" if is_whole else "copy of a disk"
    return Drawn(f"a {what} takes a machine's place, for {alone_ms} ms alone", begin, alone_ms + lasts_ms)


OF_COPIES: tuple[Kind[Cluster], ...] = (
    Kind("copied machine", 14, copied_machine),
    Kind("copy in its place", 6, copy_in_its_place),
)
OUTCOMES = (
    "began",
    "recognised",
    "came in the place of a machine that was off",
    "the first one is refused",
    "does not start on another machine",
    "a person says that it is the node",
)
"""What comes of it; see `MachineCopies`."""
