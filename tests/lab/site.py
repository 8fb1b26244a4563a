"""A site of the lab: machines, their network, a power switch, a client outside, witnesses.

What runs on it is a subclass. A site knows nothing of a cluster manager; the lab's cluster and those that it is
measured against are built on it alike.
"""

import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from tests.lab.machine import DISK_BYTES, Machine, sweep_groups
from tests.lab.namespaces import LabError
from tests.lab.power import PowerSwitch
from tests.lab.switch import Switch
from tests.lab.witnesses import Addresses, Beats, OutsideClient, overlaps

POLL_S = 0.05
AGENTS = Path(__file__).with_name("ocf")
AGENT_MOUNT = "/usr/lib/ocf/resource.d"


class NotAsExpectedError(Exception):
    """The cluster did something else than its verdict says."""


class Site(ABC):
    """`start`, then faults; `close` whatever happened."""

    disk_bytes = DISK_BYTES
    """Of each machine."""
    poll_s = POLL_S
    """Between two looks at what is waited for."""

    def __init__(self, directory: Path, size: int) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.began = time.monotonic_ns()
        self.wait_s_max = 90.0
        """How long the first start of everything may take."""
        self.notes: list[tuple[int, str, str]] = []
        self._closers: list[Callable[[], None]] = []
        self.switch = Switch()
        self._closers.append(self.switch.close)
        self.machines: dict[str, Machine] = {}
        for index in range(1, size + 1):
            name = f"n{index}"
            machine = self.machines[name] = self.make_machine(name, index)
            self._closers.append(machine.close)
        self.power = PowerSwitch(directory / "power", self.machines, self.note)
        self._closers.append(self.power.close)
        self.beats = Beats(directory / "beats")
        self._closers.append(self.beats.close)
        self.addresses = Addresses()
        self._is_closed = threading.Event()
        self._written = 0

    def make_machine(self, name: str, index: int) -> Machine:
        machine = Machine(name, index, self.directory / name, self.switch, self.disk_bytes)
        machine.mounts.append(("overlay", AGENT_MOUNT, "overlay", f"lowerdir={AGENTS}:{AGENT_MOUNT}"))
        return machine

    def make_client(self, period_ms: int) -> OutsideClient:
        return OutsideClient(self.switch, self.machines, period_ms)

    # -- what a cluster manager brings ------------------------------------------------------------------------------

    @abstractmethod
    def prepare(self) -> None:
        """Put on the machines' disks what must be there before the first boot."""

    @abstractmethod
    def has_formed(self) -> bool:
        """Tell whether all nodes are online, and there is a DC."""

    @abstractmethod
    def configure(self) -> None:
        """Give the cluster its resources."""

    @abstractmethod
    def is_whole(self) -> bool:
        """Tell whether every node is on and online, all agree, nothing is in flight, and the client is served."""

    @abstractmethod
    def dc(self) -> str:
        """Return the node that leads, or an empty text."""

    # -- life -------------------------------------------------------------------------------------------------------

    def start(self, client_period_ms: int = 20) -> float:
        """Switch everything on for the first time, form, configure; return the seconds that forming took."""
        self.prepare()
        threading.Thread(target=self._watch_boots, daemon=True).start()
        took_s = self.form()
        self.configure()
        self.client = self.make_client(client_period_ms)
        self._closers.append(self.client.close)
        self.until("all to be well", self.is_whole, self.wait_s_max)
        return took_s

    def form(self) -> float:
        """Switch all machines on; return the seconds until there is a cluster of all of them."""
        began = time.monotonic()
        boots = [threading.Thread(target=machine.switch_on) for machine in self.machines.values()]
        for boot in boots:
            boot.start()
        for boot in boots:
            boot.join()
        self.until("all nodes to be online", self.has_formed, 120)
        return time.monotonic() - began

    def _watch_boots(self) -> None:
        seen: dict[str, object] = {}
        while not self._is_closed.is_set():
            for machine in self.machines.values():
                if machine.has_ended():
                    self.note("reset", machine.name)
                    self.power.boot_later(machine)
                boot = machine.namespaces
                if boot is not None and seen.get(machine.name) is not boot:
                    seen[machine.name] = boot
                    self.watch(machine)
            time.sleep(0.02)

    def watch(self, machine: Machine) -> None:
        """Let witnesses see a machine that has just been switched on."""
        self.addresses.watch(machine)

    def close(self) -> None:
        self._is_closed.set()
        for close in reversed(self._closers):
            try:
                close()
            except (OSError, LabError) as error:
                print(f"lab: {error}", file=sys.stderr)
        sweep_groups()

    def note(self, what: str, node: str) -> None:
        self.notes.append((time.monotonic_ns(), what, node))

    def fenced(self, since: int, what: str = "fence-done") -> list[str]:
        return [node for at, text, node in self.notes if at >= since and text == what]

    # -- looking ----------------------------------------------------------------------------------------------------

    def holder(self) -> str:
        self.until("the service to answer", self.client.is_served, 30)
        holder = self.client.holder()
        return holder if holder is not None else self.holder()

    def others(self, *names: str) -> list[str]:
        return [name for name in self.machines if name not in names]

    def heal(self) -> None:
        """Undo whatever was done to network, power and processes."""
        self.power.restore()
        for machine in self.machines.values():
            if machine.is_stopped:
                machine.continue_all()
            machine.slow_disk(0)
        self.switch.heal(machine.index for machine in self.machines.values())

    def double_holders(self, since: int) -> list[str]:
        """Say what two held at a time, as any witness saw it."""
        found = []
        for what, held in (("address", self.addresses.held()), ("service", self.beats.held())):
            for first, second, span_ms in overlaps(held, since, on_one_node=what == "service"):
                found.append(f"{what} on {first} and {second} for {span_ms} ms")
        contradictions = self.client.contradictions(since)
        if contradictions:
            at, node, other = contradictions[0]
            notes = [note for note in self.notes if note[0] >= since]
            noted = [f"{what} {whom} at {(when - since) // 1_000_000}" for when, what, whom in notes]
            found.append(
                f"{len(contradictions)} contradicting ARP answers, the first by {node} against {other} "
                f"at {(at - since) // 1_000_000} ms ({', '.join(noted)})"
            )
        return found

    def lost(self, since: int) -> list[str]:
        """Say what was acknowledged to somebody and is gone."""
        return []

    def interruption_ms(self, since: int) -> int:
        """Return the longest interruption of what runs beside the service."""
        return 0

    # -- waiting ----------------------------------------------------------------------------------------------------

    def until(self, what: str, condition: Callable[[], bool], wait_s_max: float) -> None:
        deadline = time.monotonic() + wait_s_max
        while not condition():
            if time.monotonic() > deadline:
                raise NotAsExpectedError(f"waited {wait_s_max:g} s in vain for {what}")
            time.sleep(self.poll_s)

    def hold(self, what: str, condition: Callable[[], bool], for_s: float) -> None:
        """Demand that something stays so."""
        deadline = time.monotonic() + for_s
        while time.monotonic() < deadline:
            if not condition():
                raise NotAsExpectedError(f"not any more: {what}")
            time.sleep(self.poll_s)
