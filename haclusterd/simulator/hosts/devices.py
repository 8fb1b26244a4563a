"""What is really the case with the devices of all hosts: which process uses which, whatever any daemon believes.

A process uses a device from the moment in which its service runs, and for a while after that has ended: the driver
frees its memory late, or it hangs there for good. A process of nobody's may use one too. All of them end with the boot.
"""

import random
from collections.abc import Callable, Sequence

from haclusterd.model.agent_calls import AgentCall
from haclusterd.model.devices import MISSING, Device, DeviceId, DeviceState, Rung
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.records import dataclass, replace
from haclusterd.ports.devices import DevicesReport, DeviceUse, DeviceUser, RecoveryAnswer
from haclusterd.simulator.hosts.world import MS, Life, World

MEMORY_MIB = 80_000
NOTICE_US = (20 * MS, 400 * MS)
"""From a change of a device to the watcher's report of it."""
LOOK_US = (5 * MS, 150 * MS)
RECOVERY_US = (200 * MS, 4_000 * MS)
"""How long a reset, or loading the driver again, takes; somewhere in between it hits its devices."""
TEST_US = (100 * MS, 3_000 * MS)
HUNG_LOOK_US = (1_000 * MS, 2_000 * MS)
"""After so long it says of a device that hangs that nobody can say."""


@dataclass(slots=True, eq=False)
class DeviceProcess:
    """One process that uses a device, or memory that one has left there."""

    node: NodeName
    device: DeviceId
    resource: ResourceId | None
    """None: nobody's."""
    number: int
    since_us: int
    order: str
    """Of the start that has begun it."""
    has_ended: bool = False
    """Its service has; it is still there."""
    is_bare: bool = False
    """The process is gone, and its memory is not freed."""
    is_of_older_log: bool = False
    """The cluster that has started it is gone: to the one of now it is a stranger."""
    tester: "SimulatedDevices | None" = None
    """Of a test of the device: the watcher that runs it, to which alone it is no stranger."""

    def shown(self) -> DeviceUser:
        """Return it as a watcher sees it."""
        if self.is_bare:
            return DeviceUser("512 MiB in use and no process")
        return DeviceUser(f"{self.number} {self.resource or 'stranger'}", self.resource or "")


@dataclass(frozen=True, slots=True, eq=False)
class Recovering:
    """A program that resets a device, or loads the driver of a node again; it outlives the daemon that began it."""

    node: NodeName
    devices: tuple[DeviceId, ...]
    """What it hits."""


@dataclass(slots=True)
class DeviceBehaviour:
    """How long what has ended uses its device, in ms."""

    usual_ms: tuple[int, int] = (20, 150)
    slow_ms: tuple[int, int] = (500, 6_000)
    slow_share: float = 0.1
    hanging_share: float = 0.0
    """Of what never lets go by itself."""
    helping_share: float = 0.8
    """Of recoveries after which a device is well."""
    failing_share: float = 0.1
    """Of recoveries and tests that say that they failed."""


