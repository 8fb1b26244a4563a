"""What the sessions of databases share: a connection whose answers have to come by a deadline."""

import socket
import time


class RefusedError(OSError):
    """The server said no."""


class BoundedConnection:
    """One connection to a server. Everything raises OSError when it is refused, or takes too long."""

    def __init__(self, address: tuple[str, int], patience_s: float) -> None:
        self._socket = socket.create_connection(address, timeout=patience_s)
        self._read = b""
        self._deadline = time.monotonic() + patience_s

    def close(self) -> None:
        self._socket.close()

    def _take(self, size: int) -> bytes:
        """Return so many bytes of what the server sends."""
        while len(self._read) < size:
            self._more()
        taken, self._read = self._read[:size], self._read[size:]
        return taken

    def _more(self) -> None:
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("no answer in time")
        self._socket.settimeout(left_s)
        more = self._socket.recv(65536)
        if not more:
            raise ConnectionResetError("it hung up")
        self._read += more
