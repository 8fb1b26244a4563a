"""A host: power, boots, a disk, and the two processes that its systemd keeps running.

A boot is a life: with it end its processes, agents, services and everything under /run. The disk stays.
"""

from collections.abc import Callable
from typing import Protocol

from haclusterd.model.ids import NodeName
from haclusterd.model.machine_load import MachineLoad
from haclusterd.model.machine_marks import MachineMark
from haclusterd.ports.crashes import CrashRecord
from haclusterd.ports.history import NewVersion
from haclusterd.protocol.pacer_page import PacerPage
from haclusterd.simulator.hosts.clocks import BootClock, WallClock
from haclusterd.simulator.hosts.disks import Disk
from haclusterd.simulator.hosts.truth import Truth
from haclusterd.simulator.hosts.watchdogs import SimulatedWatchdog
from haclusterd.simulator.hosts.world import MS, SECOND, Life, World

RESTART_DELAY_US = 200 * MS
"""RestartSec of both units."""
RENEWAL_US = 60 * MS
"""From `execv` to a new image that begins to read its files."""
BOOT_TIME_US = 3 * SECOND
"""From power to the first process."""
PAGE_SIZE = 4096
PROCESSORS = 4


class Process(Protocol):
    """One life of one daemon."""

    @property
    def life(self) -> Life:
        """What its events belong to."""
        ...

    @property
    def is_at_work(self) -> bool:
        """Whether all its threads run."""
        ...

    @property
    def may_restart(self) -> bool:
        """Whether systemd starts it again; False when it refused to run at all."""
        ...


class Boot:
    """One boot of a host: its id, its clock, and what lives in memory file systems."""

    def __init__(self, host: "Host", number: int) -> None:
        self.boot_id = f"boot-{host.name}-{number}"
        self.life = Life(host.world, self.boot_id)
        self.clock = BootClock(host.world, uptime_us=BOOT_TIME_US, drift_ppm=host.drift_ppm)
        self.page = bytearray(PAGE_SIZE)
        PacerPage(self.page).format()
        PacerPage(self.page).set_empty(is_empty=True)
        self.runtime: dict[str, object] = {}
        """The runtime directory: action records by key."""
        self.watchdog: SimulatedWatchdog | None = None
        self.crashes: list[CrashRecord] = []
        self.fence_agents: list[Life] = []
        """Processes that outlive the daemon which started them."""


class Unit:
    """One unit of a host's systemd: Restart=always."""

    def __init__(self, host: "Host", name: str) -> None:
        self._host = host
        self.name = name
        self.start: Callable[[Boot], Process] | None = None
        """Makes the process."""
        self.is_enabled = True
        """False: a person has stopped it."""
        self.process: Process | None = None
        self.starts = 0
        self._is_renewing = False
        self.changed_us = 0
        """When it was last started, killed, stopped or let continue."""

    def launch(self, boot: Boot) -> None:
        """Start the process in a boot, unless it is running or stopped by a person."""
        if self.start is None or not self.is_enabled or not boot.life.is_alive or self.is_running:
            return
        self.starts += 1
        self.changed_us = self._host.world.now_us
        process = self.start(boot)
        self.process = process
        if process.life.is_alive:
            process.life.at_end(lambda: self._ended(boot, process))
        else:
            self._ended(boot, process)

    @property
    def is_running(self) -> bool:
        """Whether there is a process, paused or not."""
        return self.process is not None and self.process.life.is_alive

    @property
    def is_at_work(self) -> bool:
        """Whether there is a process of which nothing is paused."""
        return self.process is not None and self.process.is_at_work

    def hang(self, thread: Life) -> None:
        """Stop one thread of the process."""
        self._say(f"hang a thread ({thread.name}) of")
        thread.pause()

    def unhang(self, thread: Life) -> None:
        """Let it continue."""
        self._say(f"let a thread go on ({thread.name}) of")
        thread.resume()

    def kill(self) -> None:
        """SIGKILL."""
        if self.process is not None:
            self._say("kill")
            self.process.life.end()

    def renew(self) -> None:
        """End the process, which has put everything in order, for a new image of itself (`execv`)."""
        if self.process is not None:
            self._say("renew")
            self._is_renewing = True
            self.process.life.end()

    def pause(self) -> None:
        """SIGSTOP."""
        if self.process is not None:
            self._say("pause")
            self.process.life.pause()

    def resume(self) -> None:
        """SIGCONT."""
        if self.process is not None:
            self._say("resume")
            self.process.life.resume()

    def disable(self) -> None:
        """Stop it for good, without asking it."""
        self.is_enabled = False
        self.kill()

    def enable(self) -> None:
        """Start it again."""
        self.is_enabled = True
        if self._host.boot is not None:
            self.launch(self._host.boot)

    def _say(self, what: str) -> None:
        self.changed_us = self._host.world.now_us
        self._host.world.record(f"{self._host.name} {what} {self.name}")

    def _ended(self, boot: Boot, process: Process) -> None:
        self.changed_us = self._host.world.now_us
        pause_us = RENEWAL_US if self._is_renewing else RESTART_DELAY_US
        self._is_renewing = False
        if process.may_restart and boot.life.is_alive:
            boot.life.after(pause_us, lambda: self.launch(boot))


