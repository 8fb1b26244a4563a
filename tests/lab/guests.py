"""Machines with hypervisors and one virtual machine, whose whereabouts two witnesses know.

The one hears the virtual machine's own beats. The other is the shared storage: the machine counts in its memory and
writes each number there, so that a number that is not the next one proves a second copy, or memory that was lost.
"""

import random
import time
from pathlib import Path
from typing import NamedTuple

from tests.lab.lab import Lab
from tests.lab.namespaces import ENVIRONMENT
from tests.lab.recorder import Recorder, longest_gap_ms
from tests.lab.switch import address
from tests.lab.witnesses import Beats, overlaps

PORT = 7500
HYPERVISOR = "/usr/local/sbin/lab-hypervisor"
GUEST = "guest"
HOME = "guest-home"
FRESH_S = 0.5


class Written(NamedTuple):
    """One write."""

    at: int
    node: str
    boot: str


class Storage(Recorder):
    """Disk that all hosts see: keeps the machine's number, and objects to one that is not the next."""

    def __init__(self, path: Path) -> None:
        self.written: list[Written] = []
        self._number = 0
        self._boot = ""
        self._objections: list[tuple[int, str]] = []
        super().__init__(path)

    def answer(self, words: list[str], now: int) -> str:
        if words[0] == "read":
            return str(self._number)
        _, node, _, boot, number = words
        if int(number) != self._number + 1:
            text = f"{node} wrote {number} after {self._number}, of boot {boot} after {self._boot}"
            self._objections.append((now, text))
        self._number, self._boot = int(number), boot
        self.written.append(Written(now, node, boot))
        return "ok"

    def place(self) -> str:
        """Return the host that wrote just now; empty: none did."""
        last = self.written[-1:]
        return last[0].node if last and time.monotonic_ns() - last[0].at < FRESH_S * 1e9 else ""

    def boots(self, since: int) -> int:
        """Return how many boots of the machine have written since."""
        return len({each.boot for each in list(self.written) if each.at >= since})

    def objections(self, since: int) -> list[str]:
        return [text for at, text in list(self._objections) if at >= since]


class GuestLab(Lab):
    """A cluster that runs the virtual machine beside the service, live migration allowed."""

    def __init__(self, directory: Path, size: int = 3) -> None:
        super().__init__(directory, size)
        self.storage = Storage(directory / "storage")
        self._closers.append(self.storage.close)
        self.guest_beats = Beats(directory / "guest-beats")
        self._closers.append(self.guest_beats.close)
        self.home = next(iter(self.machines))
        hosts = " ".join(f"{each.name}={address(each.index, 0)}" for each in self.machines.values())
        self.settings = (
            f'primitive {GUEST} ocf:lab:guest params storage={self.storage.path} hosts="{hosts}" '
            "meta allow-migrate=true op monitor interval=2s timeout=20s op start timeout=20s op stop timeout=20s "
            "op migrate_to timeout=20s op migrate_from timeout=20s",
            f"location {HOME} {GUEST} 500: {self.home}",
        )
        for machine in self.machines.values():
            words = [HYPERVISOR, "serve", str(PORT), str(self.storage.path), str(self.guest_beats.path)]
            log = str(machine.logs / "hypervisor.log")
            machine.services.append(
                {"name": "hypervisor", "arguments": words, "environment": dict(ENVIRONMENT), "log": log}
            )

    def send_home(self, node: str) -> None:
        """Let the virtual machine be wanted on a node from now on."""
        self.home = node
        self.script(f"delete {HOME}", f"location {HOME} {GUEST} 500: {node}")

    def bring_to(self, node: str) -> None:
        """Move the virtual machine, and wait until all is well."""
        if self.home != node:
            self.send_home(node)
            self.until(f"the virtual machine to be on {node}", self.is_whole, 60)

    def ends(self, dc: str, kind: str, chance: random.Random) -> tuple[str, str]:
        """Return source and target of the next migration; with `kind` dc, neither of them leads."""
        if kind == "dc" and self.home == dc:
            self.bring_to(chance.choice(self.others(dc)))
        source = self.home
        return source, chance.choice(self.others(source, *((dc,) if kind == "dc" else ())))

    def is_whole(self) -> bool:
        return self.storage.place() == self.home and super().is_whole()

    def double_holders(self, since: int) -> list[str]:
        beats = overlaps(self.guest_beats.held(), since, on_one_node=True)
        return [
            *super().double_holders(since),
            *(f"virtual machine on {first} and {second} for {span_ms} ms" for first, second, span_ms in beats),
        ]

    def lost(self, since: int) -> list[str]:
        return self.storage.objections(since)

    def interruption_ms(self, since: int) -> int:
        return longest_gap_ms((each.at for each in list(self.storage.written)), since)
