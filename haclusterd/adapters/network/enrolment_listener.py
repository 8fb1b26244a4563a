"""Where new nodes connect: a separate listener, open only while there are invitations.

TLS 1.3, with this node's certificate; the applicant has none yet. Nothing that it sends here is trusted. The number of
connections is small, one is accepted every 50 ms, each with limits of time and bytes: a flood keeps others from
joining, and disturbs nothing else.
"""

import asyncio
import secrets
import socket
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from haclusterd.adapters.machine.ready_threads import ready_pool
from haclusterd.adapters.network.certificates import NODE_CERTIFICATE, NODE_KEY, facts_of
from haclusterd.adapters.network.tls_listening import forget_frames, listen, secure_stream
from haclusterd.model.addresses import Address, address_text
from haclusterd.model.enrolment import Admitted, Apply, Denied, Hello, News
from haclusterd.model.records import replace
from haclusterd.ports.enrolment import Applicant
from haclusterd.protocol.enrolment import FRAME_BYTES_MAX, NONCE_SIZE, Unreadable, decode, encode
from haclusterd.wire.framing import HEADER_BYTES, payload_size

APPLICANTS_MAX = 8
PAUSE_S = 0.05
"""Pause between two connections."""
GREETING_TIMEOUT_S = 10.0
"""For the handshake and the receipt of the application."""
APPLICATION_TIMEOUT_S = 180.0
"""For the whole application, including the change of the members."""
BACKLOG = 16

Greeting = Callable[[], Hello]
Applied = Callable[[Applicant, Hello, Apply], None]
Noted = Callable[[str, str], None]


class _Applicant:
    """One new node; see `ports.enrolment.Applicant`."""

    def __init__(self, address: str, session_certificate: str, writer: asyncio.StreamWriter) -> None:
        self.address = address
        self.session_certificate = session_certificate
        self._writer = writer
        self.ended = asyncio.Event()

    def tell(self, message: News | Admitted | Denied) -> None:
        """Send a message; the last one ends the connection."""
        if self.ended.is_set() or self._writer.is_closing():
            return
        self._writer.write(encode(message))
        if not isinstance(message, News):
            self.ended.set()


class TlsEnrolmentListener:
    """See `ports.enrolment.EnrolmentListener`."""

    def __init__(self, credentials: Path) -> None:
        self._credentials = credentials
        self._reading = ready_pool(1, "enrolment")
        self._listeners: dict[Address, socket.socket] = {}
        self._accepting: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._applicants = 0

    def open(
        self, addresses: tuple[Address, ...], greeting: Greeting, applied: Applied, noted: Noted
    ) -> tuple[Address, ...]:
        """Listen at these addresses too; see the port."""
        failure: OSError | None = None
        for address in addresses:
            if address in self._listeners:
                continue
            try:
                listener = listen(address, BACKLOG)
            except OSError as error:
                noted(address_text(address), f"cannot listen: {error.strerror or error}")
                failure = error
                continue
            self._listeners[address] = listener
            self._spawn(self._accept(listener, greeting, applied, noted), self._accepting)
        opened = tuple(address for address in addresses if address in self._listeners)
        if not opened and failure is not None:
            raise failure
        return opened

    def close(self) -> None:
        """Stop listening."""
        for task in tuple(self._accepting):
            task.cancel()
        for listener in self._listeners.values():
            listener.close()
        self._listeners.clear()

    def _spawn(self, work: Coroutine[Any, Any, None], kept: set[asyncio.Task[None]]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        kept.add(task)
        task.add_done_callback(kept.discard)

    async def _accept(self, listener: socket.socket, greeting: Greeting, applied: Applied, noted: Noted) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, place = await loop.sock_accept(listener)
            except OSError as error:
                noted("", f"cannot accept: {error.strerror or error}")
                await asyncio.sleep(1)
                continue
            if self._applicants >= APPLICANTS_MAX:
                connection.close()
                noted(address_text(place[:2]), "too many at a time")
            else:
                self._applicants += 1
                self._spawn(self._receive(connection, address_text(place[:2]), greeting, applied, noted), self._tasks)
            await asyncio.sleep(PAUSE_S)

    async def _receive(
        self, connection: socket.socket, address: str, greeting: Greeting, applied: Applied, noted: Noted
    ) -> None:
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(GREETING_TIMEOUT_S):
                # Not on the main loop: a disk that hangs delays nobody but who wants to join.
                loop = asyncio.get_running_loop()
                context, fingerprint = await loop.run_in_executor(self._reading, _context, self._credentials)
                reader, writer = await secure_stream(connection, context, GREETING_TIMEOUT_S)
                hello = replace(greeting(), nonce=secrets.token_bytes(NONCE_SIZE))
                writer.write(encode(hello))
                message = await _read(reader)
            if not isinstance(message, Apply):
                problem = message.problem if isinstance(message, Unreadable) else "it did not apply"
                noted(address, problem)
                return
            applicant = _Applicant(address, fingerprint, writer)
            applied(applicant, hello, message)
            async with asyncio.timeout(APPLICATION_TIMEOUT_S):
                await applicant.ended.wait()
                await writer.drain()
        except (OSError, EOFError, ValueError) as error:
            noted(address, repr(error)[:200])
            forget_frames(error)
        finally:
            self._applicants -= 1
            if writer is None:
                connection.close()
            else:
                writer.close()


def _context(credentials: Path) -> tuple[ssl.SSLContext, str]:
    """Return the context with this node's present certificate, and that certificate's fingerprint."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0
    context.load_cert_chain(credentials / NODE_CERTIFICATE, credentials / NODE_KEY)
    return context, facts_of((credentials / NODE_CERTIFICATE).read_bytes()).fingerprint


async def _read(reader: asyncio.StreamReader) -> object:
    size = payload_size(await reader.readexactly(HEADER_BYTES), FRAME_BYTES_MAX)
    return decode(await reader.readexactly(size))
