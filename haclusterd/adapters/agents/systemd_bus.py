"""systemd over D-Bus (org.freedesktop.systemd1(5)): one connection, on a thread and a loop of its own.

Invariants:

* The main loop never waits for the bus: each request is a coroutine on this thread, and the caller has a timer.
* Messages are sent in the order of the requests. A stop that is requested after a start reaches systemd after it, even
  if the start was given up in between.
* Only systemd itself is believed. Any program on the machine may send a signal to this connection, so the sender of
  each is compared with the owner of systemd's name, which only the bus daemon can tell.
* At most as many requests await their answers as the bus daemon accepts from one connection: one that it refused would
  be a failed stop. Further ones wait for their turn, in order.
* A connection that ends is made again, forever, with pauses of at most a second. Callers that await an answer at that
  moment get `BusLostError`: it is then unknown whether systemd got the request.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final

from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus
from dbus_fast.errors import AuthError, DBusError, InvalidAddressError

from haclusterd.adapters.machine.real_time import run_first
from haclusterd.model.records import dataclass, field

_log = logging.getLogger(__name__)

DEFAULT_ADDRESS: Final = "unix:path=/run/dbus/system_bus_socket"
BUS, BUS_PATH = "org.freedesktop.DBus", "/org/freedesktop/DBus"
SYSTEMD, MANAGER_PATH = "org.freedesktop.systemd1", "/org/freedesktop/systemd1"
MANAGER = f"{SYSTEMD}.Manager"
UNIT = f"{SYSTEMD}.Unit"
SERVICE = f"{SYSTEMD}.Service"
PROPERTIES = f"{BUS}.Properties"
UNITS_PATH = f"{MANAGER_PATH}/unit/"
CONNECT_TIMEOUT_S = 5
PAUSES_S = (0.05, 1.0)
"""Pause before the connection is tried again: the first, which doubles, and the longest."""
LOOK_AGAIN_S = 0.02
"""Pause between two checks for a connection, while there is none."""
UNANSWERED_MAX = 64
"""Maximum number of requests on one connection at a time. The bus daemon accepts 128 (`max_replies_per_connection`),
and still counts those that were given up here."""
TOO_MANY: Final = f"{BUS}.Error.LimitsExceeded"
"""The bus daemon's refusal; a refused message was not passed on."""
JOBS_REMEMBERED = 1024
"""Number of remembered results of other jobs: the signal may come before the answer that names the job."""


class BusLostError(Exception):
    """The connection ended while an answer was awaited."""


class BusError(Exception):
    """systemd, or the bus daemon, refused; `name` is the error's name."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name
        self.text = text


@dataclass(slots=True)
class _Watch:
    """A caller to be informed when a unit's state changes."""

    path: str
    changed: Callable[[str], None]
    """Called on the bus's thread with the new ActiveState; with an empty text when changes may have been missed."""


@dataclass(slots=True, eq=False)
class Connection:
    """One connection, from its Hello to its end. Belongs to the bus's thread."""

    bus: MessageBus
    owner: str
    """The unique name of systemd on this connection."""
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(UNANSWERED_MAX))
    jobs: dict[str, "asyncio.Future[str]"] = field(default_factory=dict)
    ended_jobs: "deque[tuple[str, str]]" = field(default_factory=lambda: deque(maxlen=JOBS_REMEMBERED))

    async def call(
        self, path: str, interface: str, member: str, signature: str = "", *body: object, destination: str = SYSTEMD
    ) -> list[Any]:
        """Send a request when it is its turn, and return the answer. Raises BusError and BusLostError."""
        async with self.turns:
            return await self.call_now(path, interface, member, signature, *body, destination=destination)

    async def call_now(
        self, path: str, interface: str, member: str, signature: str = "", *body: object, destination: str = SYSTEMD
    ) -> list[Any]:
        """Send a request; the message is on its way before this first suspends. Raises BusError and BusLostError.

        The caller already has its turn.
        """
        message = Message(
            destination=destination, path=path, interface=interface, member=member, signature=signature, body=[*body]
        )
        try:
            reply = await self.bus.call(message)
        except (OSError, EOFError, DBusError) as error:
            raise BusLostError(str(error)) from error
        if reply is None:
            raise BusLostError("the connection was closed")
        if reply.message_type is MessageType.ERROR:
            text = str(reply.body[0]) if reply.body else ""
            raise BusError(reply.error_name or "", text)
        return list(reply.body)

    async def job_ended(self, job: str) -> str:
        """Return a job's result as systemd names it (`done`, `failed`, ...). Raises BusLostError."""
        for path, result in self.ended_jobs:
            if path == job:
                return result
        future = self.jobs.setdefault(job, asyncio.get_running_loop().create_future())
        try:
            return await asyncio.shield(future)
        finally:
            self.jobs.pop(job, None)


