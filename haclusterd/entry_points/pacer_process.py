"""`haclusterd-pacer`: the process that keeps a node's heartbeats and lease while the daemon restarts, hangs or works.

One thread, one loop: datagrams, the daemon's socket, the clock. All decisions are the machine's (machines/pacer.py).

Invariant: nothing in the loop can wait: no name lookup, no disk, no log that is not written at once. Beside the
standard library only msgspec is imported, for the dataclasses (model/records.py), and all of it before the memory is
locked. Garbage collection is off; nothing here makes cycles.

It holds the watchdog device, if the daemon names one. SIGHUP has the program that is installed now say that it can be
executed (`--check`), and then executes it in this process, which keeps the device open. SIGTERM and SIGINT leave the
device counting, unless this node is proven empty: then it is let go of.

Exit codes: 0 after SIGTERM or SIGINT; 1 when the runtime directory cannot be used or was taken away; 3 when another
pacer serves it.
"""

import argparse
import fcntl
import gc
import os
import select
import selectors
import signal
import socket
import syslog
import time
from collections import deque
from collections.abc import MutableMapping
from pathlib import Path

from haclusterd.adapters.machine.real_time import PACER_PRIORITY, lock_memory, run_first
from haclusterd.adapters.machine.service_notification import notify
from haclusterd.adapters.machine.watchdog_device import WatchdogDevice, inherited_device, open_device, panic
from haclusterd.adapters.network.refusals import SOURCES_MAX, Refusals, source_of
from haclusterd.adapters.pacer.heartbeat_sockets import HeartbeatSockets
from haclusterd.adapters.pacer.listener import BrainClient, PacerListener
from haclusterd.adapters.pacer.page_file import SOCKET_NAME, MappedPage, make_page
from haclusterd.adapters.pacer.reload_check import ReloadCheck
from haclusterd.adapters.processes.own_command import own_command
from haclusterd.machines.link_filtering import LetThrough, LinkFiltering
from haclusterd.machines.pacer import Effect, PacerMachine, PublishLease, Report, SendHeartbeat
from haclusterd.machines.watchdog_feeding import FeedWatchdog, OpenWatchdog, Panic
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import NO_LEASE, Heartbeat, HeldLease, Link, PacerReport, PacerSettings, PeerAddress
from haclusterd.model.records import dataclass, replace
from haclusterd.protocol import heartbeat as heartbeat_protocol
from haclusterd.protocol import pacer_socket
from haclusterd.wire.framing import FrameBuffer, FrameTooLongError

LOCK_NAME = "pacer.lock"
EXIT_UNUSABLE = 1
EXIT_TAKEN = 3
LONGEST_WAIT_MS = 1_000
"""Between two tries to listen on a port in use."""


CHECK = "--check"
SETTINGS_VARIABLE = "HACLUSTERD_PACER_SETTINGS"
"""Names the descriptor by which one image of this process leaves its settings to the next."""
STANDARD_ERROR = 2
FILTERED = "a flood, which the kernel drops"
LONGEST_LINE = 1_000
"""Fits, in whatever letters, what a writable pipe takes without waiting (PIPE_BUF, pipe(7))."""


def boottime() -> Instant:
    """Return CLOCK_BOOTTIME in milliseconds."""
    return Instant(time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000)


def say(line: str, priority: int = syslog.LOG_INFO) -> None:
    """Write a line to standard error, unless its reader is behind or gone: a log must not hold a heartbeat back.

    `priority` is one of syslog(3); the journal reads it (sd-daemon(3)).
    """
    mark = f"<{priority}>" if "JOURNAL_STREAM" in os.environ else ""
    try:
        _, writable, _ = select.select([], [STANDARD_ERROR], [], 0)
        if writable:
            os.write(STANDARD_ERROR, f"{mark}haclusterd-pacer: {line}"[:LONGEST_LINE].encode() + b"\n")
    except OSError:
        return


