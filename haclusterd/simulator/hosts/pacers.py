"""The pacer process of a host, and the daemon's end of it, on a virtual clock.

Invariant: the machine, the heartbeat and the shared page are those of production; only the socket, the wire (`sealed`)
and the clock are simulated.
"""

from collections.abc import Callable, Sequence

from haclusterd.machines.pacer import Effect, PacerMachine, PublishLease, Report, SendHeartbeat
from haclusterd.machines.watchdog_feeding import FeedWatchdog, OpenWatchdog, Panic
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import NEVER, Instant
from haclusterd.model.pacer import NO_LEASE, Heartbeat, PacerReport, PacerSettings
from haclusterd.model.rules_in_force import SafetyRules
from haclusterd.model.watchdog import Watchdog, WatchdogSettings
from haclusterd.protocol.pacer_page import PacerPage
from haclusterd.simulator.hosts.hosts import Boot, Host
from haclusterd.simulator.hosts.network import Datagrams
from haclusterd.simulator.hosts.sealed import Sealed, opened, seal
from haclusterd.simulator.hosts.watchdogs import SimulatedWatchdog
from haclusterd.simulator.hosts.world import MS, Event, Life

SOCKET_US = 150
"""From one end of the socket between daemon and pacer to the other."""

RECONNECT_US = 100 * MS

LeasePublished = Callable[[NodeName, Incarnation, Instant], None]


