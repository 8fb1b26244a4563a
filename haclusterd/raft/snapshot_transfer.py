"""Sends a snapshot file to a voter that lags too far: numbered chunks, a window, and an answer for each.

Invariant: what `SnapshotReceiver` assembles is a contiguous run of what one sender sent for one index; whether it is a
snapshot is decided afterwards by its checksum. Neither side ever waits: each message also serves as a heartbeat, and
each answer as a sign of life.
"""

from haclusterd.raft.frames import CHUNK_BYTES

WINDOW_BYTES = 8 * CHUNK_BYTES
"""Maximum number of bytes sent and not yet answered."""


class SnapshotSender:
    """One snapshot being sent to one peer."""

    def __init__(self, index: int, image: bytes, *, stuck_after_ms: int, now: int) -> None:
        self.index = index
        self.image = image
        self._received = 0
        self._sent = 0
        self._stuck_after_ms = stuck_after_ms
        self._moved_at = now

    def chunks(self, now: int) -> list[tuple[int, bytes]]:
        """Return the (offset, data) to send now; at least one, which may be empty."""
        if now - self._moved_at > self._stuck_after_ms:
            self._sent, self._moved_at = self._received, now
        chunks = []
        while self._sent < len(self.image) and self._sent - self._received < WINDOW_BYTES:
            data = self.image[self._sent : self._sent + CHUNK_BYTES]
            chunks.append((self._sent, data))
            self._sent += len(data)
        return chunks or [(self._sent, b"")]

    def answered(self, offset: int, now: int) -> bool:
        """Note how many bytes the peer holds; return whether there is room to send more."""
        if offset > len(self.image):
            return False
        if offset < self._received:
            self._sent = offset
        is_moved = offset != self._received
        self._received, self._sent = offset, max(self._sent, offset)
        if is_moved:
            self._moved_at = now
        return is_moved and self._sent < len(self.image)


class SnapshotReceiver:
    """The snapshot that is being received, if any."""

    def __init__(self) -> None:
        self._source: tuple[str, int, int] | None = None
        self._data = bytearray()

    @property
    def offset(self) -> int:
        """Number of bytes held."""
        return len(self._data)

    def accept(self, peer: str, index: int, total: int, offset: int, data: bytes) -> bytes | None:
        """Add a chunk from `peer`; return the whole image once it is complete (and forget it)."""
        source = (peer, index, total)
        if source != self._source:
            self.drop()
            self._source = source
        if offset != len(self._data) or offset + len(data) > total:
            return None
        self._data += data
        if len(self._data) < total or not total:
            return None
        image = bytes(self._data)
        self.drop()
        return image

    def drop(self) -> None:
        """Drop what was received so far."""
        self._source = None
        self._data = bytearray()
