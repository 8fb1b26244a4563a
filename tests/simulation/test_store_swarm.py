"""Random faults against the store alone: nothing acknowledged is lost, and all states become equal."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from haclusterd.adapters.raft_frames import decode_frame
from haclusterd.model.ids import NodeName
from tests.simulation.store_world import World

SEEDS = int(os.environ.get("STORE_SEEDS", "8"))


FAULTS = (
    "split",
    "one way",
    "crash",
    "crash all",
    "crash all at an acknowledgement",
    "crash after a frame",
    "kill",
    "pause",
    "no room",
    "disconnect",
)
DISKS_US = ((300, 4_000), (300, 4_000), (5_000, 60_000), (20_000, 300_000))


class Chaos:
    """Writes all the time, and breaks something every now and then."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.is_over = False
        self.written = 0
        world.after(0, self.write)
        world.after(2_000_000, self.strike)

    def write(self) -> None:
        if self.is_over:
            return
        world = self.world
        node = world.nodes[world.chance.choice(world.names)]
        if node.is_alive and not node.is_paused:
            self.written += 1
            size = world.chance.choice((0, 0, 0, 50, 5000))
            node.core.propose(b"%d %s " % (self.written, node.name.encode()) + b"x" * size)
            node.core.tick()
        world.after(world.chance.randrange(5_000, 40_000), self.write)

    def strike(self) -> None:
        if self.is_over:
            return
        world, chance = self.world, self.world.chance
        fault = chance.choice(FAULTS)
        some = chance.sample(world.names, chance.randrange(1, len(world.names)))
        lasts_us = chance.randrange(100_000, 4_000_000)
        if fault == "split":
            for first in some:
                for second in world.names:
                    if second not in some:
                        world.block(first, second)
                        world.block(second, first)
        elif fault == "one way":
            first, second = chance.sample(world.names, 2)
            world.block(first, second)
        elif fault == "crash all":
            world.crash_all()
        elif fault == "crash all at an acknowledgement":
            world.crash_all_at_acknowledgement = True
        elif fault == "crash after a frame":
            self.crash_after(chance.choice(("response_vote", "request_vote", "next_node_idx", "append_entries")))
        elif fault in ("crash", "kill"):
            for name in some:
                world.crash(name, loses_power=fault == "crash")
        elif fault == "pause":
            world.pause(some[0])
        elif fault == "no room":
            world.nodes[some[0]].room = 0
        else:
            world.disconnect(*chance.sample(world.names, 2))
        world.after(lasts_us, self.mend)
        world.after(lasts_us + chance.randrange(50_000, 2_000_000), self.strike)

    def crash_after(self, kind: str) -> None:
        """Cut the power of the next node that sends such a message, right after it left."""
        world = self.world

        def hook(source: NodeName, _: NodeName, frame: bytes) -> bool:
            message = decode_frame(frame)
            if message is not None and message["type"] == kind:
                world.hook = lambda *_: True
                world.after(0, lambda: world.crash(source))
            return True

        world.hook = hook

    def mend(self) -> None:
        if not self.is_over:
            self.world.heal_all()


def storm(seed: int, *, is_hostile: bool = False, voters: int = 3, span_ms: int = 60_000) -> World:
    world = World(seed, voters, is_hostile=is_hostile, disk=DISKS_US[seed % len(DISKS_US)])
    chaos = Chaos(world)
    world.run(span_ms)
    chaos.is_over = True
    world.heal_all()
    world.run_until(world.is_settled, limit_ms=30_000)
    world.check()
    return world


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_acknowledged_is_lost_in_a_storm(seed: int) -> None:
    world = storm(seed)
    assert len(world.acknowledged) > 100


@pytest.mark.parametrize("seed", range(1000, 1000 + SEEDS // 2))
def test_lost_and_late_and_repeated_and_reordered_frames_do_no_harm(seed: int) -> None:
    world = storm(seed, is_hostile=True)
    assert len(world.acknowledged) > 100


@pytest.mark.parametrize("seed", range(2000, 2000 + SEEDS // 4))
def test_five_voters_survive_a_storm(seed: int) -> None:
    world = storm(seed, voters=5, span_ms=30_000)
    assert len(world.acknowledged) > 50


def test_a_seed_is_the_same_history_in_every_process() -> None:
    program = "from tests.simulation.test_store_swarm import storm; print(storm(7, span_ms=20_000).trace.hexdigest())"
    root = Path(__file__).parents[2]
    traces = set()
    for hash_seed in ("1", "2", "random"):
        result = subprocess.run(
            [sys.executable, "-c", program],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=True,
        )
        traces.add(result.stdout)
    assert len(traces) == 1
