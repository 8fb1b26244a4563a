"""The client's end of the daemon's control socket: blocking, small, quick to import.

One connection serves many requests and is made again when it is lost. Contract: ports/control.py.
"""

import socket
from collections.abc import Callable

from haclusterd.model.requests import Progress, Request, Response
from haclusterd.protocol.control import MAX_FRAME_BYTES, Malformed, decode, encode
from haclusterd.wire.framing import FrameBuffer, FrameTooLongError
from haclusterd.wire.json_outline import VALUES_MAX, has_too_many_values

CONNECT_TIMEOUT_S = 5.0
SILENCE_TIMEOUT_S = 30.0
"""Maximum silence of a daemon; while it waits for something, it says so every second."""
_CHUNK_BYTES = 256 * 1024


class ControlClient:
    """Sends requests to the daemon that listens on a Unix socket."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._socket: socket.socket | None = None
        self._buffer = FrameBuffer(MAX_FRAME_BYTES)
        self._waiting: list[bytes] = []

    def describe(self) -> str:
        """Return a text that says that a cluster answers."""
        return "live"

    def close(self) -> None:
        """Disconnect."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def call(self, request: Request, progress: Callable[[Progress], None]) -> Response:
        """Carry out a request."""
        frame = encode(request)
        if has_too_many_values(frame):
            return _failed(request, "TOO_LARGE", what="the request", limit=f"{VALUES_MAX} values")
        try:
            connection = self._connect()
        except OSError as error:
            return self._cannot_connect(request, error)
        try:
            connection.sendall(frame)
            return self._await(connection, request, progress)
        except TimeoutError:
            self.close()
            seconds = int(SILENCE_TIMEOUT_S)
            return _failed(request, "OUTCOME_UNKNOWN", problem=f"no answer from the daemon for {seconds} s")
        except OSError:
            self.close()
            return _failed(request, "DISCONNECTED")
        except KeyboardInterrupt:
            self.close()
            raise

    def _connect(self) -> socket.socket:
        if self._socket is not None:
            return self._socket
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            connection.settimeout(CONNECT_TIMEOUT_S)
            connection.connect(self._path)
        except OSError:
            connection.close()
            raise
        connection.settimeout(SILENCE_TIMEOUT_S)
        self._socket = connection
        self._buffer = FrameBuffer(MAX_FRAME_BYTES)
        self._waiting = []
        return connection

    def _cannot_connect(self, request: Request, error: OSError) -> Response:
        if isinstance(error, PermissionError):
            return _failed(request, "NOT_PERMITTED", verb="crm", permission=f"to open {self._path}")
        return _failed(request, "NOT_RUNNING", socket=self._path, problem=error.strerror or str(error))

    def _await(
        self, connection: socket.socket, request: Request, progress: Callable[[Progress], None]
    ) -> Response:
        while True:
            while self._waiting:
                message = decode(self._waiting.pop(0))
                if isinstance(message, Malformed):
                    return self._unreadable(request, message)
                if isinstance(message, Progress) and message.id == request.id:
                    progress(message)
                if isinstance(message, Response) and message.id == request.id:
                    return message
            data = connection.recv(_CHUNK_BYTES)
            if not data:
                self.close()
                return _failed(request, "DISCONNECTED")
            try:
                self._waiting += self._buffer.feed(data)
            except FrameTooLongError as error:
                return self._unreadable(request, Malformed(str(error)))

    def _unreadable(self, request: Request, what: Malformed) -> Response:
        self.close()
        return _failed(request, "UNREADABLE", what="the daemon's answer", problem=what.problem)


def _failed(request: Request, code: str, **parameters: str) -> Response:
    """Return a failed response. Only this loads the table of reports: most calls succeed, and start sooner without."""
    from haclusterd.protocol.control import shown_report
    from haclusterd.reports.codes import Code
    from haclusterd.reports.items import report

    item = report(Code(code), place=None, remedy=None, severity=None, **parameters)
    return Response(request.id, int(item.exit_status), (shown_report(item),))
