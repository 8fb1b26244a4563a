"""The brain's end of its pacer: the socket on the main loop, the page from any thread.

Invariant: what the Raft thread says of withdrawn nodes is in the page of the running pacer before the call returns, or,
where there is no page yet, is written into it before that pacer is told that it is complete; a new page begins with
nobody being echoed. The page of an earlier brain is revoked in `start`, before anything else.

The lock is held for the writing of a few words, never while anything waits.
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from haclusterd.adapters.pacer_page_file import SOCKET_NAME, MappedPage, open_page
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import NO_LEASE, PacerReport, PacerSettings
from haclusterd.ports.clock import Clock
from haclusterd.protocol import pacer_socket

RETRY_MS = 100
RECEIVE_SIZE = 65536


class PacerLink:
    """`Pacer` over the runtime directory of a `haclusterd-pacer`."""

    def __init__(self, directory: Path, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self._directory = directory
        self._clock = clock
        self._loop = loop
        self._settings: PacerSettings | None = None
        self._changed: Callable[[PacerReport], None] = _nobody
        self._report: PacerReport | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None
        self._lock = threading.Lock()
        self._mapped: MappedPage | None = None
        self._withdrawn: dict[NodeName, set[Incarnation]] = {}
        self._is_known = False
        self._is_empty: bool | None = None

    def start(self, settings: PacerSettings, changed: Callable[[PacerReport], None]) -> None:
        """Revoke what an earlier brain said, then connect as soon as there is a pacer."""
        assert self._task is None
        self._settings = settings
        self._changed = changed
        self._map()
        self._task = self._loop.create_task(self._serve(), name="pacer-link")
        self._task.add_done_callback(self._ended)

    def configure(self, settings: PacerSettings) -> None:
        """Hand over changed settings. A new incarnation of this process has the withdrawn set of the one before."""
        with self._lock:
            self._settings = settings
            if self._mapped is not None and self._is_known:
                self._mapped.page.say_known(settings.incarnation.token)
        if self._writer is not None:
            self._writer.write(pacer_socket.encode(settings))

    def report(self) -> PacerReport | None:
        """Return the newest report."""
        return self._report

    def lease_until(self) -> Instant:
        """Return until when this incarnation holds the lease."""
        if self._mapped is None or self._settings is None:
            return NO_LEASE
        return self._mapped.page.lease_until(self._settings.incarnation.token)

    def stamp_main(self) -> None:
        """Stamp for the main loop."""
        if self._mapped is not None:
            self._mapped.page.stamp_main(self._clock.now())

    def stamp_raft(self) -> None:
        """Stamp for the Raft thread."""
        if self._mapped is not None:
            self._mapped.page.stamp_raft(self._clock.now())

    def set_empty(self, *, is_empty: bool) -> None:
        """Write the empty flag."""
        with self._lock:
            self._is_empty = is_empty
            if self._mapped is not None:
                self._mapped.page.set_empty(is_empty=is_empty)

    def withdraw(self, node: NodeName, incarnation: Incarnation) -> None:
        """Put the node among the withdrawn."""
        with self._lock:
            self._withdrawn.setdefault(node, set()).add(incarnation)
            if self._mapped is not None:
                self._mapped.page.withdraw(node)

    def reinstate(self, node: NodeName, incarnation: Incarnation) -> None:
        """Take the node out of the withdrawn when this was its last withdrawn incarnation."""
        with self._lock:
            left = self._withdrawn.get(node, set()) - {incarnation}
            if left:
                self._withdrawn[node] = left
                return
            self._withdrawn.pop(node, None)
            if self._mapped is not None:
                self._mapped.page.reinstate(node)

    def withdrawals_known(self) -> None:
        """Vouch for the withdrawn set."""
        with self._lock:
            self._is_known = True
            if self._mapped is not None and self._settings is not None:
                self._mapped.page.say_known(self._settings.incarnation.token)

    def stop(self) -> None:
        """Disconnect."""
        if self._task is not None:
            self._task.cancel()
        if self._writer is not None:
            self._writer.close()

    # The page

    def _map(self) -> None:
        """Map the page of the present pacer, if it is not mapped, and write into it what this brain has said."""
        assert self._settings is not None
        with self._lock:
            if self._mapped is not None and self._mapped.is_in_place():
                return
            mapped = open_page(self._directory)
            if mapped is None:
                return
            mapped.page.begin_brain()
            for node in self._withdrawn:
                mapped.page.withdraw(node)
            if self._is_known:
                mapped.page.say_known(self._settings.incarnation.token)
            if self._is_empty is not None:
                mapped.page.set_empty(is_empty=self._is_empty)
            self._mapped = mapped

    # The socket

    async def _serve(self) -> None:
        while True:
            try:
                reader, writer = await asyncio.open_unix_connection(self._directory / SOCKET_NAME)
            except OSError:
                await asyncio.sleep(RETRY_MS / 1000)
                continue
            try:
                await self._converse(reader, writer)
            except (OSError, pacer_socket.FrameTooLongError):
                pass
            finally:
                self._writer = None
                writer.close()
            await asyncio.sleep(RETRY_MS / 1000)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hand over the settings and take reports until the connection ends."""
        assert self._settings is not None
        self._map()
        writer.write(pacer_socket.encode(self._settings))
        self._writer = writer
        frames = pacer_socket.FrameBuffer()
        while received := await reader.read(RECEIVE_SIZE):
            for payload in frames.feed(received):
                self._take(pacer_socket.decode(payload))

    def _take(self, message: pacer_socket.Message) -> None:
        match message:
            case PacerReport():
                self._report = message
            case pacer_socket.Refusal(reason):
                old = self._report or PacerReport(reported_at=self._clock.now(), stalled_at=None, nodes=())
                self._report = replace(old, errors=(f"brain and pacer do not understand each other: {reason}",))
            case PacerSettings():
                return
        self._changed(self._report)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Hand an error of our own to the loop, which ends the process: a link that is silently dead must not be."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._loop.call_exception_handler({"message": "pacer link failed", "exception": error, "task": task})


def _nobody(report: PacerReport) -> None:
    """Take reports before there is somebody to tell."""
