"""Faults of processes, hosts, clocks and disks."""

import random
from collections.abc import Sequence
from functools import partial

from haclusterd.model.ids import NodeName
from haclusterd.simulator.brain import BrainProcess
from haclusterd.simulator.faults.base import Drawn, End, Kind
from haclusterd.simulator.hosts.hosts import Unit
from haclusterd.simulator.hosts.pacers import PacerProcess
from haclusterd.simulator.hosts.world import MS, SECOND, Event, Life
from haclusterd.simulator.scenario import Cluster

Nodes = Sequence[NodeName]
Chance = random.Random
Fault = Drawn[Cluster]


def kill_brain(chance: Chance, nodes: Nodes) -> Fault:
    """SIGKILL to a daemon."""
    node = chance.choice(nodes)
    return Drawn(f"kill the brain of {node}", lambda cluster: cluster.kill_brain(node))


def kill_pacer(chance: Chance, nodes: Nodes) -> Fault:
    """SIGKILL to a pacer."""
    node = chance.choice(nodes)
    return Drawn(f"kill the pacer of {node}", lambda cluster: cluster.kill_pacer(node))


def lose_power(chance: Chance, nodes: Nodes) -> Fault:
    """A host without power for a while."""
    node = chance.choice(nodes)

    def begin(cluster: Cluster) -> End:
        cluster.power_off(node)
        return lambda: cluster.power_on(node)

    return Drawn(f"{node} loses power", begin, chance.randint(500, 20_000))


def lose_all_power(chance: Chance, nodes: Nodes) -> Fault:
    """All hosts without power; they come back one after another, in any order, some of them much later."""
    longest_ms = chance.choice((200, 2_000, 20_000))
    pauses_ms = [chance.randint(0, longest_ms) for _ in nodes]

    def begin(cluster: Cluster) -> End:
        for node in nodes:
            cluster.power_off(node)

        def end() -> None:
            for node, pause_ms in zip(nodes, pauses_ms, strict=True):
                cluster.world.after(pause_ms * MS, partial(cluster.power_on, node))

        return end

    return Drawn("all lose power", begin, chance.randint(200, 5_000))


def pause_brain(chance: Chance, nodes: Nodes) -> Fault:
    """SIGSTOP to a daemon."""
    node = chance.choice(nodes)

    def begin(cluster: Cluster) -> End:
        cluster.pause_brain(node)
        return lambda: cluster.resume_brain(node)

    return Drawn(f"the brain of {node} is stopped", begin, chance.randint(100, 15_000))


def pause_pacer(chance: Chance, nodes: Nodes) -> Fault:
    """SIGSTOP to a pacer."""
    node = chance.choice(nodes)

    def begin(cluster: Cluster) -> End:
        unit = cluster.hosts[node].pacer
        unit.pause()
        return unit.resume

    return Drawn(f"the pacer of {node} is stopped", begin, chance.randint(100, 6_000))


def hang_thread(chance: Chance, nodes: Nodes) -> Fault:
    """One thread of a daemon stands still."""
    node, is_main = chance.choice(nodes), chance.random() < 0.5

    def begin(cluster: Cluster) -> End | None:
        unit = cluster.hosts[node].brain
        life = _thread(unit, is_main=is_main)
        if life is None:
            return None
        unit.hang(life)
        return lambda: unit.unhang(life)

    return Drawn(f"the {'main loop' if is_main else 'Raft thread'} of {node} hangs", begin, chance.randint(100, 15_000))


def _thread(unit: Unit, *, is_main: bool) -> Life | None:
    process = unit.process
    if not isinstance(process, BrainProcess):
        return None
    return process.main_life if is_main else process.raft_life


def stall(chance: Chance, nodes: Nodes) -> Fault:
    """A whole host stands still, as a paused virtual machine, with its clocks or without.

    Where a node's watchdog is counted on, the clocks run on: a watchdog that a pause holds back is beyond safety.md §2.
    """
    node = chance.choice(nodes)
    with_clocks = chance.random() < 0.5

    def begin(cluster: Cluster) -> End:
        cluster.stall(node, with_clocks=with_clocks and not cluster.setup.watchdog_ms)
        return lambda: cluster.go_on(node)

    text = f"{node} stalls{' with its clocks' if with_clocks else ''}"
    return Drawn(text, begin, chance.randint(50, 8_000))