class DeviceTruth:
    """The devices of all hosts, and what uses them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = world.chance("devices")
        self._devices: dict[NodeName, dict[DeviceId, Device]] = {}
        self._hung: set[DeviceId] = set()
        self._lasting: set[DeviceId] = set()
        """Those of `_hung` that have not answered for long."""
        self._missing: set[DeviceId] = set()
        self.processes: list[DeviceProcess] = []
        self.behaviour = DeviceBehaviour()
        self.when_changed: list[Callable[[NodeName], None]] = []
        self.recovering: list[Recovering] = []
        self.when_hit: list[Callable[[Recovering], None]] = []
        """Called when a recovery hits its devices."""
        self._numbers = 1000

    # -- hardware ---------------------------------------------------------------------------------------------------

    def equip(self, node: NodeName, count: int, memory_mib: int = MEMORY_MIB) -> None:
        """Put devices into a host; the first two, and so on, reach each other."""
        made = (
            Device(DeviceId(f"GPU-{node}-{place}"), bus=f"0000:{place:02x}:00.0", model="simulated",
                   memory_mib=memory_mib, link=f"link-{place // 2}")
            for place in range(count)
        )  # fmt: skip
        self._devices[node] = {device.id: device for device in made}

    def devices_of(self, node: NodeName) -> tuple[DeviceId, ...]:
        """Return what is built into a host, seen or not."""
        return tuple(self._devices.get(node, ()))

    def is_anything(self) -> bool:
        """Tell whether any host has devices."""
        return bool(self._devices)

    def set_state(self, device: DeviceId, state: DeviceState, rung: str = "") -> None:
        """Let a device be as fit as this; `rung` is what it wants done about that."""
        if not self.is_there(device):
            return
        node = self.node_of(device)
        reasons = () if state is DeviceState.OK else (f"simulated: {state}",)
        self._devices[node][device] = replace(self._devices[node][device], state=state, reasons=reasons, rung=rung)
        self._changed(device, str(state))

    def lose(self, device: DeviceId, *, is_lost: bool) -> None:
        """Let a device fall off the bus, or come back."""
        (self._missing.add if is_lost and self.is_there(device) else self._missing.discard)(device)
        self._changed(device, MISSING if is_lost else "there")

    def hang(self, device: DeviceId, *, is_hung: bool, is_lasting: bool = False) -> None:
        """Let the driver answer nothing about a device, or answer again; `is_lasting`: for so long already that it
        counts as failed."""
        (self._lasting.add if is_hung and is_lasting else self._lasting.discard)(device)
        (self._hung.add if is_hung and self.is_there(device) else self._hung.discard)(device)
        self._changed(device, "hung" if is_hung else "answering")

    def swap(self, node: NodeName, place: int) -> None:
        """Put another device into the place of one; the host has no power."""
        devices = self._devices[node]
        old = sorted(devices)[place % len(devices)]
        self._numbers += 1
        new = DeviceId(f"GPU-{node}-new{self._numbers}")
        self._devices[node] = {**{name: each for name, each in devices.items() if name != old},
                               new: replace(devices[old], id=new, state=DeviceState.OK, reasons=())}  # fmt: skip
        self._hung.discard(old)
        self._lasting.discard(old)
        self._missing.discard(old)
        self._world.record(f"{node} device {old} is replaced by {new}")

    def is_there(self, device: DeviceId) -> bool:
        """Tell whether a device is built into any host."""
        return any(device in devices for devices in self._devices.values())

    def node_of(self, device: DeviceId) -> NodeName:
        """Return into which host a device is built."""
        return next(node for node, devices in self._devices.items() if device in devices)

    def _changed(self, device: DeviceId, words: str) -> None:
        if not self.is_there(device):
            return
        node = self.node_of(device)
        self._world.record(f"{node} device {device} is {words}")
        for call in tuple(self.when_changed):
            call(node)

    # -- recoveries -------------------------------------------------------------------------------------------------

    def recover(self, node: NodeName, device: DeviceId, rung: Rung) -> tuple[int, RecoveryAnswer]:
        """Begin a recovery; return after how many µs it is over, and what it says then."""
        hit = (device,) if rung is Rung.RESET else self.devices_of(node)
        made, chance = Recovering(node, hit), self._chance
        self.recovering.append(made)
        self._world.record(f"{node} {rung} of {device} begins")
        span_us = chance.randint(*RECOVERY_US)
        helps = chance.random() < self.behaviour.helping_share
        is_done = chance.random() >= self.behaviour.failing_share
        self._world.after(chance.randint(0, span_us), lambda: self._hit(made, helps=helps))
        self._world.after(span_us, lambda: self._recovered(made))
        return span_us, RecoveryAnswer(is_done, "simulated")

    def _hit(self, recovering: Recovering, *, helps: bool) -> None:
        if recovering not in self.recovering:
            return
        for call in tuple(self.when_hit):
            call(recovering)
        for name in recovering.devices:
            self._world.record(f"{recovering.node} device {name} is hit by a recovery")
            if helps and self.is_there(name) and self.node_of(name) == recovering.node:
                self._hung.discard(name)
                self._lasting.discard(name)
                self.set_state(name, DeviceState.OK)

    def _recovered(self, recovering: Recovering) -> None:
        if recovering in self.recovering:
            self.recovering.remove(recovering)

    def is_recovering(self, node: NodeName, device: DeviceId) -> bool:
        """Tell whether a recovery may still hit a device."""
        return any(each.node == node and device in each.devices for each in self.recovering)

    def test_begins(self, device: DeviceId, tester: "SimulatedDevices") -> tuple[int, RecoveryAnswer]:
        """Begin a test of a device; return after how many µs it is over, and what it says then."""
        process = self._begin(self.node_of(device), device, None, "")
        process.tester = tester
        span_us = self._chance.randint(*TEST_US)
        self._world.after(span_us, lambda: self.end(process))
        return span_us, RecoveryAnswer(self._chance.random() >= self.behaviour.failing_share, "simulated")

    # -- processes --------------------------------------------------------------------------------------------------

    def users(self, node: NodeName, device: DeviceId) -> tuple[DeviceProcess, ...]:
        """Return what uses a device."""
        return tuple(each for each in self.processes if (each.node, each.device) == (node, device))

    def service_begins(self, node: NodeName, call: AgentCall) -> None:
        """What a start has made uses its devices from now on."""
        for name in map(DeviceId, call.devices):
            self._begin(node, name, call.resource, call.key)

    def stranger_begins(self, device: DeviceId) -> DeviceProcess:
        """A person starts something on a device."""
        return self._begin(self.node_of(device), device, None, "")

    def _begin(self, node: NodeName, device: DeviceId, resource: ResourceId | None, order: str) -> DeviceProcess:
        self._numbers += 1
        made = DeviceProcess(node, device, resource, self._numbers, self._world.now_us, order)
        self.processes.append(made)
        self._changed(device, f"used by {made.shown().text}")
        return made

    def service_ends(self, node: NodeName, resource: ResourceId) -> None:
        """A service has ended; what it used is free some time later, or never."""
        for process in self.processes:
            if (process.node, process.resource, process.has_ended) == (node, resource, False):
                process.has_ended = True
                self._linger(process)

    def _linger(self, process: DeviceProcess) -> None:
        behaviour, chance = self.behaviour, self._chance
        process.is_bare = chance.random() < 0.3
        if chance.random() < behaviour.hanging_share:
            self._world.record(f"{process.node} {process.number} hangs on {process.device}")
            return
        span_ms = behaviour.slow_ms if chance.random() < behaviour.slow_share else behaviour.usual_ms
        self._world.after(chance.randint(*span_ms) * MS, lambda: self.end(process))

    def end(self, process: DeviceProcess) -> None:
        """A process is gone, with all that it held."""
        if process in self.processes:
            self.processes.remove(process)
            self._changed(process.device, f"free of {process.number}")

    def host_dies(self, node: NodeName) -> None:
        """All processes of a host end at once."""
        self.processes = [process for process in self.processes if process.node != node]
        self.recovering = [each for each in self.recovering if each.node != node]
        for name in self.devices_of(node):
            self._hung.discard(name)
            self._lasting.discard(name)

    def another_log_begins(self) -> None:
        """No record of the cluster that begins says what the one before has started."""
        for process in self.processes:
            process.is_of_older_log = True

    def heal(self) -> None:
        """Let every device be well, and end what has no right to be on one."""
        self.behaviour = DeviceBehaviour()
        for name in sorted(self._hung):
            self.hang(name, is_hung=False)
        for name in sorted(self._missing):
            self.lose(name, is_lost=False)
        for devices in self._devices.values():
            for name, device in list(devices.items()):
                if device.state is not DeviceState.OK:
                    self.set_state(name, DeviceState.OK)
        for process in list(self.processes):
            if process.resource is None or process.has_ended:
                self.end(process)

    # -- what a watcher sees ----------------------------------------------------------------------------------------

    def report(self, node: NodeName, watcher: "SimulatedDevices | None" = None) -> DevicesReport:
        """Return what a watcher sees of a host's devices."""
        seen = tuple(
            _hung(device, is_lasting=name in self._lasting) if name in self._hung else device
            for name, device in sorted(self._devices.get(node, {}).items())
            if name not in self._missing
        )  # fmt: skip
        users = {
            device.id: self._shown(node, device.id, watcher)
            for device in seen
            if device.id not in self._hung
        }
        return DevicesReport(seen, "1.0" if seen else "", users=users)

    def _shown(
        self, node: NodeName, device: DeviceId, watcher: "SimulatedDevices | None"
    ) -> tuple[DeviceUser, ...]:
        return tuple(
            process.shown() for process in self.users(node, device) if watcher is None or process.tester is not watcher
        )

    def use(
        self, node: NodeName, devices: Sequence[DeviceId], watcher: "SimulatedDevices | None" = None
    ) -> DeviceUse:
        """Return what a watcher says of some devices' use."""
        unseen = self._hung | self._missing
        unknown = tuple(
            name for name in devices
            if name in unseen or name not in self._devices.get(node, {}) or self.is_recovering(node, name)
        )  # fmt: skip
        users = {name: shown for name in devices if name not in unknown and (shown := self._shown(node, name, watcher))}
        return DeviceUse(users, unknown)

    def is_hung(self, devices: Sequence[DeviceId]) -> bool:
        """Tell whether the driver answers nothing about one of them."""
        return any(name in self._hung for name in devices)


