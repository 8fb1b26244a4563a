"""The control socket's server: frames in, requests out, answers back; unauthenticated clients are not served.

The kernel says who asks (SO_PEERCRED), never the client. Root, the daemon's own user and members of the control group
are permitted; the user of `haclusterd-api` may pass on requests, each of which must carry a token; any other client is
refused before a byte of it is read. Every refusal is logged once for its user and reason.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

from haclusterd.adapters.control.admission import (
    ANSWER_BYTES_MAX,
    ANSWER_BYTES_OF_USER_MAX,
    ClientRecognition,
    PeerCredentials,
    Places,
    control_group,
)
from haclusterd.adapters.network.refusals import Refusals
from haclusterd.model.requests import Progress, Request, Response
from haclusterd.protocol.control import (
    MAX_FRAME_BYTES,
    EncodedResponse,
    Malformed,
    decode_request,
    encode,
    shown_report,
)
from haclusterd.protocol.pacer_socket import RUNTIME_MODE
from haclusterd.reports.codes import Code
from haclusterd.reports.items import report
from haclusterd.wire.framing import FrameBuffer, FrameTooLongError

READ_BYTES = 65536
REQUEST_TIMEOUT_S = 30.0
"""How long an incomplete request may make no progress."""
REQUESTS_OF_CONNECTION_MAX = 8
"""Requests of one connection that are carried out at once; further ones are answered with "try again"."""
_log = logging.getLogger(__name__)

Answer = Callable[[Progress | Response | EncodedResponse], None]
HangUp = Callable[[], None]
Handle = Callable[[Request, PeerCredentials, Answer], HangUp]
"""Carries out a request; its result is called if the client disconnects before the answer."""


class ControlSocketBusyError(Exception):
    """Another daemon answers on this socket."""


class ControlServer:
    """Listens on one Unix socket."""

    def __init__(self, path: Path, handle: Handle) -> None:
        self._path = path
        self._handle = handle
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._recognition = ClientRecognition()
        self._places = Places()
        self._unread: dict[asyncio.StreamWriter, int] = {}
        self._refusals = Refusals()
        self._bound: tuple[int, int] | None = None
        """Device and inode of the socket's file."""

    async def start(self) -> None:
        """Listen; raises ControlSocketBusyError when another daemon does."""
        if self._path.exists():
            if await _answers(self._path):
                raise ControlSocketBusyError(f"{self._path}: another haclusterd is running with this runtime directory")
            self._path.unlink()
        await self._listen()

    async def listen_again(self) -> bool:
        """Listen at the same path again if its file was removed; return whether that was so. Raises OSError.

        Existing connections are not affected.
        """
        if self._server is None or self._is_in_place():
            return False
        self._server.close()
        if not self._path.parent.is_dir():
            self._path.parent.mkdir(mode=RUNTIME_MODE, parents=True)
            group = control_group()
            if group is not None and os.geteuid() == 0:
                os.chown(self._path.parent, -1, group)
        await self._listen()
        return True

    def _is_in_place(self) -> bool:
        try:
            found = self._path.stat()
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._bound

    async def _listen(self) -> None:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        # The file gets the socket's mode: nobody else can connect before it has its group.
        os.fchmod(listening.fileno(), 0o600)
        listening.bind(str(self._path))
        group = control_group()
        if group is not None and os.geteuid() == 0:
            os.chown(self._path, -1, group)
        self._path.chmod(0o660)
        found = self._path.stat()
        self._bound = found.st_dev, found.st_ino
        self._server = await asyncio.start_unix_server(self._accept, sock=listening)

    def stop(self) -> None:
        """Stop listening, and end every connection."""
        if self._server is not None:
            self._server.close()
        for task in tuple(self._connections):
            task.cancel()
        self._recognition.close()
        self._path.unlink(missing_ok=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            credentials = self._recognition.recognise(writer.get_extra_info("socket"))
            refusal = await self._places.take_soon(credentials)
            if refusal is not None:
                self._refuse(credentials, refusal)
                return
            try:
                await self._admit(reader, writer, credentials)
            finally:
                self._places.leave(credentials)
        except (ConnectionError, asyncio.CancelledError):
            pass  # The client is gone, or this daemon ends; what was begun continues without them.
        finally:
            self._connections.discard(task)
            writer.close()

    async def _admit(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, credentials: PeerCredentials
    ) -> None:
        credentials, refusal = await self._recognition.identify(credentials)
        if refusal is not None:
            self._refuse(credentials, refusal)
            return
        conversation = _Conversation(reader, writer, credentials, self._places, self._unread)
        await conversation.hold(self._handle, partial(self._refuse, credentials))

    def _refuse(self, credentials: PeerCredentials, reason: str, detail: str = "") -> None:
        text = f"control socket: connection of {credentials.author}, process {credentials.pid}, closed: {reason}"
        text = f"{text}: {detail}" if detail else text
        line = self._refusals.line(str(credentials.uid), reason, text, asyncio.get_running_loop().time())
        if line:
            _log.warning("%s", line)


class _Conversation:
    """One connection that has a place."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        credentials: PeerCredentials,
        places: Places,
        unread: dict[asyncio.StreamWriter, int],
    ) -> None:
        """`unread`: the writers of all connections, with the users that should read them."""
        self._reader = reader
        self._writer = writer
        self._credentials = credentials
        self._places = places
        self._unread = unread
        self._buffer = FrameBuffer(MAX_FRAME_BYTES)
        self._open: dict[int, HangUp] = {}
        """Requests being carried out, with the functions that end them."""
        self._serial = 0

    async def hold(self, handle: Handle, refuse: Callable[..., None]) -> None:
        """Answer requests until either side ends the connection."""
        self._unread[self._writer] = self._credentials.uid
        try:
            while data := await self._read(refuse):
                if not await self._take(data, handle, refuse):
                    return
        finally:
            for hang_up in tuple(self._open.values()):
                hang_up()
            self._places.hold(self._credentials, -self._buffer.waiting)
            del self._unread[self._writer]

    async def _read(self, refuse: Callable[..., None]) -> bytes:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S if self._buffer.waiting else None):
                return await self._reader.read(READ_BYTES)
        except TimeoutError:
            refuse("a request begun and not ended")
            return b""

    async def _take(self, data: bytes, handle: Handle, refuse: Callable[..., None]) -> bool:
        before = self._buffer.waiting
        try:
            frames = self._buffer.feed(data)
        except FrameTooLongError as error:
            self._places.hold(self._credentials, self._buffer.waiting - before)
            refuse("not a frame", str(error))
            return False
        too_much = self._places.hold(self._credentials, self._buffer.waiting - before)
        if too_much is not None:
            refuse(too_much)
            return False
        for frame in frames:
            message = decode_request(frame)
            if isinstance(message, Malformed) and message.request is not None:
                item = report(Code.BAD_ARGUMENT, name="request", problem=message.problem)
                self._answer(Response(message.request, int(item.exit_status), (shown_report(item),)))
            elif isinstance(message, Request):
                self._carry_out(message, handle)
            else:
                refuse("not a request", message.problem if isinstance(message, Malformed) else type(message).__name__)
                return False
            # A client may send hundreds of requests at once; other work on this loop gets its turn in between.
            await asyncio.sleep(0)
        return True

    def _carry_out(self, request: Request, handle: Handle) -> None:
        if len(self._open) >= REQUESTS_OF_CONNECTION_MAX:
            problem = f"{REQUESTS_OF_CONNECTION_MAX} requests of this connection are under way"
            item = report(Code.TRY_AGAIN, problem=problem)
            self._answer(Response(request.id, int(item.exit_status), (shown_report(item),)))
            return
        self._serial += 1
        serial, is_answered = self._serial, False

        def answer(message: Progress | Response | EncodedResponse) -> None:
            nonlocal is_answered
            if not isinstance(message, Progress):
                is_answered = True
                self._open.pop(serial, None)
            self._answer(message)

        hang_up = handle(request, self._credentials, answer)
        if not is_answered:
            self._open[serial] = hang_up

    def _answer(self, message: Progress | Response | EncodedResponse) -> None:
        if self._writer.is_closing():
            return
        if self._writer.transport.get_write_buffer_size() > ANSWER_BYTES_MAX or (
            not self._credentials.is_trusted and self._unread_by_user() > ANSWER_BYTES_OF_USER_MAX
        ):
            self._writer.transport.abort()
            return
        self._writer.write(message.frame if isinstance(message, EncodedResponse) else encode(message))

    def _unread_by_user(self) -> int:
        uid = self._credentials.uid
        return sum(each.transport.get_write_buffer_size() for each, user in self._unread.items() if user == uid)


async def _answers(path: Path) -> bool:
    try:
        _, writer = await asyncio.open_unix_connection(str(path))
    except OSError:
        return False
    writer.close()
    return True
