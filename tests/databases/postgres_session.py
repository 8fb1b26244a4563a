"""A connection to PostgreSQL with patience: its protocol, version 3, as far as one statement at a time needs it.

A client library waits for ever, or for seconds; what is measured here is when an answer came, and when none did.
"""

import struct
import time

from tests.databases.bounded_connection import BoundedConnection, RefusedError

PROTOCOL = 196608
AUTHENTICATED = 0


class Session(BoundedConnection):
    """One connection, without a password."""

    def __init__(self, address: tuple[str, int], user: str, patience_s: float) -> None:
        super().__init__(address, patience_s)
        words = b"user\0" + user.encode() + b"\0database\0postgres\0\0"
        try:
            self._socket.sendall(struct.pack("!II", 8 + len(words), PROTOCOL) + words)
            self._answer()
        except OSError:
            self._socket.close()
            raise

    def ask(self, statement: str, patience_s: float) -> list[str]:
        """Carry a statement out; return the first column of each row, empty where it is null."""
        self._deadline = time.monotonic() + patience_s
        text = statement.encode() + b"\0"
        self._socket.sendall(b"Q" + struct.pack("!I", 4 + len(text)) + text)
        return self._answer()

    def _answer(self) -> list[str]:
        rows: list[str] = []
        refusal = ""
        while True:
            kind, body = self._message()
            if kind == b"Z":
                if refusal:
                    raise RefusedError(refusal)
                return rows
            if kind == b"D":
                size = struct.unpack_from("!i", body, 2)[0]
                rows.append(body[6 : 6 + size].decode() if size >= 0 else "")
            if kind == b"R" and struct.unpack("!I", body[:4])[0] != AUTHENTICATED:
                raise RefusedError("it wants a password")
            if kind == b"E":
                fields = {field[:1]: field[1:] for field in body.split(b"\0") if field}
                refusal = fields.get(b"C", b"").decode()
                if fields.get(b"S") in (b"FATAL", b"PANIC"):
                    raise RefusedError(refusal)

    def _message(self) -> tuple[bytes, bytes]:
        head = self._take(5)
        return head[:1], self._take(struct.unpack("!I", head[1:])[0] - 4)
