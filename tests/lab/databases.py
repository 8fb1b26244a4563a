"""Machines with a replicated database, and two witnesses of its primary.

The one hears the beats that each primary sends for as long as it takes writes. The other is a ledger of what primaries
acknowledged: each write names the one before it, so that a primary that lacks an acknowledged write, or a second one
beside it, is found out by its next word.
"""

import random
import time
from pathlib import Path
from typing import NamedTuple

from tests.lab.lab import Lab
from tests.lab.recorder import Recorder, longest_gap_ms
from tests.lab.switch import address
from tests.lab.witnesses import Beats, overlaps

PRIMITIVE, CLONE = "db", "db-clone"
HOME = "db-home"
FRESH_S = 1.0


class Acknowledged(NamedTuple):
    """One write."""

    at: int
    node: str


class Ledger(Recorder):
    """Knows the last acknowledged write, and objects to a word that does not go on from it."""

    def __init__(self, path: Path) -> None:
        self.acknowledged: list[Acknowledged] = []
        self._number = 0
        self._digest = "-"
        self._timeline = 0
        self._objections: list[tuple[int, str]] = []
        super().__init__(path)

    def answer(self, words: list[str], now: int) -> str:
        """Take `promoted` or `wrote`, with node, instance and row: timeline, number, digest, digest before."""
        word, node, _, timeline, number, digest, before = words
        if word == "promoted":
            if int(timeline) <= self._timeline:
                self._object(now, f"{node} was promoted to timeline {timeline} after {self._timeline}")
            # What was written and not acknowledged may be there; then it is the next one.
            if self._digest not in (digest, before):
                self._object(now, f"{node} was promoted with write {number}; {self._number} was acknowledged")
        elif before != self._digest or int(timeline) != self._timeline:
            self._object(now, f"{node} acknowledged {number} on timeline {timeline} after {self._number} on "
                              f"{self._timeline}")  # fmt: skip
        self._timeline, self._number, self._digest = int(timeline), int(number), digest
        if word == "wrote":
            self.acknowledged.append(Acknowledged(now, node))
        return "ok"

    def _object(self, now: int, text: str) -> None:
        self._objections.append((now, text))

    def primary(self) -> str:
        """Return the node that acknowledged just now; empty: none did."""
        last = self.acknowledged[-1:]
        return last[0].node if last and time.monotonic_ns() - last[0].at < FRESH_S * 1e9 else ""

    def objections(self, since: int) -> list[str]:
        return [text for at, text in list(self._objections) if at >= since]


class DatabaseLab(Lab):
    """A cluster that runs the database beside the service, on every node; one is promoted."""

    def __init__(self, directory: Path, size: int = 3) -> None:
        super().__init__(directory, size)
        self.ledger = Ledger(directory / "ledger")
        self._closers.append(self.ledger.close)
        self.primary_beats = Beats(directory / "primary-beats")
        self._closers.append(self.primary_beats.close)
        self.home = next(iter(self.machines))
        hosts = " ".join(f"{each.name}={address(each.index, 0)}" for each in self.machines.values())
        self.settings = (
            f"primitive {PRIMITIVE} ocf:lab:database params ledger={self.ledger.path} beats={self.primary_beats.path} "
            f'directory={directory}/%n/state/database hosts="{hosts}" '
            "op monitor interval=1s timeout=20s role=Promoted op monitor interval=2s timeout=20s role=Unpromoted "
            "op start timeout=20s op stop timeout=20s op promote timeout=30s op demote timeout=20s",
            f"clone {CLONE} {PRIMITIVE} meta promotable=true notify=true interleave=true",
            self._preference(),
        )

    def _preference(self) -> str:
        return f"location {HOME} {CLONE} role=Promoted 2000: {self.home}"

    def send_home(self, node: str) -> None:
        """Let the primary be wanted on a node from now on."""
        self.home = node
        self.script(f"delete {HOME}", self._preference())

    def bring_to(self, node: str) -> None:
        """Move the primary, and wait until all is well."""
        if self.home != node:
            self.send_home(node)
            self.until(f"the primary to be on {node}", self.is_whole, 60)

    def ends(self, dc: str, kind: str, chance: random.Random) -> tuple[str, str]:
        """Return the old and the new primary of the next promotion; with `kind` dc, neither of them leads."""
        if kind == "dc" and self.home == dc:
            self.bring_to(chance.choice(self.others(dc)))
        return self.home, chance.choice(self.others(self.home, *((dc,) if kind == "dc" else ())))

    def is_whole(self) -> bool:
        return self.ledger.primary() == self.home and super().is_whole()

    def double_holders(self, since: int) -> list[str]:
        beats = overlaps(self.primary_beats.held(), since, on_one_node=True)
        return [
            *super().double_holders(since),
            *(f"primaries on {first} and {second} for {span_ms} ms" for first, second, span_ms in beats),
        ]

    def lost(self, since: int) -> list[str]:
        return self.ledger.objections(since)

    def interruption_ms(self, since: int) -> int:
        return longest_gap_ms((each.at for each in list(self.ledger.acknowledged)), since)
