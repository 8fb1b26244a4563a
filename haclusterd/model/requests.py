"""A dialogue in verbs: what is asked of a cluster, and what is answered.

Values only. Who asks is not said here: a daemon knows the user from the socket's credentials.
"""

import re
from collections.abc import Mapping
from typing import Final

from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, field

ORIGIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}(?: for [A-Za-z0-9_.@:/=,+$-]{1,128})?\Z")
"""The interface that a request came by, and for whom it was asked, as the one says who passes it on: `web`,
`REST for alice@example.org`, `cibadmin`."""
VIA: Final = " via "
"""Between who asked and the origin, in what the history calls the author."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a request is to be carried out."""

    wait_ms: int | None = None
    """How long to wait for what was asked for; 0: not at all; None: as the verb does by default."""
    dry_run: bool = False
    force: bool = False
    reason: str = ""
    is_consistent: bool = False
    """Answer from a state that has everything in it which was acknowledged, by any node, before the request."""
    if_version: int | None = None
    """Only while the configuration is this version; None: whichever it is."""
    no_validate: bool = False
    """Do not ask agents what they say of the parameters that a change brings in."""


@dataclass(frozen=True, slots=True)
class Request:
    """One verb with its arguments."""

    id: str
    """Chosen by the client, repeated in every answer."""
    verb: str
    arguments: Mapping[str, Json] = field(default_factory=dict)
    options: Options = Options()
    credential: str | None = field(default=None, repr=False)
    """The API token in whose name this is asked, no matter who passes it on; None: in the name of the socket's user."""
    origin: str = ""
    """As `ORIGIN`, for the history alone: nothing is permitted by it. Empty: crm."""


@dataclass(frozen=True, slots=True)
class ShownReport:
    """One report, as the client that asked gets it."""

    severity: str
    """error, warning or info."""
    code: str
    message: str
    remedy: str = ""
    place: str = ""
    """`FILE:LINE:COLUMN`, as far as it is known."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Still waiting."""

    id: str
    text: str
    elapsed_ms: int


@dataclass(frozen=True, slots=True)
class Basis:
    """What an answer was found over, at the daemon that answers."""

    node: str
    version: int
    """Of the configuration."""
    index: int
    """In the log, of the newest entry that was applied."""
    stale_ms: int
    """How old that may be; 0: as new as the leader's, within a heartbeat."""


@dataclass(frozen=True, slots=True)
class Response:
    """The end of a request."""

    id: str
    exit: int
    reports: tuple[ShownReport, ...] = ()
    data: Json = None
    basis: Basis | None = None
    """None: no daemon answered, or one that was asked nothing about the cluster."""

    @property
    def errors(self) -> tuple[ShownReport, ...]:
        """The reports of severity error, in the order of their places; empty: everything was done or answered."""
        return tuple(each for each in self.reports if each.severity == "error")

    @property
    def error_code(self) -> str:
        """The code of the first error; empty: there is none."""
        return next((each.code for each in self.errors), "")


def refused(code: str, problem: str, remedy: str, exit_status: int, *, place: str = "") -> Response:
    """Return a response that no daemon was needed for: one error, with the exit status of that code (cli.md §5)."""
    return Response("", exit_status, (ShownReport("error", code, problem, remedy, place),))
