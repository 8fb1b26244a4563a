"""A cluster of three machines that systemd boots, installed and formed as docs/howto/install.md says."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.lab.lab import Lab
from tests.lab.nspawn import MountSpace
from tests.lab.site import NotAsExpectedError
from tests.lab.switch import RINGS, address
from tests.lab.systemd_machine import LAB, SystemdMachine, make_image, make_wheels

UNITS = ("haclusterd", "haclusterd-pacer")
PORT = 7400
BOOTED_S = 60.0
SETTINGS = tuple(
    line
    for number in (1, 2, 3)
    for line in (
        f"primitive tick{number} ocf:haclusterd:dummy op monitor interval=100ms timeout=20s "
        "op start timeout=20s op stop timeout=20s",
        f"location tick{number}-home tick{number} 50: n{number}",
    )
)
"""Beside the service, a resource at home on each machine whose monitor is always near."""


class SystemdLab(Lab):
    """`start`, then rows; `close` whatever happened. `directory` must be empty."""

    def __init__(self, directory: Path) -> None:
        self.mounts = MountSpace(directory / "mounts")
        try:
            super().__init__(directory / "site", 3, settings=SETTINGS)
        except BaseException:
            self.mounts.close()
            raise
        self._closers.insert(0, self.mounts.close)
        self.sockets = Path(LAB)
        self.wait_s_max = 120.0
        self.began_wall_ms = 0
        """When the row that is played began."""

    def make_machine(self, name: str, index: int) -> SystemdMachine:
        return SystemdMachine(name, index, self.directory / name, self.switch, self.mounts)

    def _set_up(self) -> None:
        """Nothing is made beforehand: each machine makes its own settings, or gets them when it joins."""

    def machine(self, name: str) -> SystemdMachine:
        machine = self.machines[name]
        assert isinstance(machine, SystemdMachine)
        return machine

    def prepare(self) -> None:
        wheels = self.directory / "wheels"
        make_wheels(wheels)
        image = make_image(self.mounts, wheels)
        for name in self.machines:
            self.machine(name).prepare(image)

    def form(self) -> float:
        began = time.monotonic()
        for name in self.machines:
            self.machine(name).switch_on()
        for name in self.machines:
            self.until(f"{name} to boot", self.machine(name).is_booted, BOOTED_S)
        first, *others = (self.machine(name) for name in self.machines)
        first.run("crm", "cluster", "init", "-n", "lab", *_addresses(first))
        self.until("the first node to lead", lambda: self.online() == {first.name}, 30)
        for machine in others:
            printed = first.run("crm", "cluster", "invite")
            token = next(word for word in printed.split() if word.startswith("hacl1-"))
            machine.run("crm", "cluster", "join", "--token", token, *_addresses(machine))
        self.until("all nodes to be online", self.has_formed, 60)
        return time.monotonic() - began

    # -- looking ----------------------------------------------------------------------------------------------------

    def restarts(self) -> dict[str, int]:
        """Return how often systemd has started each unit of each machine again in its present boot."""
        found = {}
        for name in self.machines:
            machine = self.machine(name)
            for unit in UNITS:
                if machine.is_on:
                    found[f"{name}:{unit}"] = int(machine.shows(unit, "NRestarts") or 0)
        return found

    def journal(self, name: str, *words: str) -> list[Mapping[str, Any]]:
        """Return the lines of a machine's journal, oldest first, as journald has them."""
        text = self.machine(name).run("journalctl", "--output=json", "--no-pager", *words)
        return [json.loads(line) for line in text.splitlines()]

    def served_without_gap(self, since: int, bound_ms: int = 0) -> None:
        outage = self.client.outage(since)
        if outage.longest_ms > bound_ms:
            raise NotAsExpectedError(f"the client missed {outage.longest_ms} ms: {outage.reasons}")


def _addresses(machine: SystemdMachine) -> list[str]:
    return [word for ring in RINGS for word in ("--address", f"{address(machine.index, ring)}:{PORT}")]