class PacerProcess:
    """The machine with its sockets, its page and the watchdog device. `directory` is locked by the caller."""

    def __init__(
        self, directory: Path, *, is_first: bool, device: WatchdogDevice | None = None,
        settings: PacerSettings | None = None,
    ) -> None:  # fmt: skip
        """`is_first`: no pacer served this directory before, so nothing was started under it; `device` is open.

        `settings`: those of the image before, in this very process.
        """
        self._inherited = settings
        self._selector = selectors.DefaultSelector()
        self._mapped: MappedPage = make_page(directory, is_empty=is_first)
        self._page = self._mapped.page
        self._machine = PacerMachine(boottime(), self._page.held_lease())
        self._sockets = HeartbeatSockets(self._selector, self._receive)
        self._filtering = LinkFiltering()
        self._filter_problem = ""
        self._listener = PacerListener(
            self._selector, directory / SOCKET_NAME, received=self._take_message, closed=self._brain_gone
        )
        self._refusals = Refusals()
        self._refused_lately: set[tuple[str, heartbeat_protocol.Rejection]] = set()
        """Hosts and reasons that need no second look before the next look around."""
        self._brain: BrainClient | None = None
        self._settings: PacerSettings | None = None
        self._names: tuple[NodeName, ...] = ()
        self._peers: dict[NodeName, PeerAddress] = {}
        self._keys: dict[NodeName, bytes] = {}
        self._spelled: tuple[Heartbeat, bytes] | None = None
        """The newest heartbeat as a datagram: it goes to all addresses of its peer."""
        self._taken: deque[bytes] = deque(maxlen=heartbeat_protocol.MAXIMUM_NODES)
        """The newest authentic datagrams: each comes once more over every other network, and says nothing then."""
        self._lease_until = NO_LEASE
        self._had_lease = False
        self._stalled_at: Instant | None = None
        self._errors: tuple[str, ...] = ()
        self._looked_at = boottime()
        self._exit_code: int | None = None
        self._is_to_renew = False
        self._check = ReloadCheck(self._selector, self._take_answer)
        self._watchdog_problem = ""
        self._device = device
        if device is not None:
            self._machine.watchdog_opened(device.watchdog, boottime())

    def run(self) -> int:
        """Serve until a signal; return the exit code. Raises OSError when the directory cannot be used."""
        self._listener.open()
        self._catch_signals()
        if self._inherited is not None:
            # The daemon may be away as well, in an upgrade of both: heartbeats do not wait for it.
            self._configure(self._inherited)
            self._machine.brain_gone(boottime())
        notify("READY=1")
        while self._exit_code is None:
            self._tick()
            now = boottime()
            wake_at = min(self._machine.wake_at, self._sockets.wake_at, self._filtering.wake_at)
            wait_ms = max(0, min(wake_at - now, LONGEST_WAIT_MS))
            for key, _ in self._selector.select(wait_ms / 1000):
                key.data()
        if self._is_to_renew:
            self._renew()
        notify("STOPPING=1")
        self._let_go()
        self._sockets.close()
        self._listener.close()
        return self._exit_code

    def _catch_signals(self) -> None:
        """Turn SIGTERM and SIGINT into bytes that the loop reads."""
        woken, waker = socket.socketpair(type=socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._waker = waker
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        self._selector.register(woken, selectors.EVENT_READ, lambda: self._end(woken.recv(1)))

    def _end(self, number: bytes) -> None:
        if number == bytes((signal.SIGHUP,)):
            self._check.ask([*own_command(), CHECK], boottime())
        else:
            self._exit_code = 0

    def _take_answer(self, objection: str) -> None:
        """Take the answer of the program that is installed now."""
        if objection:
            say(f"reload refused, the running program continues: {objection}", syslog.LOG_ERR)
            return
        self._exit_code = 0
        self._is_to_renew = True

    def _renew(self) -> None:
        """Put a new image into this process; the image keeps the page and the open device."""
        notify("RELOADING=1")
        device = self._device.hand_over() if self._device is not None else {}
        environment = {**os.environ, **device, **_hand_over(self._settings)}
        command = own_command()
        try:
            os.execve(command[0], command, environment)
        except OSError as error:
            say(f"cannot execute {command[0]}: {error}; ending", syslog.LOG_CRIT)

    def _let_go(self) -> None:
        """End the device's count when nothing runs here, and nothing can be started any more.

        The daemon says that it is not empty before it looks at the lease a last time, and here the lease is taken away
        before the page is read: one of both sees the other.
        """
        device = self._device
        if device is None:
            return
        if self._page.read(()).is_empty:
            held = self._page.held_lease()
            if held is not None:
                self._page.publish_lease(HeldLease(held.token, NO_LEASE))
            if self._page.read(()).is_empty:
                try:
                    device.disarm()
                    say(f"{device.watchdog.device} let go of: nothing runs here", syslog.LOG_NOTICE)
                except OSError as error:
                    say(f"{device.watchdog.device}: {error}", syslog.LOG_ERR)
                return
        watchdog = device.watchdog
        consequence = f"without a pacer this node is reset in {watchdog.timeout_ms} ms"
        say(f"{watchdog.device} continues counting: {consequence}", syslog.LOG_WARNING)

    # The clock

    def _tick(self) -> None:
        now = boottime()
        self._sockets.turn(now)
        if now - self._looked_at >= LONGEST_WAIT_MS:
            self._look_around(now)
        if now >= self._machine.wake_at and self._has_page():
            self._perform(self._machine.tick(self._page.read(self._names), now))
        for change in self._filtering.step(self._machine.heard_incarnation, now):
            self._let_through(change)
        has_lease = now < self._lease_until
        if has_lease != self._had_lease:
            self._had_lease = has_lease
            say(f"lease {'held' if has_lease else 'ended'}", syslog.LOG_NOTICE)

    def _look_around(self, now: Instant) -> None:
        self._looked_at = now
        self._check.step(now)
        self._refused_lately.clear()
        self._has_page()
        self._sockets.retry()
        for link in self._filtering.filtered:
            if self._filtering.dropped(link, self._sockets.dropped(link), now):
                self._refuse(f"datagram from {source_of(link[1][0])}", FILTERED)
        if self._sockets.errors != self._errors:
            self._errors = self._sockets.errors
            priority = syslog.LOG_WARNING if self._errors else syslog.LOG_NOTICE
            say(f"errors: {'; '.join(self._errors) or 'none any more'}", priority)

    def _has_page(self) -> bool:
        """Look whether the page still bears its name; end otherwise, since what a new daemon withdraws is not in it."""
        if self._mapped.is_in_place():
            return True
        say(f"{self._mapped.path} was removed or replaced; ending, so that a new one is made", syslog.LOG_ERR)
        self._exit_code = EXIT_UNUSABLE
        return False

    # Datagrams

    def _receive(self, datagram: bytes, host: str, link: Link | None) -> None:
        """Take a datagram. What is refused is dealt with first and costs least: there may be a flood of it."""
        settings = self._settings
        if settings is None:
            return
        heartbeat = heartbeat_protocol.decode(datagram, settings.node, self._keys)
        if isinstance(heartbeat, heartbeat_protocol.Rejection):
            if link is not None:
                self._filtering.refused(link)
            refused = host, heartbeat
            if refused not in self._refused_lately:
                if len(self._refused_lately) < SOURCES_MAX:
                    self._refused_lately.add(refused)
                self._refuse(f"datagram from {source_of(host)}", heartbeat.value)
        elif datagram not in self._taken:
            self._taken.append(datagram)
            self._perform(self._machine.heartbeat_received(heartbeat.sender, heartbeat, boottime()))

    def _let_through(self, change: LetThrough) -> None:
        """Filter a link, or do so no more; where that is refused, what comes is read and refused one by one."""
        admitted, settings = change.admitted, self._settings
        if admitted is None or settings is None:
            problem = self._sockets.let_through(change.link, ())
        else:
            opening = heartbeat_protocol.opening(admitted.peer, settings.node, admitted.boot_id, admitted.token)
            problem = self._sockets.let_through(change.link, opening)
        if problem and problem != self._filter_problem:
            self._filter_problem = problem
            flood = "a flood of datagrams cannot be filtered by the kernel, and is read instead"
            say(f"{flood}: {problem}", syslog.LOG_WARNING)

    def _refuse(self, what: str, reason: str) -> None:
        """Say that something was refused, the first time in a while."""
        line = self._refusals.line(what, reason, f"{what} refused: {reason}", boottime() / 1000)
        if line:
            say(line, syslog.LOG_WARNING)

    # The daemon

    def _take_message(self, client: BrainClient, payload: bytes) -> None:
        message = pacer_socket.decode(payload)
        if not isinstance(message, PacerSettings):
            reason = message.reason if isinstance(message, pacer_socket.Refusal) else "not for a pacer"
            self._refuse("message", reason)
            client.send(pacer_socket.encode(pacer_socket.Refusal(reason)))
            return
        if client is not self._brain:
            self._adopt(client)
        self._configure(message)

    def _adopt(self, client: BrainClient) -> None:
        """Take another connection for the daemon's; only its settings make it that."""
        if self._brain is not None:
            self._listener.drop(self._brain)
            self._machine.brain_gone(boottime())
        self._brain = client

    def _configure(self, settings: PacerSettings) -> None:
        if self._settings is None or settings.incarnation != self._settings.incarnation:
            say(f"serving {settings.node} incarnation {settings.incarnation}, {len(settings.peers)} peers")
        self._settings = settings
        self._names = (settings.node, *(peer.name for peer in settings.peers))
        self._peers = {peer.name: peer for peer in settings.peers}
        self._keys = {peer.name: peer.key for peer in settings.peers}
        self._spelled = None
        self._taken.clear()
        self._sockets.listen(settings.listen, [peer.addresses for peer in settings.peers])
        for change in self._filtering.configured(settings):
            self._let_through(change)
        self._perform(self._machine.configured(settings, boottime()))

    def _brain_gone(self, client: BrainClient) -> None:
        if client is self._brain:
            self._brain = None
            self._machine.brain_gone(boottime())
            say("the daemon has gone; heartbeats continue", syslog.LOG_NOTICE)

    # Effects

    def _perform(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case SendHeartbeat():
                    self._send(effect)
                case PublishLease(lease):
                    self._lease_until = lease.until
                    self._page.publish_lease(lease)
                case Report(report):
                    self._report(report)
                case OpenWatchdog():
                    self._open_watchdog(effect)
                case FeedWatchdog(until):
                    self._feed(until)
                case Panic(action):
                    say(f"ending this machine ({action})", syslog.LOG_CRIT)
                    say(panic(action), syslog.LOG_CRIT)

    def _open_watchdog(self, effect: OpenWatchdog) -> None:
        try:
            self._device = open_device(effect.settings, may_set_timeout=effect.may_set_timeout)
        except OSError as error:
            self._watchdog_failed(f"{effect.settings.device}: {error.strerror}")
            return
        watchdog = self._device.watchdog
        weakness = f"; weak: {watchdog.weakness}" if watchdog.weakness else ""
        say(f"{watchdog.device} ({watchdog.identity}) counts {watchdog.timeout_ms} ms{weakness}", syslog.LOG_NOTICE)
        self._perform(self._machine.watchdog_opened(watchdog, boottime()))

    def _feed(self, until: Instant) -> None:
        """Feed, unless the time for that has passed since it was decided."""
        if self._device is None or boottime() >= until:
            return
        try:
            self._device.feed()
        except BlockingIOError:
            return
        except OSError as error:
            self._watchdog_failed(f"{self._device.watchdog.device} takes no feed: {error.strerror}")
            return
        self._machine.watchdog_fed(boottime())

    def _watchdog_failed(self, problem: str) -> None:
        if problem != self._watchdog_problem:
            say(problem, syslog.LOG_ERR)
        self._watchdog_problem = problem
        self._perform(self._machine.watchdog_failed(problem, boottime()))

    def _send(self, effect: SendHeartbeat) -> None:
        peer = self._peers[effect.peer]
        if self._spelled is None or self._spelled[0] is not effect.heartbeat:
            self._spelled = effect.heartbeat, heartbeat_protocol.encode(effect.heartbeat, peer.key)
        self._sockets.send(effect.address_index, peer.addresses[effect.address_index], self._spelled[1])

    def _report(self, report: PacerReport) -> None:
        if report.stalled_at != self._stalled_at:
            self._stalled_at = report.stalled_at
            stall = "this process was stopped for more than a quarter of node-timeout"
            say(f"{stall}; silence is counted from now", syslog.LOG_WARNING)
        if self._brain is not None:
            errors = self._sockets.errors
            self._brain.send(pacer_socket.encode(replace(report, errors=errors) if errors else report))


def _hand_over(settings: PacerSettings | None) -> dict[str, str]:
    """Put the settings where the next image of this process finds them, and nobody else does."""
    if settings is None:
        return {}
    descriptor = os.memfd_create("settings", 0)
    with open(descriptor, "wb", closefd=False) as memory:
        memory.write(pacer_socket.encode(settings))
    return {SETTINGS_VARIABLE: str(descriptor)}


def inherited_settings(environment: MutableMapping[str, str]) -> PacerSettings | None:
    """Take what the image before has handed over; None where there is nothing, or nothing that can be read."""
    word = environment.pop(SETTINGS_VARIABLE, "")
    if not word.isdecimal():
        return None
    try:
        with open(int(word), "rb") as memory:
            memory.seek(0)
            frames = FrameBuffer(pacer_socket.MAXIMUM_SIZE).feed(memory.read())
    except (OSError, FrameTooLongError) as error:
        say(f"the settings of the program before cannot be read: {error}", syslog.LOG_WARNING)
        return None
    message = pacer_socket.decode(frames[0]) if frames else None
    return message if isinstance(message, PacerSettings) else None


@dataclass(frozen=True, slots=True)
class Lock:
    """A runtime directory is this process's for its life."""

    descriptor: int
    is_first: bool
    """Whether no pacer had the directory before; it is empty after a boot."""


def take_lock(directory: Path) -> Lock | None:
    """Lock a runtime directory for this process's life; None when another pacer has it. Raises OSError."""
    path = directory / LOCK_NAME
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor, is_first = os.open(path, flags | os.O_EXCL, 0o600), True
    except FileExistsError:
        descriptor, is_first = os.open(path, flags, 0o600), False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return Lock(descriptor, is_first)


def stay_on_time() -> None:
    """Do what the system permits against being late."""
    gc.collect()
    gc.freeze()
    gc.disable()
    failures = (("memory is not locked", lock_memory()), ("no real-time priority", run_first(PACER_PRIORITY)))
    for what, failure in failures:
        if failure is not None:
            say(f"{what}: {failure}", syslog.LOG_WARNING)


def main(arguments: list[str] | None = None) -> int:
    """Run the pacer; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="haclusterd-pacer",
        description="Heartbeats and lease of one cluster node. It serves one haclusterd after the other; a node whose "
        "pacer ends is silent, and will be fenced.",
        epilog=f"exit codes: 0 ended by a signal; {EXIT_UNUSABLE} the directory cannot be used; {EXIT_TAKEN} another "
        "pacer serves it",
    )
    parser.add_argument(
        "--runtime-directory",
        type=Path,
        default=Path("/run/haclusterd"),
        metavar="DIR",
        help="where the daemon finds its socket and its page (default: %(default)s)",
    )
    parser.add_argument(
        CHECK, action="store_true", help="end at once: the program is whole as far as it is needed for its work"
    )
    options = parser.parse_args(arguments)
    if options.check:
        return 0
    directory: Path = options.runtime_directory
    try:
        # Before the daemon, which is started after it; without systemd nobody else makes it after a boot.
        directory.mkdir(mode=pacer_socket.RUNTIME_MODE, parents=True, exist_ok=True)
        lock = take_lock(directory)
        if lock is None:
            say(f"another haclusterd-pacer serves {directory}; nothing was changed", syslog.LOG_CRIT)
            return EXIT_TAKEN
        process = PacerProcess(directory, is_first=lock.is_first, device=inherited_device(os.environ),
                               settings=inherited_settings(os.environ))  # fmt: skip
        stay_on_time()
        return process.run()
    except OSError as error:
        say(f"cannot use {directory}: {error}", syslog.LOG_CRIT)
        return EXIT_UNUSABLE
