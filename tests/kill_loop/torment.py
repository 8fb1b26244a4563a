"""What is done to processes: kill -9 of one to all, SIGSTOP and SIGCONT, a full disk; chosen by a seed."""

import random
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from haclusterd.model.records import dataclass

PAUSE, FULL_DISK = 0.15, 0.21
"""Cumulated shares of the faults that are no kills."""
POLL_S = 0.02


class ViolationError(AssertionError):
    """Something that must never happen; the message says what."""


class Victims(Protocol):
    """A cluster of processes that can be ill-treated."""

    names: Sequence[str]

    def kill(self, names: Sequence[str]) -> None:
        """Kill all of these at once, and wait for their end."""
        ...

    def revive(self, names: Sequence[str]) -> None:
        """Start again what was killed."""
        ...

    def pause(self, names: Sequence[str]) -> None:
        """Stop these in their tracks."""
        ...

    def resume(self, names: Sequence[str]) -> None:
        """Let them go on."""
        ...

    def with_full_disk(self) -> str | None:
        """Return the node whose disk can be filled; None when there is none."""
        ...

    def suffer_full_disk(self, name: str) -> None:
        """Fill the disk, wait until the node has ended itself, make room, start the node again."""
        ...

    def look_after(self) -> None:
        """Raise ViolationError when a process ended by itself; do what a person or systemd would do meanwhile."""
        ...


@dataclass
class Counts:
    kills: int = 0
    pauses: int = 0
    full_disks: int = 0


def torment(victims: Victims, chance: random.Random, seconds: float, *, gap_s: tuple[float, float]) -> Counts:
    """Ill-treat the cluster for so long."""
    counts = Counts()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        rest(victims, chance.uniform(*gap_s))
        _once(victims, chance, counts)
    return counts


def _once(victims: Victims, chance: random.Random, counts: Counts) -> None:
    drawn = chance.random()
    names = chance.sample(list(victims.names), _how_many(chance, len(victims.names)))
    full = victims.with_full_disk()
    if drawn < PAUSE:
        counts.pauses += 1
        victims.pause(names)
        time.sleep(chance.uniform(0.2, 2))
        victims.resume(names)
    elif drawn < FULL_DISK and full is not None:
        counts.full_disks += 1
        victims.suffer_full_disk(full)
    else:
        counts.kills += len(names)
        victims.kill(names)
        time.sleep(chance.uniform(0, 0.6))
        victims.revive(names)


def _how_many(chance: random.Random, size: int) -> int:
    return 1 if chance.random() < 0.65 else chance.randint(2, size)


def rest(victims: Victims, seconds: float) -> None:
    """Let the cluster alone, but look after it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        victims.look_after()
        time.sleep(POLL_S)


def wait_for(what: str, condition: Callable[[], bool], limit_s: float, victims: Victims) -> None:
    """Wait for something that must come; raise ViolationError when it does not."""
    deadline = time.monotonic() + limit_s
    while not condition():
        victims.look_after()
        if time.monotonic() > deadline:
            raise ViolationError(f"waited {limit_s:.0f} s in vain for {what}")
        time.sleep(POLL_S)
