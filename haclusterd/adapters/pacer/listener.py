"""The pacer's end of the Unix socket: daemons connect, send settings, and get reports.

Invariant: a client that does not read loses only its own reports: what does not fit its socket is dropped, and the next
report is complete again. Only the pacer's own user and root are served. Nothing here blocks. Stdlib only.
"""

import os
import selectors
import socket
import struct
from collections.abc import Callable
from pathlib import Path

from haclusterd.protocol.pacer_socket import MAXIMUM_SIZE
from haclusterd.wire.framing import FrameBuffer, FrameTooLongError

MOST_CLIENTS = 4
"""A daemon, its successor, and connections by mistake."""
RECEIVE_SIZE = 65536
_CREDENTIALS = struct.Struct("3i")


class BrainClient:
    """One connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.frames = FrameBuffer(MAXIMUM_SIZE)
        self._unsent = b""

    def send(self, frame: bytes) -> None:
        """Send a frame, or drop it while an earlier one is not sent; a broken connection is detected when reading."""
        if self._unsent:
            self._flush()
        if not self._unsent:
            self._unsent = frame
            self._flush()

    def _flush(self) -> None:
        try:
            sent = self.connection.send(self._unsent, socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return
        except OSError:
            self._unsent = b""
            return
        self._unsent = self._unsent[sent:]


class PacerListener:
    """The listening socket at `path`, on the selector of one loop.

    `received` is called with each complete message, `closed` once when the other side ends a connection.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        path: Path,
        *,
        received: Callable[[BrainClient, bytes], None],
        closed: Callable[[BrainClient], None],
    ) -> None:
        self._selector = selector
        self._path = path
        self._received = received
        self._closed = closed
        self._clients: list[BrainClient] = []
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)

    def open(self) -> None:
        """Listen, replacing a socket file that was left over. Raises OSError. The caller has locked the directory."""
        self._path.unlink(missing_ok=True)
        mask = os.umask(0o177)
        try:
            self._listening.bind(str(self._path))
        finally:
            os.umask(mask)
        self._listening.listen(MOST_CLIENTS)
        self._selector.register(self._listening, selectors.EVENT_READ, self._accept)

    def close(self) -> None:
        """Close all and remove the socket file."""
        for client in list(self._clients):
            self.drop(client)
        self._listening.close()
        self._path.unlink(missing_ok=True)

    def drop(self, client: BrainClient) -> None:
        """End a connection from this side; harmless when it has ended."""
        if client in self._clients:
            self._clients.remove(client)
            self._selector.unregister(client.connection)
            client.connection.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except OSError:
            return
        connection.settimeout(0)
        if len(self._clients) >= MOST_CLIENTS or not _is_permitted(connection):
            connection.close()
            return
        client = BrainClient(connection)
        self._clients.append(client)
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._read(client))

    def _read(self, client: BrainClient) -> None:
        try:
            received = client.connection.recv(RECEIVE_SIZE)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        try:
            if received:
                for payload in client.frames.feed(received):
                    self._received(client, payload)
                return
        except FrameTooLongError:
            pass
        if client in self._clients:
            self.drop(client)
            self._closed(client)


def _is_permitted(connection: socket.socket) -> bool:
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(raw)
    return user in (0, os.geteuid())
