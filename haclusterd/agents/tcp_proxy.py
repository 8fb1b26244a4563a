"""The proxy that the agent `tcp-proxy` runs: TCP connections are passed on to whichever of its backends answer.

    python3 tcp_proxy.py DIRECTORY

DIRECTORY/settings is read at the start and at SIGHUP; DIRECTORY/run/status is replaced whenever something changes, and
twice a second: that it is young says that the loop turns. SIGTERM closes the listeners and lets the connections end by
themselves, as long as `drain_s` allows. Who listens stays: everything else may change while connections are open.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

BEAT_S = 0.5
PIECE_BYTES = 65536
FALL = 2
"""So many checks in a row fail until a backend counts as down; one that succeeds makes it up."""


class Backend:
    """One place that connections are passed on to."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self.failures = 0
        self.connections = 0

    @property
    def name(self) -> str:
        """Host and port."""
        return f"{self.host}:{self.port}"

    @property
    def is_up(self) -> bool:
        """Whether it answered one of the last checks."""
        return self.failures < FALL

    async def open(self, timeout_s: float) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Connect; None when it does not answer in time."""
        try:
            opened = await asyncio.wait_for(asyncio.open_connection(self.host, self.port), timeout_s)
        except (OSError, asyncio.TimeoutError):  # noqa: UP041 (before Python 3.11 it is a class of its own)
            self.failures += 1
            return None
        self.failures = 0
        return opened


class Proxy:
    """All of it; one object, one loop."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._settings: dict[str, Any] = {}
        self._backends: list[Backend] = []
        self._turn = 0
        self._connections: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.AbstractServer] = []
        self._is_draining = asyncio.Event()
        self._served = self._refused = 0
        self.read_settings()

    def read_settings(self) -> None:
        """Take the settings over; backends that stay keep what is known of them."""
        with open(os.path.join(self._directory, "settings"), encoding="utf-8") as stream:
            self._settings = json.load(stream)
        known = {each.name: each for each in self._backends}
        wanted = [Backend(host, port) for host, port in self._settings["backends"]]
        self._backends = [known.get(each.name, each) for each in wanted]

    async def run(self) -> None:
        """Listen until SIGTERM, and then until the connections have ended. Raises OSError when it cannot listen."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._is_draining.set)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        for host, port in self._settings["listen"]:
            self._servers.append(await asyncio.start_server(self._accept, host, port, reuse_address=True))
        beating, checking = loop.create_task(self._beat()), loop.create_task(self._check())
        await self._is_draining.wait()
        for server in self._servers:
            server.close()
        until = time.monotonic() + self._settings["drain_s"]
        while self._connections and time.monotonic() < until:
            await asyncio.wait(self._connections, timeout=min(BEAT_S, max(0.0, until - time.monotonic())))
        for task in (beating, checking, *self._connections):
            task.cancel()
        self._show()

    def _reload(self) -> None:
        self.read_settings()
        self._show()

    # Connections

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= self._settings["max_connections"]:
            self._refused += 1
            writer.close()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for backend in self._in_order():
            backend.connections += 1  # Before it answers: connections that come together are spread, too.
            try:
                opened = await backend.open(self._settings["connect_s"])
                if opened is not None:
                    self._served += 1
                    await self._pass_on(reader, writer, *opened)
                    return
            finally:
                backend.connections -= 1
        self._refused += 1
        writer.close()

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answers: asyncio.StreamReader,
        asks: asyncio.StreamWriter,
    ) -> None:  # fmt: skip
        idle_s = self._settings["idle_s"] or None
        try:
            await asyncio.gather(_copy(reader, asks, idle_s), _copy(answers, writer, idle_s))
        except (OSError, asyncio.TimeoutError):  # noqa: UP041 (likewise)
            pass  # One side has gone, or has been silent for too long: the other one is closed, which is the answer.
        finally:
            writer.close()
            asks.close()

    def _in_order(self) -> list[Backend]:
        """Return the backends in the order in which a new connection asks them: those that are down last."""
        found = list(self._backends)
        if self._settings["balance"] == "round-robin":
            self._turn = (self._turn + 1) % len(found)
            found = found[self._turn :] + found[: self._turn]
        elif self._settings["balance"] == "least":
            found.sort(key=lambda each: each.connections)
        return sorted(found, key=lambda each: not each.is_up)

    # What is known

    async def _check(self) -> None:
        while True:
            await self._check_all()
            self._show()
            await asyncio.sleep(self._settings["check_s"])

    async def _check_all(self) -> None:
        async def check(backend: Backend) -> None:
            opened = await backend.open(self._settings["connect_s"])
            if opened is not None:
                opened[1].close()

        await asyncio.gather(*map(check, self._backends))

    async def _beat(self) -> None:
        while True:
            self._show()
            await asyncio.sleep(BEAT_S)

    def _show(self) -> None:
        status = {
            "at": time.monotonic(),
            "up": [each.name for each in self._backends if each.is_up],
            "down": [each.name for each in self._backends if not each.is_up],
            "connections": len(self._connections),
            "served": self._served,
            "refused": self._refused,
            "settings": self._settings.get("generation", ""),
        }
        write_status(self._directory, status)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, idle_s: float | None) -> None:
    """Pass on what comes, until the end of it, which is passed on too."""
    while data := await asyncio.wait_for(reader.read(PIECE_BYTES), idle_s):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


def write_status(directory: str, status: dict[str, Any]) -> None:
    """Replace the status file."""
    path = os.path.join(directory, "run", "status")
    with open(f"{path}.new", "w", encoding="utf-8") as stream:
        json.dump(status, stream)
    os.replace(f"{path}.new", path)


def main(directory: str, run: Callable[[Any], None] = asyncio.run) -> int:
    """Run until it is asked to end; 1 when it cannot listen, with the reason in the status."""
    try:
        run(Proxy(directory).run())
    except OSError as error:
        write_status(directory, {"problem": error.strerror or str(error)})
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
