"""The control socket's server: frames in, requests out, answers back (safety: nobody unauthenticated gets in).

Who asks is told by the kernel (SO_PEERCRED), never by the client. Root and the daemon's own user may do everything,
members of the control group too; anybody else is refused before a byte of theirs is read. Every refusal is logged once
for its user and reason.
"""

import asyncio
import grp
import logging
import os
import pwd
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from haclusterd.adapters.refusals import Refusals
from haclusterd.model.requests import Progress, Request, Response
from haclusterd.protocol.control import FrameBuffer, Malformed, decode, encode

READ_BYTES = 65536
CONNECTIONS_MAX = 128
WRITE_BYTES_MAX = 16 * 1024 * 1024
"""Unread answers of one client; more of them, and it is not listening."""
CONTROL_GROUP = "haclient"
_CREDENTIALS = struct.Struct("3i")
_log = logging.getLogger(__name__)

Answer = Callable[[Progress | Response], None]


@dataclass(frozen=True, slots=True)
class PeerCredentials:
    """Who is at the other end, as the kernel says."""

    pid: int
    uid: int
    gid: int
    author: str
    """The user's name at this host, looked up once for each connection."""


Handle = Callable[[Request, PeerCredentials, Answer], None]


class ControlSocketBusy(Exception):  # noqa: N818 (a finding, named as people say it)
    """Another daemon answers on this socket."""


class ControlServer:
    """Listens on one Unix socket."""

    def __init__(self, path: Path, handle: Handle) -> None:
        self._path = path
        self._handle = handle
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._refusals = Refusals()

    async def start(self) -> None:
        """Listen; raises ControlSocketBusy when somebody else does."""
        if self._path.exists():
            if await _answers(self._path):
                raise ControlSocketBusy(f"{self._path}: another haclusterd is running with this runtime directory")
            self._path.unlink()
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        # The file gets the socket's mode: nobody else can connect before it has its group.
        os.fchmod(listening.fileno(), 0o600)
        listening.bind(str(self._path))
        group = _control_group()
        if group is not None and os.geteuid() == 0:
            os.chown(self._path, -1, group)
        self._path.chmod(0o660)
        self._server = await asyncio.start_unix_server(self._accept, sock=listening)

    def stop(self) -> None:
        """Listen no more, and end every conversation."""
        if self._server is not None:
            self._server.close()
        for task in tuple(self._connections):
            task.cancel()
        self._path.unlink(missing_ok=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            credentials = _credentials(writer)
            if not _is_allowed(credentials):
                self._refuse(credentials, "not permitted")
            elif len(self._connections) > CONNECTIONS_MAX:
                self._refuse(credentials, "too many connections at a time")
            else:
                await self._converse(reader, writer, credentials)
        except (ConnectionError, asyncio.CancelledError):
            pass  # The client is gone, or this daemon ends; what was begun goes on without them.
        finally:
            self._connections.discard(task)
            writer.close()

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, credentials: PeerCredentials
    ) -> None:
        buffer = FrameBuffer()

        def answer(message: Progress | Response) -> None:
            if writer.is_closing():
                return
            if writer.transport.get_write_buffer_size() > WRITE_BYTES_MAX:
                writer.transport.abort()
                return
            writer.write(encode(message))

        while data := await reader.read(READ_BYTES):
            frames = buffer.feed(data)
            if isinstance(frames, Malformed):
                self._refuse(credentials, "not a frame", frames.problem)
                return
            for frame in frames:
                message = decode(frame)
                if not isinstance(message, Request):
                    problem = message.problem if isinstance(message, Malformed) else type(message).__name__
                    self._refuse(credentials, "not a request", problem)
                    return
                self._handle(message, credentials, answer)

    def _refuse(self, credentials: PeerCredentials, reason: str, detail: str = "") -> None:
        text = f"control socket: connection of {credentials.author}, process {credentials.pid}, closed: {reason}"
        text = f"{text}: {detail}" if detail else text
        line = self._refusals.line(str(credentials.uid), reason, text, asyncio.get_running_loop().time())
        if line:
            _log.warning("%s", line)


async def _answers(path: Path) -> bool:
    try:
        _, writer = await asyncio.open_unix_connection(str(path))
    except OSError:
        return False
    writer.close()
    return True


def _credentials(writer: asyncio.StreamWriter) -> PeerCredentials:
    connection = writer.get_extra_info("socket")
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, gid = _CREDENTIALS.unpack(raw)
    return PeerCredentials(pid, uid, gid, _author(uid))


def _author(uid: int) -> str:
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return f"{name}@{socket.gethostname()}"


def _control_group() -> int | None:
    try:
        return grp.getgrnam(CONTROL_GROUP).gr_gid
    except KeyError:
        return None


def _is_allowed(credentials: PeerCredentials) -> bool:
    if credentials.uid in (0, os.geteuid()):
        return True
    group = _control_group()
    if group is None:
        return False
    try:
        user = pwd.getpwuid(credentials.uid)
    except KeyError:
        return False
    return group in os.getgrouplist(user.pw_name, user.pw_gid)