def _hung(device: Device, *, is_lasting: bool) -> Device:
    if is_lasting:
        reasons = ("hang-lasts: the driver has not answered for long", "hang: the driver does not answer")
        return replace(device, state=DeviceState.FAILED, reasons=reasons, rung=Rung.REBOOT)
    return replace(device, state=DeviceState.UNKNOWN, reasons=("hang: the driver does not answer",))


class SimulatedDevices:
    """The `DeviceWatch` of one daemon."""

    def __init__(self, truth: DeviceTruth, node: NodeName, life: Life, chance: random.Random) -> None:
        self._truth = truth
        self._node = node
        self._life = life
        self._chance = chance
        self._report_soon: Callable[[], None] = lambda: None
        truth.when_changed.append(self._changed)
        life.at_end(lambda: truth.when_changed.remove(self._changed))

    def watch(self, changed: Callable[[DevicesReport], None]) -> None:
        """See `DeviceWatch.watch`."""
        if not self._truth.devices_of(self._node):
            return
        self._report_soon = lambda: self._later(NOTICE_US, lambda: changed(self._truth.report(self._node, self)))
        self._report_soon()

    def _changed(self, node: NodeName) -> None:
        if node == self._node:
            self._report_soon()

    def look(self, devices: tuple[DeviceId, ...], done: Callable[[DeviceUse], None]) -> None:
        """See `DeviceWatch.look`."""
        span_us = HUNG_LOOK_US if self._truth.is_hung(devices) else LOOK_US
        self._later(span_us, lambda: done(self._truth.use(self._node, devices, self)))

    def recover(self, device: DeviceId, rung: Rung, done: Callable[[RecoveryAnswer], None]) -> None:
        """See `DeviceWatch.recover`."""
        span_us, answer = self._truth.recover(self._node, device, rung)
        self._life.after(span_us, lambda: done(answer))

    def test(self, device: DeviceId, program: str, timeout_ms: int, done: Callable[[RecoveryAnswer], None]) -> None:
        """See `DeviceWatch.test`."""
        if not self._truth.is_there(device):
            self._life.after(MS, lambda: done(RecoveryAnswer(is_done=False, text=f"{program}: no such device")))
            return
        span_us, answer = self._truth.test_begins(device, self)
        self._life.after(min(span_us, timeout_ms * MS), lambda: done(answer))

    def _later(self, span_us: tuple[int, int], call: Callable[[], None]) -> None:
        self._life.after(self._chance.randint(*span_us), call)