def slow_brain(chance: Chance, nodes: Nodes) -> Fault:
    """A daemon that gets the processor only now and then."""
    node = chance.choice(nodes)
    stands_ms, runs_ms = chance.choice(((40, 10), (90, 10), (200, 20), (400, 30)))

    def begin(cluster: Cluster) -> End:
        return _Slowness(cluster, cluster.hosts[node].brain, stands_ms, runs_ms).end

    text = f"the brain of {node} is slow ({runs_ms} of {stands_ms + runs_ms} ms)"
    return Drawn(text, begin, chance.randint(500, 10_000))


class _Slowness:
    """Stops a unit's process and lets it continue, in turn."""

    def __init__(self, cluster: Cluster, unit: Unit, stands_ms: int, runs_ms: int) -> None:
        self._cluster = cluster
        self._unit = unit
        self._stands_us = stands_ms * MS
        self._runs_us = runs_ms * MS
        self._next: Event | None = None
        self._stand()

    def _stand(self) -> None:
        self._unit.pause()
        self._next = self._cluster.world.after(self._stands_us, self._run)

    def _run(self) -> None:
        self._unit.resume()
        self._next = self._cluster.world.after(self._runs_us, self._stand)

    def end(self) -> None:
        if self._next is not None:
            self._next.cancel()
        self._unit.resume()


def set_wall_clock(chance: Chance, nodes: Nodes) -> Fault:
    """A wall clock is set, by up to an hour."""
    node, jump_ms = chance.choice(nodes), chance.randint(-3_600_000, 3_600_000)

    def begin(cluster: Cluster) -> None:
        cluster.hosts[node].wall.offset_ms = jump_ms

    return Drawn(f"the wall clock of {node} is off by {jump_ms} ms", begin)


def drain(chance: Chance, nodes: Nodes) -> Fault:
    """SIGTERM to a daemon, which is started again later."""
    node = chance.choice(nodes)

    def begin(cluster: Cluster) -> End | None:
        unit = cluster.hosts[node].brain
        process = unit.process
        if not isinstance(process, BrainProcess) or not process.is_at_work:
            return None
        process.runtime.drain()
        return lambda: unit.enable() if node in cluster.names else None

    return Drawn(f"{node} is drained", begin, chance.randint(1_000, 15_000))


USUAL_SYNC_US = (300, 3 * MS)


def busy_processors(chance: Chance, nodes: Nodes) -> Fault:
    """The load is above what load-threshold allows, where that is set."""
    node, percent = chance.choice(nodes), chance.choice((85, 100, 300))

    def begin(cluster: Cluster) -> End:
        host = cluster.hosts[node]
        host.load_percent = percent

        def end() -> None:
            host.load_percent = 0

        return end

    return Drawn(f"the load of {node} is {percent} %", begin, chance.randint(500, 60_000))


