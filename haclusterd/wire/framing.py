"""A stream cut into frames: a length (u32, big endian), then that many bytes.

Every stream of this program is cut so: between nodes, between daemon and pacer, daemon and planning worker, and on the
control socket. The agents' helpers, which import nothing of the rest, do the same by themselves (agents/cluster_link).

Invariant: a length above the limit is refused before any of that frame is collected, so nobody's length decides what is
held.
"""

from typing import Final

HEADER_BYTES: Final = 4


class FrameTooLongError(ValueError):
    """The other end announces more than is permitted: it does not speak this protocol. The stream is of no more use."""


def framed(payload: bytes) -> bytes:
    """Return a payload with its length before it."""
    return len(payload).to_bytes(HEADER_BYTES, "big") + payload


def payload_size(header: bytes, limit: int) -> int:
    """Return how many bytes follow a header; raises FrameTooLongError."""
    size = int.from_bytes(header, "big")
    if size > limit:
        raise FrameTooLongError(f"a frame of {size} bytes is larger than {limit}")
    return size


class FrameBuffer:
    """Bytes of one stream as they come in, whole payloads out: each once, in order."""

    def __init__(self, limit: int = 0) -> None:
        """`limit`: of a payload, in bytes; not needed where `take` is given one each time."""
        self._limit = limit
        self._bytes = bytearray()
        self._start = 0
        """Where the first frame begins that was not taken."""

    @property
    def waiting(self) -> int:
        """How many bytes are kept that were not taken."""
        return len(self._bytes) - self._start

    def add(self, received: bytes) -> None:
        """Keep what came in, without looking at it."""
        # What was taken goes in one piece, not frame by frame: that would move the rest once for each.
        self._forget_taken()
        self._bytes += received

    def take(self, limit: int | None = None) -> bytes | None:
        """Return the next payload; None when it is not whole yet. Raises FrameTooLongError."""
        begin = self._start + HEADER_BYTES
        if len(self._bytes) < begin:
            return None
        end = begin + payload_size(bytes(self._bytes[self._start : begin]), self._limit if limit is None else limit)
        if len(self._bytes) < end:
            return None
        payload = bytes(self._bytes[begin:end])
        self._start = end
        if end == len(self._bytes):
            self._forget_taken()
        return payload

    def feed(self, received: bytes) -> list[bytes]:
        """Keep what came in, and return the payloads that are whole now. Raises FrameTooLongError for any of them."""
        self.add(received)
        payloads = []
        while (payload := self.take()) is not None:
            payloads.append(payload)
        self._forget_taken()
        return payloads

    def _forget_taken(self) -> None:
        del self._bytes[: self._start]
        self._start = 0
