"""Who held the service when, from three sides: addresses by netlink, beats of the service, answers to ARP.

A witness hears of nothing from the cluster and asks it nothing. All times are ns of CLOCK_MONOTONIC, one clock for all.
"""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from haclusterd.model.records import dataclass, field
from tests.lab.machine import Machine
from tests.lab.namespaces import enter_network
from tests.lab.switch import RINGS, SERVICE_ADDRESS, Switch, mac

SERVICE_PORT = 8080
RTMGRP_IPV4_IFADDR = 0x10
RTM_NEWADDR, RTM_DELADDR = 20, 21
CONTRADICTION_NS = 60_000_000
CLIENT = Path(__file__).with_name("client.py")


class Held(NamedTuple):
    """One holder's time."""

    node: str
    since: int
    until: int


class Answer(NamedTuple):
    """One asking of the client."""

    asked: int
    ended: int
    is_good: bool
    what: str
    """The node that answered, or why none did."""


@dataclass(slots=True)
class Outage:
    """What the client missed."""

    total_ms: int = 0
    longest_ms: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    holders: list[str] = field(default_factory=list)
    """Nodes that answered, in order."""


class Beats:
    """Hears the service's own beats."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._instances: dict[str, Held] = {}
        threading.Thread(target=self._hear, daemon=True).start()

    def _hear(self) -> None:
        while True:
            try:
                words = self._socket.recv(256).decode().split()
            except OSError:
                return
            now = time.monotonic_ns()
            if len(words) != 2:
                return
            known = self._instances.get(words[1])
            self._instances[words[1]] = Held(words[0], now if known is None else known.since, now)

    def held(self) -> list[Held]:
        return sorted(dict(self._instances).values(), key=lambda each: each.since)

    def close(self) -> None:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"end", str(self.path))
        self._socket.close()
        self.path.unlink(missing_ok=True)


class Addresses:
    """Hears from each machine's kernel when it gets the service's address and when it gives it up."""

    def __init__(self) -> None:
        self._spells: list[tuple[Machine, object, int, int | None]] = []
        self._lock = threading.Lock()

    def watch(self, machine: Machine) -> None:
        """Watch a machine that has just been switched on, until it ends."""
        threading.Thread(target=self._hear, args=(machine, machine.namespaces), daemon=True).start()

    def _hear(self, machine: Machine, boot: object) -> None:
        try:
            enter_network(machine.init)
        except (OSError, AssertionError):
            return
        wanted = socket.inet_aton(SERVICE_ADDRESS)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
            kernel.bind((0, RTMGRP_IPV4_IFADDR))
            kernel.settimeout(0.2)
            while machine.namespaces is boot:
                try:
                    data = kernel.recv(65536)
                except TimeoutError:
                    continue
                now = time.monotonic_ns()
                while len(data) >= 16:
                    length, kind = struct.unpack_from("=IH", data)
                    if wanted in data[24:length]:
                        self._note(machine, boot, kind, now)
                    data = data[(length + 3) & ~3 :]
        self._note(machine, boot, RTM_DELADDR, machine.died_at or time.monotonic_ns())

    def _note(self, machine: Machine, boot: object, kind: int, now: int) -> None:
        with self._lock:
            held = [at for at, spell in enumerate(self._spells) if spell[1] is boot and spell[3] is None]
            if kind == RTM_NEWADDR and not held:
                self._spells.append((machine, boot, now, None))
            if kind == RTM_DELADDR:
                for at in held:
                    self._spells[at] = (*self._spells[at][:3], now)

    def held(self) -> list[Held]:
        now = time.monotonic_ns()
        with self._lock:
            return [Held(machine.name, since, until or self._end(machine, boot, now))
                    for machine, boot, since, until in self._spells]  # fmt: skip

    @staticmethod
    def _end(machine: Machine, boot: object, now: int) -> int:
        return now if machine.namespaces is boot else machine.died_at


class OutsideClient:
    """Reads what the client process says."""

    def __init__(self, switch: Switch, machines: Mapping[str, Machine], period_ms: int = 20) -> None:
        self._names = {mac(each.index, ring): each.name for each in machines.values() for ring in RINGS}
        self.answers: list[Answer] = []
        self.arp: list[tuple[int, str]] = []
        self._process = switch.popen(*self._command(period_ms), stdout=-1)
        threading.Thread(target=self._read, daemon=True).start()

    def _command(self, period_ms: int) -> tuple[str, ...]:
        """Return the program, which writes the lines that client.py describes."""
        return ("/usr/bin/python3", "-I", "-S", str(CLIENT), SERVICE_ADDRESS, str(SERVICE_PORT), str(period_ms))

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.take(line.decode().split())

    def take(self, words: list[str]) -> None:
        """Note one line."""
        if words[0] == "h":
            self.answers.append(Answer(int(words[1]), int(words[2]), words[3] == "1", words[4]))
        else:
            self.arp.append((int(words[1]), self._names.get(words[2], words[2])))

    def is_served(self, streak: int = 15) -> bool:
        """Tell whether the last askings were all answered by one node."""
        last = self.answers[-streak:]
        return len(last) == streak and all(each.is_good and each.what == last[0].what for each in last)

    def served_since(self, since: int, streak: int = 15) -> bool:
        last = self.answers[-streak:]
        return self.is_served(streak) and last[0].asked >= since

    def holder(self) -> str | None:
        return self.answers[-1].what if self.is_served() else None

    def outage(self, since: int) -> Outage:
        """Measure all that was missed from then on: from the first bad asking to the next good one."""
        found = Outage()
        began: int | None = None
        rows = sorted(each for each in self.answers[-60_000:] if each.asked >= since)
        for each in rows:
            if not each.is_good:
                found.reasons[each.what] = found.reasons.get(each.what, 0) + 1
                began = began if began is not None else each.asked
                continue
            if began is not None:
                self._add(found, (each.asked - began) // 1_000_000)
                began = None
            if found.holders[-1:] != [each.what]:
                found.holders.append(each.what)
        if began is not None:
            self._add(found, (rows[-1].asked - began) // 1_000_000)
        return found

    @staticmethod
    def _add(found: Outage, spell_ms: int) -> None:
        found.total_ms += spell_ms
        found.longest_ms = max(found.longest_ms, spell_ms)

    def contradictions(self, since: int) -> list[tuple[int, str, str]]:
        """Return (when, node, other node) of each ARP answer that lies between two of another node, within 60 ms."""
        rows = [row for row in self.arp if row[0] >= since]
        return [
            (here[0], here[1], before[1])
            for before, here, after in zip(rows, rows[1:], rows[2:], strict=False)
            if before[1] == after[1] != here[1] and after[0] - before[0] <= 2 * CONTRADICTION_NS
        ]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def overlaps(held: list[Held], since: int, *, on_one_node: bool) -> list[tuple[str, str, int]]:
    """Return (node, node, ms) of all holders whose times overlap after `since`; on one node only where asked for."""
    found = []
    rows = [each for each in held if each.until >= since]
    for at, first in enumerate(rows):
        for second in rows[at + 1 :]:
            both = min(first.until, second.until) - max(first.since, second.since, since)
            if both > 0 and (first.node != second.node or on_one_node):
                found.append((first.node, second.node, both // 1_000_000))
    return found
