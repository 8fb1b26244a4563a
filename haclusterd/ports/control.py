"""How `crm` reaches what carries out its verbs: a daemon, or a state file in the same process.

Contract: `call` answers every request with a response. What goes wrong on the way (nobody listens, the connection ends,
the answer cannot be read) is reported in the response like everything else; it does not raise.
"""

from collections.abc import Callable
from typing import Protocol

from haclusterd.model.requests import Progress, Request, Response


class DaemonLink(Protocol):
    """One end of many dialogues at once, on an event loop; the contract of `call` is the same."""

    async def call(self, request: Request, progress: Callable[[Progress], None]) -> Response:
        """Carry out a request; its id is chosen on the way."""
        ...

    def close(self) -> None:
        """Hang up; what is under way is not answered any more."""
        ...


class CommandClient(Protocol):
    """One end of a dialogue in verbs."""

    def call(self, request: Request, progress: Callable[[Progress], None]) -> Response:
        """Carry out a request; call `progress` while it is waited for."""
        ...

    def describe(self) -> str:
        """Return whom this asks, for a prompt: `live`, or a file's name."""
        ...
