"""Clients of the storm: sequences of requests on a connection, waited for, sent all at once, or left behind."""

import random
import socket
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from haclusterd.model.records import dataclass, field
from haclusterd.model.requests import Progress, Response
from haclusterd.protocol.control import MAX_FRAME_BYTES, decode, encode
from haclusterd.wire.framing import FrameBuffer
from tests.verb_storm.requests import Requests

SILENCE_S = 30.0
"""A client that hears nothing for so long counts the request as one that stalled: the shell's client gives up then."""
LISTENS_S = 6.0
"""For how long a client listens to progress before it hangs up."""
REQUESTS_MAX = 8
CHUNK_BYTES = 65536


@dataclass
class Tally:
    """What clients saw, all of them."""

    sequences: int = 0
    requests: int = 0
    answered: int = 0
    refused: int = 0
    left: int = 0
    """Requests whose client hung up before the answer."""
    problems: list[str] = field(default_factory=list)


class Client(threading.Thread):
    """One client, until the time is over."""

    def __init__(self, number: int, seed: int, sockets: Sequence[Path], until: float) -> None:
        super().__init__(name=f"client-{number}")
        self.tally = Tally()
        self._chance = random.Random(f"{seed}:{number}")
        self._requests = Requests(self._chance)
        self._sockets = sockets
        self._until = until

    def run(self) -> None:
        """Play sequences one after the other."""
        while time.monotonic() < self._until:
            self.tally.sequences += 1
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
                    link.settimeout(SILENCE_S)
                    link.connect(str(self._chance.choice(self._sockets)))
                    self._play(link)
            except (BrokenPipeError, ConnectionResetError):
                continue  # The daemon has closed what sent garbage.
            except OSError as error:
                self.tally.problems.append(f"the socket: {error!r}")
                return

    def _play(self, link: socket.socket) -> None:
        chance = self._chance
        requests = [self._requests.draw() for _ in range(chance.randrange(1, REQUESTS_MAX + 1))]
        buffer = FrameBuffer(MAX_FRAME_BYTES)
        if chance.random() < 0.2:
            self.tally.requests += len(requests)
            link.sendall(b"".join(map(encode, requests)))
            if chance.random() < 0.5:
                self.tally.left += len(requests)
                return
            self._listen(link, buffer, {each.id: each.verb for each in requests})
            return
        for request in requests:
            self.tally.requests += 1
            frame = encode(request)
            if chance.random() < 0.08:
                # Hang up in the middle of a request, after it, or after rubbish.
                link.sendall(chance.choice((frame[: len(frame) // 2], frame, chance.randbytes(50))))
                self.tally.left += 1
                return
            link.sendall(frame)
            if not self._listen(link, buffer, {request.id: request.verb}):
                return

    def _listen(self, link: socket.socket, buffer: FrameBuffer, waiting: dict[str, str]) -> bool:
        """Hear the answers; return whether all came before the client had enough."""
        enough = time.monotonic() + LISTENS_S
        while waiting:
            try:
                data = link.recv(CHUNK_BYTES)
            except TimeoutError:
                self.tally.problems.append(f"nothing was heard for {SILENCE_S:g} s of {sorted(waiting.values())}")
                return False
            if not data:
                self.tally.problems.append(f"the daemon hung up on {sorted(waiting.values())}")
                return False
            for frame in buffer.feed(data):
                message = decode(frame)
                if isinstance(message, Response) and message.id in waiting:
                    del waiting[message.id]
                    self.tally.answered += 1
                    self.tally.refused += message.exit != 0
                elif not isinstance(message, Progress | Response):
                    self.tally.problems.append(f"an answer that cannot be read: {message}")
            if waiting and time.monotonic() > enough:
                self.tally.left += len(waiting)
                return False
        return True
