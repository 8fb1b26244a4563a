"""A connection to MariaDB with patience: its client/server protocol, as far as one statement at a time needs it."""

import struct
import time

from tests.databases.bounded_connection import BoundedConnection, RefusedError

PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH = 0x200, 0x8000, 0x80000
LONGEST = 1 << 24
UTF8MB4 = 45
OK, ERROR, END = 0x00, 0xFF, 0xFE
NULL = 0xFB
PLUGIN = b"mysql_native_password\0"


class Session(BoundedConnection):
    """One connection, without a password."""

    def __init__(self, address: tuple[str, int], user: str, patience_s: float) -> None:
        super().__init__(address, patience_s)
        self._sequence = 0
        try:
            self._packet()  # The server's greeting; what it offers is not needed.
            capabilities = PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH
            head = struct.pack("<IIB23x", capabilities, LONGEST - 1, UTF8MB4)
            self._send(head + user.encode() + b"\0\0" + PLUGIN)
            if self._packet()[0] == END:  # It asks for another method: the answer without a password is empty.
                self._send(b"")
                self._packet()
        except OSError:
            self._socket.close()
            raise

    def ask(self, statement: str, patience_s: float) -> list[list[str]]:
        """Carry a statement out; return the columns of each row as texts, empty where they are null."""
        self._deadline = time.monotonic() + patience_s
        self._sequence = 0
        self._send(b"\x03" + statement.encode())
        first = self._packet()
        if first[0] == OK:
            return []
        while not self._is_end(self._packet()):
            """A column's definition."""
        rows: list[list[str]] = []
        while not self._is_end(packet := self._packet()):
            rows.append(_columns(packet))
        return rows

    @staticmethod
    def _is_end(packet: bytes) -> bool:
        return packet[0] == END and len(packet) < 9

    def _send(self, body: bytes) -> None:
        self._socket.sendall(struct.pack("<I", len(body))[:3] + bytes([self._sequence]) + body)

    def _packet(self) -> bytes:
        """Return what the server sends next. Raises RefusedError with the number of its error."""
        head = self._take(4)
        self._sequence = (head[3] + 1) & 0xFF
        body = self._take(int.from_bytes(head[:3], "little"))
        if body[0] == ERROR:
            raise RefusedError(str(int.from_bytes(body[1:3], "little")))
        return body


def _columns(packet: bytes) -> list[str]:
    found, at = [], 0
    while at < len(packet):
        size, at = packet[at], at + 1
        if size == NULL:
            size = 0
        elif size > NULL:
            width = {0xFC: 2, 0xFD: 3, 0xFE: 8}[size]
            size, at = int.from_bytes(packet[at : at + width], "little"), at + width
        found.append(packet[at : at + size].decode())
        at += size
    return found