class Host:
    """One machine."""

    def __init__(
        self, world: World, truth: Truth, name: NodeName, *, drift_ppm: int = 0, node: NodeName | None = None
    ) -> None:
        self.world = world
        self.name = name
        """Of the machine: what runs on it, and which way its packets go, is known by this."""
        self.node = name if node is None else node
        """Which node its daemon says it is; a copy of a machine says what the first one says."""
        self.marks: tuple[MachineMark, ...] = (MachineMark("DMI product_uuid", str(name)),)
        """What names it; that of a copy is another's only where the whole machine was copied."""
        self.drift_ppm = drift_ppm
        self.is_unplugged = False
        """A person keeps it off."""
        self.watchdog_timeout_ms = 0
        """0: it has no watchdog device."""
        self.watchdog_drift_ppm = 0
        self.watchdog_reset_ms = 0
        """From the device's expiry to the reset; safety.md §2 allows a second."""
        self.is_watchdog_taken = False
        """Another program holds its watchdog device open: nobody else can open it."""
        self.load_percent = 0
        """How busy its processors are."""
        self.disk = Disk(world, name)
        self.versions: dict[int, NewVersion] = {}
        """Of the configuration, in its history."""
        self.wall = WallClock(world)
        self.boot: Boot | None = None
        self.boots = 0
        self.keeps_boot_id = False
        """Whether every boot has the id of the one before, as a container has that of the machine's kernel."""
        self._stood: list[tuple[int, int]] = []
        """When each pause in which its clocks stood still ended, and how long it was."""
        self.watchdog_resets = 0
        """How often its watchdog device has reset it."""
        self.feeds_held_back = 0
        """How often its pacer was stopped between its look at the clock and its write to the device."""
        self.changed_us = 0
        """When it last booted, died, stalled or continued."""
        self.pacer = Unit(self, "pacer")
        self.brain = Unit(self, "brain")
        self._truth = truth

    def read(self) -> MachineLoad:
        """See `LoadMeter.read`."""
        return MachineLoad(PROCESSORS, self.load_percent)

    @property
    def is_powered(self) -> bool:
        """Whether it has power."""
        return self.boot is not None

    def power_on(self) -> None:
        """Boot; the pacer starts first, the daemon a little later."""
        if self.boot is not None or self.is_unplugged:
            return
        self.boots += 0 if self.keeps_boot_id and self.boots else 1
        boot = Boot(self, self.boots)
        self.boot = boot
        self._truth.host_boots(self.name)
        if self.watchdog_timeout_ms:
            boot.watchdog = SimulatedWatchdog(
                self.world,
                self.watchdog_timeout_ms,
                lambda: self._expired(boot),
                drift_ppm=self.watchdog_drift_ppm,
                reset_ms=self.watchdog_reset_ms,
            )
        self._say(f"power on ({boot.boot_id})")
        boot.life.after(5 * MS, lambda: self.pacer.launch(boot))
        boot.life.after(50 * MS, lambda: self.brain.launch(boot))

    def power_off(self) -> None:
        """Cut the power: nobody is notified, nothing is synced."""
        boot, self.boot = self.boot, None
        if boot is None:
            return
        self._say("power off")
        if boot.watchdog is not None:
            boot.watchdog.disarm()
        self._truth.host_dies(self.name)
        boot.life.end()
        self.disk.lose_power()

    def _expired(self, boot: Boot) -> None:
        if self.boot is boot:
            self.watchdog_resets += 1
            self._say("is reset by its watchdog")
            self.reboot()

    def reboot(self) -> None:
        """Cut the power, and give it back."""
        self.power_off()
        self.world.after(BOOT_TIME_US, self.power_on)

    def stall(self, *, with_clocks: bool = False) -> None:
        """Stop everything on it for a while, as a paused virtual machine.

        `with_clocks`: CLOCK_BOOTTIME and the wall clock stand still meanwhile, and every timer with them; an emulated
        watchdog too. Otherwise they run on.
        """
        boot = self.boot
        if boot is None:
            return
        self._say(f"stalls{' with its clocks' if with_clocks else ''}")
        if not with_clocks:
            boot.life.pause()
            return
        boot.clock.freeze()
        boot.life.freeze()
        if boot.watchdog is not None:
            boot.watchdog.freeze()

    def go_on(self) -> None:
        """End the stall, of either kind."""
        boot = self.boot
        if boot is None:
            return
        self._say("goes on")
        stood_us = boot.clock.thaw()
        if stood_us:
            self._stood.append((self.world.now_us, stood_us))
        self.wall.offset_ms -= stood_us // MS
        if boot.watchdog is not None:
            boot.watchdog.thaw()
        boot.life.thaw()
        boot.life.resume()

    def stood_us(self, since_us: int) -> int:
        """Return for how long its clocks have stood still in pauses that ended after an instant."""
        return sum(stood_us for ended_us, stood_us in self._stood if ended_us >= since_us)

    def calm_us(self) -> int:
        """Return for how long it has run undisturbed; negative when it does not run as it should."""
        if self.boot is None or not self.pacer.is_at_work or not self.brain.is_at_work:
            return -1
        return self.world.now_us - max(self.changed_us, self.pacer.changed_us, self.brain.changed_us)

    def _say(self, what: str) -> None:
        self.changed_us = self.world.now_us
        self.world.record(f"{self.name} {what}")
