"""One connection to a PostgreSQL server: one statement at a time, with a deadline for each answer.

It speaks the protocol itself (PostgreSQL, "Frontend/Backend Protocol", version 3.0), over the Unix socket of a server
on this machine, or over TCP where a client's view of a server is wanted. A monitor has to tell a server that hangs from
one that is gone, which a client program that waits does not, and starting a program for every question costs more than
the question. The server knows who asks from the kernel (`peer`), or does not ask (`trust`); passwords are not spoken.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from haclusterd.agents.ocf import ActionError

T = TypeVar("T")
PROTOCOL = 196608
AUTHENTICATED = 0
STARTING = "57P03"
"""cannot_connect_now: it starts, stops or recovers."""
FULL = "53300"
"""too_many_connections: it lives, and all its connections are taken."""
LONGEST_MESSAGE = 64 * 1024 * 1024


class RefusedError(ActionError):
    """The server answered no; `code` is its SQLSTATE."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"the server refused: {message} ({code})")
        self.code = code


class SilentError(ActionError):
    """The server took the connection, or the question, and did not answer in time."""


class NoServerError(ActionError):
    """Nobody listens at the socket, or it hung up."""


class Session:
    """A connection to the path of a Unix socket, or to a host and a port; give it back with `close`, or use it in a
    `with` statement.
    """

    def __init__(self, address: str | tuple[str, int], user: str, database: str, timeout_s: float) -> None:
        import socket

        self._deadline = time.monotonic() + timeout_s
        self._timeout_s = timeout_s
        self._read = b""
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        words = {"user": user, "database": database, "application_name": "haclusterd", "client_encoding": "UTF8"}
        body = PROTOCOL.to_bytes(4, "big") + b"".join(f"{k}\0{v}\0".encode() for k, v in words.items()) + b"\0"
        try:
            self._attempt(lambda: self._socket.connect(address))
            self._send(body)
            self._answer()
        except ActionError:
            self._socket.close()
            raise

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def ask(self, statement: str, timeout_s: float | None = None) -> list[list[str]]:
        """Carry a statement out; return its rows as texts, null as an empty one.

        Raises RefusedError, SilentError or NoServerError; after the last two the connection is of no use.
        """
        self._timeout_s = self._timeout_s if timeout_s is None else timeout_s
        self._deadline = time.monotonic() + self._timeout_s
        self._send(statement.encode() + b"\0", b"Q")
        return self._answer()

    def value(self, statement: str, timeout_s: float | None = None) -> str:
        """Return the first column of the first row; empty when there is none."""
        rows = self.ask(statement, timeout_s)
        return rows[0][0] if rows else ""

    def _answer(self) -> list[list[str]]:
        rows: list[list[str]] = []
        refusal: RefusedError | None = None
        while True:
            kind, body = self._message()
            if kind == b"Z":
                if refusal is not None:
                    raise refusal
                return rows
            if kind == b"D":
                rows.append(_columns(body))
            elif kind == b"R" and int.from_bytes(body[:4], "big") != AUTHENTICATED:
                raise RefusedError("28000", "it wants a password on its socket: have pg_hba.conf begin with a line "
                                            "`local all USER peer`")  # fmt: skip
            elif kind == b"E":
                fields = {field[:1]: field[1:].decode("utf-8", "replace") for field in body.split(b"\0") if field}
                refusal = RefusedError(fields.get(b"C", ""), fields.get(b"M", "no words"))
                if fields.get(b"V", fields.get(b"S")) in ("FATAL", "PANIC"):
                    raise refusal

    def _send(self, body: bytes, kind: bytes = b"") -> None:
        self._attempt(lambda: self._socket.sendall(kind + (len(body) + 4).to_bytes(4, "big") + body))

    def _message(self) -> tuple[bytes, bytes]:
        head = self._take(5)
        size = int.from_bytes(head[1:], "big") - 4
        if not 0 <= size <= LONGEST_MESSAGE:
            raise NoServerError("what answers at the socket is no PostgreSQL")
        return head[:1], self._take(size)

    def _take(self, size: int) -> bytes:
        while len(self._read) < size:
            more = self._attempt(lambda: self._socket.recv(65536))
            if not more:
                raise NoServerError("the server hung up")
            self._read += more
        taken, self._read = self._read[:size], self._read[size:]
        return taken

    def _attempt(self, call: Callable[[], T]) -> T:
        left_s = self._deadline - time.monotonic()
        try:
            if left_s <= 0:
                raise TimeoutError
            self._socket.settimeout(left_s)
            return call()
        except (TimeoutError, BlockingIOError):
            raise SilentError(f"the server did not answer within {self._timeout_s:.1f} s") from None
        except OSError as error:
            raise NoServerError(f"the server does not listen: {error.strerror}") from None


def _columns(body: bytes) -> list[str]:
    found, at = [], 2
    for _ in range(int.from_bytes(body[:2], "big")):
        size = int.from_bytes(body[at : at + 4], "big", signed=True)
        at += 4
        found.append(body[at : at + max(size, 0)].decode("utf-8", "replace"))
        at += max(size, 0)
    return found


def quoted(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
