"""`crm monitor`: the loop between the daemon's answers, the keys and the picture.

Never more than DRAWS_PER_S pictures a second, and none while nothing changes. Where there is no terminal, or nobody
who announces what happens, it prints one picture and ends as `crm status` does.
"""

import asyncio
import signal
import sys
from collections.abc import Callable

from haclusterd.cli.grammar import Invocation
from haclusterd.cli.live.failover import KINDS, last_failover, render_failover
from haclusterd.cli.live.picture import Known, draw, question_of, selectable
from haclusterd.cli.live.terminal import NoTerminalError, WholeTerminal
from haclusterd.cli.live.view import View, pressed
from haclusterd.cli.live.watching import EVENTS_MAX, Watch
from haclusterd.cli.render.fields import fields
from haclusterd.cli.render.terminal import Colour, Screen
from haclusterd.cli.session import Session
from haclusterd.cli.shadow_files import LIVE
from haclusterd.model.records import dataclass, field, replace
from haclusterd.ports.control import DaemonLink
from haclusterd.verbs.answers.answer import read
from haclusterd.verbs.answers.history import Events
from haclusterd.verbs.answers.status import Status

DRAWS_PER_S = 5
TICK_S = 1.0
"""Between two looks at how old the picture is."""
BY_SIGNAL = 128
"""Is added to a signal's number for the exit status."""


def monitor(session: Session, invocation: Invocation) -> int:
    """Show the cluster until the person has seen enough; return the exit status."""
    streams = session.streams
    is_terminal = streams.stdin.isatty() and streams.stdout.isatty() and not session.is_json
    is_live = session.link is not None and session.client.describe() == LIVE
    if invocation.arguments.get("once") or not (is_terminal and is_live):
        return _once(session)
    first = session.ask("status", {})
    if first.exit:
        return session.show(first)
    assert session.link is not None
    try:
        with WholeTerminal(has_colour=session.screen.has_colour) as terminal:
            return asyncio.run(_Monitor(terminal, session.link, session.screen).run(read(Status, fields(first.data))))
    except NoTerminalError:
        return _once(session)


def _once(session: Session) -> int:
    """Print the status and the last failover."""
    response = session.ask("status", {})
    status = session.show(response)
    if status or session.is_json:
        return status
    past = session.ask("history.events", {"limit": EVENTS_MAX, "kinds": list(KINDS)})
    found = last_failover(read(Events, fields(past.data)).events)
    if found is not None:
        title = session.screen.paint("Last failover", Colour.BOLD)
        lines = render_failover(session.screen, found, read(Status, fields(response.data)).now)
        session.write(["", title, *(f"  {line}" for line in lines)])
    return 0


@dataclass(slots=True)
class _Monitor:
    terminal: WholeTerminal
    connect: Callable[[], DaemonLink]
    screen: Screen
    view: View = View()
    frozen: Known | None = None
    """What is shown while it is paused."""
    frozen_at: float = 0.0
    exit: int = 0
    is_due: asyncio.Event = field(default_factory=asyncio.Event)
    """Something may look different."""

    async def run(self, first: Status) -> int:
        """Draw until the end; return the exit status."""
        loop = asyncio.get_running_loop()
        link = self.connect()
        watch = Watch(link, first, self.is_due.set)
        asking = loop.create_task(watch.run())
        ticking = loop.create_task(self._tick())
        keyboard = sys.stdin.fileno()
        loop.add_reader(keyboard, self._read_keys, watch)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._end, number)
        loop.add_signal_handler(signal.SIGWINCH, self._resized)
        self.is_due.set()
        try:
            while not self.view.is_over:
                await self._draw_when_due(watch, asking)
        finally:
            loop.remove_reader(keyboard)
            for task in (asking, ticking):
                task.cancel()
            await asyncio.gather(asking, ticking, return_exceptions=True)
            link.close()
        return self.exit

    async def _draw_when_due(self, watch: Watch, asking: "asyncio.Task[None]") -> None:
        await self.is_due.wait()
        self.is_due.clear()
        if asking.done():
            asking.result()
        if self.view.is_over:
            return
        known = self._known(watch)
        watch.want(question_of(self.view, known.status))
        self.terminal.show(draw(self.screen, known, self.view, self.terminal.size))
        await asyncio.sleep(1 / DRAWS_PER_S)

    def _known(self, watch: Watch) -> Known:
        now = asyncio.get_running_loop().time()
        if not self.view.is_paused:
            self.frozen = None
            return watch.known
        if self.frozen is None:
            self.frozen, self.frozen_at = watch.known, now
        age_ms = self.frozen.age_ms + int((now - self.frozen_at) * 1000)
        return replace(self.frozen, age_ms=age_ms, aside=watch.known.aside)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self.is_due.set()

    def _read_keys(self, watch: Watch) -> None:
        try:
            keys = self.terminal.keys()
        except OSError:
            self._end(signal.SIGHUP)
            return
        for key in keys:
            self.view = pressed(self.view, key, selectable(self.view, self._known(watch).status))
        self.is_due.set()

    def _resized(self) -> None:
        self.terminal.fit()
        self.is_due.set()

    def _end(self, number: signal.Signals) -> None:
        self.exit = 0 if number is signal.SIGINT else BY_SIGNAL + number
        self.view = replace(self.view, is_over=True)
        self.is_due.set()