class SystemdBus:
    """The bus; see the module. Public methods may be called on any thread; coroutines run on the bus's own."""

    def __init__(self, address: str = DEFAULT_ADDRESS) -> None:
        self._address = address
        self._loop: asyncio.AbstractEventLoop | None = None
        self._keeper: asyncio.Task[None]
        self.thread: threading.Thread
        self._connection: Connection | None = None
        self._watches: dict[str, _Watch] = {}
        self._cancel_watch: dict[str, Callable[[], None]] = {}
        """By key, what cancels each watch; belongs to the caller's thread."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._problem = "the connection is being made"
        self._away_since = time.monotonic()
        self._next_reload: asyncio.Task[None] | None = None
        self._last_reload: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start the thread and connect, if that is not done yet. Must always be called on the same thread."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._keeper = self._loop.create_task(self._keep_connected())
            self.thread = threading.Thread(target=self._run, args=(self._loop,), name="systemd-bus", daemon=True)
            self.thread.start()

    def stop(self) -> None:
        """End the connection and the thread without waiting; no request may be made any more."""
        if self._loop is not None:
            _call(self._loop, self._keeper.cancel)

    def away(self) -> tuple[float, str] | None:
        """Return for how many seconds there has been no connection, and why; None: there is one, or none is needed."""
        if self._loop is None or self._connection is not None:
            return None
        return time.monotonic() - self._away_since, self._problem

    def do(self, work: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
        """Run a coroutine on the bus's thread, after all earlier requests; return how to cancel it."""
        self.begin()
        assert self._loop is not None
        begun: list[asyncio.Task[None]] = []
        loop = self._loop

        def begin() -> None:
            task = loop.create_task(work())
            begun.append(task)
            self._tasks.add(task)
            task.add_done_callback(self._finished)

        def cancel() -> None:
            for task in begun:
                task.cancel()

        _call(loop, begin)
        return lambda: _call(loop, cancel)

    def watch(self, key: str, unit: str, changed: Callable[[str], None]) -> None:
        """Call `changed`, on the bus's thread, whenever the unit's ActiveState changes; one watch for each key."""

        async def begin() -> None:
            # Signals come from the path of the unit's own name, whatever other names it has.
            path = unit_path(unit)
            with suppress(BusError):
                path = unit_path(await self.property(path, UNIT, "Id"))
            await self._unwatch(key)
            self._watches[key] = _Watch(path, changed)
            connection = self._connection
            if connection is not None:
                with suppress(BusLostError, BusError):
                    await _match(connection, path, is_wanted=True)
                    changed("")

        self._cancel_watch.pop(key, _nothing)()
        self._cancel_watch[key] = self.do(begin)

    def unwatch(self, key: str) -> None:
        """End a watch."""
        cancel = self._cancel_watch.pop(key, None)
        if cancel is not None:
            cancel()
            self.do(lambda: self._unwatch(key))

    async def _unwatch(self, key: str) -> None:
        watch, connection = self._watches.pop(key, None), self._connection
        if watch is not None and connection is not None:
            with suppress(BusLostError, BusError):
                await _match(connection, watch.path, is_wanted=False)

    # On the bus's thread

    async def connected(self) -> Connection:
        """Wait until there is a connection; one that has just ended is none, even if that was not noticed yet."""
        while self._connection is None or not self._connection.bus.connected:
            await asyncio.sleep(LOOK_AGAIN_S)
        return self._connection

    async def ask(self, path: str, interface: str, member: str, signature: str = "", *body: object) -> list[Any]:
        """Send a request that may be sent twice: if the connection is lost, on the next one; if the bus daemon accepts
        no more, a little later. Raises BusError."""
        while True:
            connection = await self.connected()
            try:
                return await connection.call(path, interface, member, signature, *body)
            except BusLostError:
                continue
            except BusError as error:
                if error.name != TOO_MANY:
                    raise
                await asyncio.sleep(LOOK_AGAIN_S)

    async def properties(self, path: str, interface: str) -> Mapping[str, Any]:
        """Return all properties of an object's interface. Raises BusError."""
        [values] = await self.ask(path, PROPERTIES, "GetAll", "s", interface)
        return {name: variant.value for name, variant in values.items()}

    async def property(self, path: str, interface: str, name: str) -> Any:
        """Return one property. Raises BusError."""
        [variant] = await self.ask(path, PROPERTIES, "Get", "ss", interface, name)
        assert isinstance(variant, Variant)
        return variant.value

    async def reload(self, others_have_written: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Have systemd read its files again (`daemon-reload`), which takes long: once for all who ask meanwhile.

        What was written before this call is read. `others_have_written` waits, for a limited time, for others who are
        about to ask. Raises BusError.
        """
        if self._next_reload is None:
            reloading = self._reload_after(self._last_reload, others_have_written)
            self._next_reload = asyncio.get_running_loop().create_task(reloading)
        await asyncio.shield(self._next_reload)

    async def _reload_after(
        self, previous: "asyncio.Task[None] | None", others_have_written: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        if previous is not None:
            await asyncio.wait([previous])
        await others_have_written()
        self._last_reload, self._next_reload = self._next_reload, None
        await self.ask(MANAGER_PATH, MANAGER, "Reload")

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        run_first()
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._keeper)
        except asyncio.CancelledError:
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        finally:
            loop.close()

    def _finished(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("work on the bus to systemd failed", exc_info=error)

    async def _keep_connected(self) -> None:
        pause_s = PAUSES_S[0]
        while True:
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    connection = await self._connect()
            except (OSError, EOFError, TimeoutError, AuthError, InvalidAddressError, BusLostError, BusError) as error:
                self._problem = str(error) or type(error).__name__
                await asyncio.sleep(pause_s)
                pause_s = min(PAUSES_S[1], pause_s * 2)
                continue
            pause_s = PAUSES_S[0]
            self._connection = connection
            for watch in self._watches.values():
                watch.changed("")
            problem = "the connection was closed"
            try:
                await connection.bus.wait_for_disconnect()  # type: ignore[no-untyped-call]  # the library's own omission
            except (OSError, EOFError, DBusError) as error:
                problem = str(error) or problem
            finally:
                connection.bus.disconnect()
            self._lost(connection, problem)

    def _lost(self, connection: Connection, problem: str) -> None:
        _log.warning("the connection to systemd over D-Bus ended: %s", problem)
        self._connection = None
        self._problem, self._away_since = problem, time.monotonic()
        for future in connection.jobs.values():
            if not future.done():
                future.set_exception(BusLostError(problem))

    async def _connect(self) -> Connection:
        bus = MessageBus(bus_address=self._address)
        try:
            await bus.connect()
            connection = Connection(bus, owner="")
            bus.add_message_handler(lambda message: self._heard(connection, message))
            named = f"type='signal',sender='{BUS}',member='NameOwnerChanged',arg0='{SYSTEMD}'"
            await _add_match(connection, named)
            [connection.owner] = await connection.call(BUS_PATH, BUS, "GetNameOwner", "s", SYSTEMD, destination=BUS)
            await _add_match(
                connection, f"type='signal',sender='{SYSTEMD}',interface='{MANAGER}',member='JobRemoved'"
            )
            await connection.call(MANAGER_PATH, MANAGER, "Subscribe")
            for watch in self._watches.values():
                await _match(connection, watch.path, is_wanted=True)
        except BaseException:
            with suppress(OSError, AttributeError):
                bus.disconnect()
            raise
        return connection

    def _heard(self, connection: Connection, message: Message) -> None:
        """Handle a signal; any other message is the library's."""
        if message.message_type is not MessageType.SIGNAL:
            return
        if message.sender == BUS and message.member == "NameOwnerChanged":
            # systemd re-executed itself or came back to the bus: subscriptions and matches must be made again.
            if connection.owner and message.body[2] != connection.owner:
                connection.bus.disconnect()
        elif message.sender != connection.owner:
            return
        elif message.member == "JobRemoved" and message.path == MANAGER_PATH:
            self._job_removed(connection, str(message.body[1]), str(message.body[3]))
        elif message.member == "PropertiesChanged" and message.body[0] == UNIT:
            self._unit_changed(str(message.path), message.body[1])

    def _job_removed(self, connection: Connection, job: str, result: str) -> None:
        connection.ended_jobs.append((job, result))
        waiting = connection.jobs.get(job)
        if waiting is not None and not waiting.done():
            waiting.set_result(result)

    def _unit_changed(self, path: str, changed: Mapping[str, Variant]) -> None:
        state = changed.get("ActiveState")
        if state is not None:
            for watch in [each for each in self._watches.values() if each.path == path]:
                watch.changed(str(state.value))


def unit_path(unit: str) -> str:
    """Return a unit's object path (systemd: sd_bus_path_encode(3))."""
    escaped = "".join(
        char if char.isascii() and char.isalnum() and (index or not char.isdigit()) else
        "".join(f"_{byte:02x}" for byte in char.encode())
        for index, char in enumerate(unit)
    )  # fmt: skip
    return UNITS_PATH + escaped


async def _add_match(connection: Connection, rule: str) -> None:
    await connection.call(BUS_PATH, BUS, "AddMatch", "s", rule, destination=BUS)


async def _match(connection: Connection, path: str, *, is_wanted: bool) -> None:
    rule = f"type='signal',sender='{SYSTEMD}',interface='{PROPERTIES}',member='PropertiesChanged',path='{path}'"
    member = "AddMatch" if is_wanted else "RemoveMatch"
    await connection.call(BUS_PATH, BUS, member, "s", rule, destination=BUS)


def _call(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # The loop is closed: the bus was stopped.
        loop.call_soon_threadsafe(call)


def _nothing() -> None:
    return None
