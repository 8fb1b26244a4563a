"""A watchdog device for development and tests: a FIFO that wants to be fed, and a command that it runs when it is not.

It keeps the rules of Linux's device: the first byte starts the count, each further one begins it again, and closing
ends it only right after the letter V. A pacer that is killed leaves it counting. What "reset" means is the command's
affair: it ends a node's processes, or the namespace that they live in. After it has run, the stand-in waits for the
next life.

Exit codes: 0 after SIGTERM or SIGINT; 1 when the FIFO cannot be made.
"""

import argparse
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

READ_SIZE = 4096
MAGIC_CLOSE = b"V"


class StandIn:
    """One device at `path`; see the module."""

    def __init__(self, path: Path, timeout_ms: int, command: Sequence[str]) -> None:
        self._path = path
        self._timeout_s = timeout_ms / 1000
        self._command = command
        self._fed_at: float | None = None
        """When it was fed last, on the monotonic clock; None while it does not count."""
        self._last = b""
        self._descriptor = -1

    def open(self) -> None:
        """Make the FIFO again and listen. Raises OSError."""
        self._path.unlink(missing_ok=True)
        os.mkfifo(self._path, 0o600)
        self._descriptor = self._listen()

    def run(self) -> None:
        """Serve for ever."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        while True:
            found = poll.poll(self._remaining_ms())
            if found:
                self._take(self._read())
            if found and found[0][1] & select.POLLHUP:
                poll.unregister(self._descriptor)
                self._closed()
                poll.register(self._descriptor, select.POLLIN)
            if self._fed_at is not None and time.monotonic() - self._fed_at >= self._timeout_s:
                self._expire()

    def _remaining_ms(self) -> float | None:
        if self._fed_at is None:
            return None
        return max(0.0, (self._fed_at + self._timeout_s - time.monotonic()) * 1000)

    def _listen(self) -> int:
        return os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, READ_SIZE)
        except BlockingIOError:
            return b""

    def _take(self, received: bytes) -> None:
        if received:
            if self._fed_at is None:
                say(f"counts {self._timeout_s:g} s")
            self._last = received[-1:]
            self._fed_at = time.monotonic()

    def _closed(self) -> None:
        """Nobody has it open any more. The next reader is there before this one goes, so that no writer finds none."""
        while received := self._read():
            self._take(received)
        if self._last == MAGIC_CLOSE:
            self._fed_at = None
            say("let go of")
        elif self._fed_at is not None:
            say("closed, and continues counting")
        following = self._listen()
        os.close(self._descriptor)
        self._descriptor = following

    def _expire(self) -> None:
        self._fed_at = None
        self._last = b""
        say("expired")
        status = subprocess.run(self._command, stdin=subprocess.DEVNULL, check=False).returncode
        say(f"reset: {status}")


def say(line: str) -> None:
    """Write a line to standard output at once."""
    print(f"{time.monotonic():.3f} {line}", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Run the stand-in; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="watchdog_stand_in",
        description="A watchdog device for development: a FIFO, and what happens when it is not fed.",
        epilog="Example: watchdog_stand_in /tmp/n1/watchdog --timeout-ms 5000 -- kill -KILL 4711",
    )
    parser.add_argument("path", type=Path, help="the FIFO, which is made again")
    parser.add_argument("--timeout-ms", type=int, required=True, metavar="MS", help="after how long without food")
    parser.add_argument("command", nargs="+", help="what ends the node")
    options = parser.parse_args(arguments)
    device = StandIn(options.path, options.timeout_ms, options.command)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        device.open()
    except OSError as error:
        say(f"{options.path}: {error.strerror}")
        return 1
    device.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
