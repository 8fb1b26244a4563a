"""Where clients from anywhere come in: so many at a time, and none that only waits keeps another out."""

from collections.abc import Callable
from typing import Protocol


class Place(Protocol):
    """What one connection holds; without a word about it, it waits for its client and may be closed for another one."""

    def begins(self) -> None:
        """Something is being done for the client: the place is kept."""

    def gives_way(self) -> None:
        """The client has to continue, in sending or in reading: the place is kept until another connection needs it."""

    def ends(self) -> None:
        """Nothing is under way: the place is kept for a while, or until another connection needs it."""

    def leave(self) -> None:
        """The connection has ended; harmless when repeated."""


Make = Callable[[Place], object]
"""Returns the `asyncio.Protocol` of a connection that has come."""


class Listeners(Protocol):
    """Listening sockets."""

    async def open(self, host: str, port: int, make: Make) -> None:
        """Listen on every address of a host. Raises OSError when one cannot be had."""

    def close(self) -> None:
        """Listen no more; connections that are there continue, those that are being secured do not."""
