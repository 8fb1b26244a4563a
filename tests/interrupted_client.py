"""A client of `crm` whose user ends what is followed."""

from collections.abc import Callable

from haclusterd.model.requests import Progress, Request, Response
from haclusterd.ports.control import CommandClient


class Interrupted:
    """Asks through another client; its user ends `history.follow` by an interrupt when the first answer is there."""

    def __init__(self, client: CommandClient) -> None:
        self._client = client
        self._follows = 0

    def describe(self) -> str:
        """Return what the client says of itself."""
        return self._client.describe()

    def call(self, request: Request, progress: Callable[[Progress], None]) -> Response:
        """Ask, or be interrupted."""
        self._follows += request.verb == "history.follow"
        if self._follows > 1:
            raise KeyboardInterrupt
        return self._client.call(request, progress)