class PacerProcess:
    """One life of a host's pacer."""

    may_restart = True

    def __init__(
        self, host: Host, boot: Boot, datagrams: Datagrams, rules: SafetyRules, lease_published: LeasePublished
    ) -> None:
        self.life = Life(host.world, f"pacer of {host.name}", boot.life)
        self.page = PacerPage(boot.page)
        inherited = self.page.held_lease()
        self._host = host
        self._boot = boot
        self._datagrams = datagrams
        self._lease_published = lease_published
        self._machine = PacerMachine(boot.clock.now(), inherited, rules=rules)
        self._settings: PacerSettings | None = None
        self._keys: dict[NodeName, bytes] = {}
        self._nodes: tuple[NodeName, ...] = ()
        self._sent: dict[NodeName, int] = {}
        """How many heartbeats each peer was sent."""
        self._brain: SimulatedPacer | None = None
        self.stops_before_next_write = False
        """A fault: it is stopped (SIGSTOP) when it has decided to feed the watchdog, before it does."""
        self._timer: Event | None = None
        self._timer_at = NEVER
        datagrams.listen(host.name, self.life, self._received)

    @property
    def is_at_work(self) -> bool:
        """See `Process.is_at_work`."""
        return self.life.is_running

    def connect(self, brain: "SimulatedPacer", settings: PacerSettings) -> None:
        """Take a daemon's settings; it gets reports of what is heard from now on."""
        self._brain = brain
        self._settings = settings
        self._keys = {peer.name: peer.key for peer in settings.peers}
        self._nodes = (settings.node, *(peer.name for peer in settings.peers))
        self._perform(self._machine.configured(settings, self._boot.clock.now()))

    def disconnect(self, brain: "SimulatedPacer") -> None:
        """The daemon is gone."""
        if self._brain is brain:
            self._brain = None
            self._machine.brain_gone(self._boot.clock.now())
            self._arm()

    def _received(self, datagram: Sealed) -> None:
        if self._settings is None:
            return
        heartbeat = opened(datagram, self._settings.node, self._keys)
        if isinstance(heartbeat, Heartbeat):
            self._perform(self._machine.heartbeat_received(heartbeat.sender, heartbeat, self._boot.clock.now()))

    def _tick(self) -> None:
        self._timer_at = NEVER
        now = self._boot.clock.now()
        self._perform(self._machine.tick(self.page.read(self._nodes), now))

    def _perform(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case SendHeartbeat(peer, link, heartbeat):
                    self._send(peer, link, heartbeat)
                case PublishLease(lease):
                    self.page.publish_lease(lease)
                    if self._settings is not None:
                        self._lease_published(self._host.name, self._settings.incarnation, lease.until)
                case Report(report):
                    self._report(report)
                case OpenWatchdog(settings):
                    self._open_watchdog(settings)
                case FeedWatchdog(until):
                    self._feed(until)
                case Panic():
                    self._host.reboot()
        self._arm()

    def _send(self, peer: NodeName, link: int, heartbeat: Heartbeat) -> None:
        number = self._sent.get(peer, 0)
        self._sent[peer] = number + 1
        self._datagrams.send(self._host.name, peer, seal(heartbeat, self._keys[peer], number=number), link)

    def _open_watchdog(self, settings: WatchdogSettings) -> None:
        device, now = self._boot.watchdog, self._boot.clock.now()
        if device is None or self._host.is_watchdog_taken:
            why = "no such device" if device is None else "device or resource busy"
            self._perform(self._machine.watchdog_failed(f"{settings.device}: {why}", now))
            return
        device.feed()
        self._perform(self._machine.watchdog_opened(Watchdog(device.timeout_ms, settings.device, "simulated"), now))

    def _feed(self, until: Instant) -> None:
        """Look at the clock and write; a fault may stop this process between the two."""
        device = self._boot.watchdog
        if device is None or self._boot.clock.now() >= until:
            return
        if self.stops_before_next_write:
            self.stops_before_next_write = False
            self._host.feeds_held_back += 1
            self._host.world.record(f"{self._host.name} pacer is stopped between check and write")
            self.life.pause()
        self.life.after(0, lambda: self._write(device))

    def _write(self, device: SimulatedWatchdog) -> None:
        device.feed()
        self._machine.watchdog_fed(self._boot.clock.now())

    def _report(self, report: PacerReport) -> None:
        brain = self._brain
        if brain is not None:
            brain.life.after(SOCKET_US, lambda: brain.reported(report))

    def _arm(self) -> None:
        """Have `tick` called when the machine wants it, and not before it can have something to do."""
        wanted = self._machine.wake_at
        if wanted == self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = wanted
        now = self._boot.clock.now()
        # What is due at this very millisecond was done in it: the machine sends once per instant.
        due = wanted if wanted > now else Instant(now + 1)
        self._timer = None if wanted >= NEVER else self.life.at(self._boot.clock.virtual_us(due), self._tick)


class SimulatedPacer:
    """The `Pacer` of one daemon."""

    def __init__(self, host: Host, boot: Boot, life: Life, loading_us: int) -> None:
        """`loading_us` is how long this daemon takes to read snapshot and journal."""
        self.life = life
        self._loading_us = loading_us
        self._host = host
        self._boot = boot
        self._page = PacerPage(boot.page)
        self._settings: PacerSettings | None = None
        self._changed: Callable[[PacerReport], None] | None = None
        self._report: PacerReport | None = None
        self._withdrawn: dict[NodeName, set[Incarnation]] = {}
        self._are_withdrawals_known = False
        self._connected_to: PacerProcess | None = None
        self._answered_by: PacerProcess | None = None
        life.at_end(self._left)

    def start(self, settings: PacerSettings, changed: Callable[[PacerReport], None]) -> None:
        """See `Pacer.start`."""
        self._settings = settings
        self._changed = changed
        self._page.begin_brain()
        self._connect()

    def configure(self, settings: PacerSettings) -> None:
        """See `Pacer.configure`."""
        self._settings = settings
        if self._are_withdrawals_known:
            self._page.say_known(settings.incarnation.token)
        process = self._connected_to
        if process is not None:
            process.life.after(SOCKET_US, lambda: process.connect(self, settings))

    def report(self) -> PacerReport | None:
        """See `Pacer.report`."""
        return self._report

    def reported(self, report: PacerReport) -> None:
        """Take a report from the socket."""
        self._report = report
        self._answered_by = self._connected_to
        if self._changed is not None:
            self._changed(report)

    def is_answering(self) -> bool:
        """See `Pacer.is_answering`."""
        process = self._connected_to
        return process is not None and process is self._answered_by and process.life.is_alive

    def lease_until(self) -> Instant:
        """See `Pacer.lease_until`."""
        if self._settings is None:
            return NO_LEASE
        return self._page.lease_until(self._settings.incarnation.token)

    def stamp_main(self) -> None:
        """See `Pacer.stamp_main`."""
        self._page.stamp_main(self._boot.clock.now())

    def stamp_raft(self) -> None:
        """See `Pacer.stamp_raft`."""
        self._page.stamp_raft(self._boot.clock.now())

    def main_silence_ms(self) -> int:
        """See `Pacer.main_silence_ms`."""
        stamped_at = self._page.main_stamped_at()
        return self._boot.clock.now() - stamped_at if stamped_at else 0

    def set_empty(self, *, is_empty: bool) -> None:
        """See `Pacer.set_empty`."""
        self._page.set_empty(is_empty=is_empty)

    def set_condemned(self, *, is_condemned: bool) -> None:
        """See `Pacer.set_condemned`."""
        self._page.set_condemned(is_condemned=is_condemned)

    def set_follower(self, *, is_follower: bool) -> None:
        """See `Pacer.set_follower`."""
        self._page.set_follower(is_follower=is_follower)

    def set_links(self, nodes: tuple[NodeName, ...]) -> None:
        """See `Pacer.set_links`."""
        self._page.set_links(nodes)

    def withdraw(self, node: NodeName, incarnation: Incarnation) -> None:
        """See `Pacer.withdraw`."""
        self._withdrawn.setdefault(node, set()).add(incarnation)
        if self._are_withdrawals_known:
            self._page.withdraw(node)

    def reinstate(self, node: NodeName, incarnation: Incarnation) -> None:
        """See `Pacer.reinstate`."""
        incarnations = self._withdrawn.get(node)
        if incarnations is None:
            return
        incarnations.discard(incarnation)
        if not incarnations:
            del self._withdrawn[node]
            self._page.reinstate(node)

    def withdrawals_known(self) -> None:
        """See `Pacer.withdrawals_known`.

        The store has loaded within one event; the time that takes passes here. What it withdrew comes into the page at
        its end, since nobody may rely on its coming earlier.
        """
        self.life.after(self._loading_us, self._say_known)

    def _say_known(self) -> None:
        self._are_withdrawals_known = True
        for node in sorted(self._withdrawn):
            self._page.withdraw(node)
        if self._settings is not None:
            self._page.say_known(self._settings.incarnation.token)

    def stop(self) -> None:
        """See `Pacer.stop`."""
        self._changed = None
        self._left()

    def _connect(self) -> None:
        """Connect when there is a pacer that does not know us, and look again soon."""
        process = self._host.pacer.process
        if isinstance(process, PacerProcess) and process.life.is_alive and process is not self._connected_to:
            self._connected_to = process
            settings = self._settings
            assert settings is not None
            process.life.after(SOCKET_US, lambda: process.connect(self, settings))
        if self._changed is not None:
            self.life.after(RECONNECT_US, self._connect)

    def _left(self) -> None:
        process = self._connected_to
        if process is not None:
            process.life.after(SOCKET_US, lambda: process.disconnect(self))