def slow_disk(chance: Chance, nodes: Nodes) -> Fault:
    """Every fsync takes long."""
    node, worst_us = chance.choice(nodes), chance.choice((50 * MS, 300 * MS, 2 * SECOND))

    def begin(cluster: Cluster) -> End:
        disk = cluster.hosts[node].disk
        disk.sync_us = (worst_us // 4, worst_us)

        def end() -> None:
            disk.sync_us = USUAL_SYNC_US

        return end

    return Drawn(f"the disk of {node} takes up to {worst_us // MS} ms", begin, chance.randint(500, 15_000))


def full_disk(chance: Chance, nodes: Nodes) -> Fault:
    """Nothing can be written."""
    node = chance.choice(nodes)

    def begin(cluster: Cluster) -> End:
        disk = cluster.hosts[node].disk
        disk.is_full = True

        def end() -> None:
            disk.is_full = False

        return end

    return Drawn(f"the disk of {node} is full", begin, chance.randint(200, 5_000))


def failing_disk(chance: Chance, nodes: Nodes) -> Fault:
    """Every fsync reports EIO; what was not synced stays readable until the next boot."""
    node = chance.choice(nodes)

    def begin(cluster: Cluster) -> End:
        disk = cluster.hosts[node].disk
        disk.fails_syncs = True

        def end() -> None:
            disk.fails_syncs = False

        return end

    return Drawn(f"the disk of {node} fails each fsync", begin, chance.randint(200, 5_000))


def damage_disk(chance: Chance, nodes: Nodes) -> Fault:
    """One bit of the journal or the snapshot flips while the host is off: the node must refuse to start.

    At the end the bit is flipped back, as from a copy of the disk that was made before.
    """
    node = chance.choice(nodes)
    name, place = chance.choice(("journal", "journal", "snapshot")), chance.random()

    def begin(cluster: Cluster) -> End:
        host = cluster.hosts[node]
        cluster.power_off(node)
        repair = host.disk.damage(name, place)
        cluster.world.after(100 * MS, lambda: cluster.power_on(node))

        def end() -> None:
            cluster.power_off(node)
            repair()
            cluster.power_on(node)

        return end

    return Drawn(f"a bit of the {name} of {node} flips", begin, chance.randint(1_000, 20_000))


def older_version(chance: Chance, nodes: Nodes) -> Fault:
    """A version that reads less than the cluster uses is installed on a node: it may not join before the upgrade."""
    node = chance.choice(nodes)

    def begin(cluster: Cluster) -> End:
        cluster.feature_levels[node] = cluster.cib.feature_level - 1
        cluster.kill_brain(node)

        def end() -> None:
            cluster.feature_levels.pop(node, None)
            cluster.reload_brain(node)

        return end

    return Drawn(f"{node} runs an older version", begin, chance.randint(500, 30_000))


def hold_feed_back(chance: Chance, nodes: Nodes) -> Fault:
    """A pacer is stopped between its look at the clock and its write to the watchdog device."""
    node = chance.choice(nodes)

    def begin(cluster: Cluster) -> End | None:
        unit = cluster.hosts[node].pacer
        process = unit.process
        if not isinstance(process, PacerProcess):
            return None
        process.stops_before_next_write = True

        def end() -> None:
            process.stops_before_next_write = False
            unit.resume()

        return end

    return Drawn(f"the pacer of {node} is stopped before it feeds", begin, chance.randint(500, 8_000))


def take_watchdog(chance: Chance, nodes: Nodes) -> Fault:
    """Another program holds the watchdog device open when the pacer comes: after its restart, or after a boot."""
    node, is_rebooted = chance.choice(nodes), chance.random() < 0.5

    def begin(cluster: Cluster) -> End:
        host = cluster.hosts[node]
        host.is_watchdog_taken = True
        if is_rebooted:
            host.power_off()
            host.power_on()
        else:
            host.pacer.kill()

        def end() -> None:
            host.is_watchdog_taken = False

        return end

    return Drawn(f"the watchdog of {node} is taken", begin, chance.randint(2_000, 20_000))


OF_BRAINS: tuple[Kind[Cluster], ...] = (
    Kind("kill a brain", 6, kill_brain),
    Kind("stop a brain", 4, pause_brain),
    Kind("hang a thread", 3, hang_thread),
    Kind("slow brain", 2, slow_brain),
    Kind("set a wall clock", 2, set_wall_clock),
    Kind("slow disk", 3, slow_disk),
    Kind("busy processors", 2, busy_processors),
    Kind("full disk", 1, full_disk),
    Kind("failing disk", 1, failing_disk),
)
"""Those in which every living node is heard."""
OF_WATCHDOGS: tuple[Kind[Cluster], ...] = (
    Kind("hold a feed back", 4, hold_feed_back),
    Kind("take the watchdog", 2, take_watchdog),
)
KINDS: tuple[Kind[Cluster], ...] = (
    *OF_BRAINS,
    Kind("kill a pacer", 3, kill_pacer),
    Kind("lose power", 4, lose_power),
    Kind("lose all power", 1, lose_all_power),
    Kind("stop a pacer", 2, pause_pacer),
    Kind("stall a host", 4, stall),
    Kind("drain", 2, drain),
    Kind("damaged disk", 1, damage_disk),
    Kind("older version", 2, older_version),
)

