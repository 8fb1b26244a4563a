"""What the daemon and its planning worker say to each other, on a socket that they inherit.

The daemon first shows the worker a CIB, in pieces as `cib.codec` writes it; from then on it passes on every entry of
the log, and asks for plans in between. So nothing is encoded for a plan, and the worker's CIB at a question is the
daemon's.

A frame (`wire.framing`) holds msgpack: an array whose first item says what it is.
Both ends are the same version of one program: what is malformed is a programmer's error, and raises ValueError.
"""

from typing import Final

import msgpack

from haclusterd.model.ids import Term
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass, fields
from haclusterd.wire.framing import framed

FRAME_BYTES_MAX: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of the CIB that the worker begins with."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Loaded:
    """All pieces have been sent."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the log that was applied."""

    index: int
    term: Term
    data: bytes
    is_of_voters: bool


@dataclass(frozen=True, slots=True)
class PlanFor:
    """A question: plan for the CIB at `index`."""

    number: int
    index: int
    now: WallTime


@dataclass(frozen=True, slots=True)
class PlanPart:
    """A part of the plan that is being sent (`protocol.plan_codec`)."""

    number: int
    data: bytes


@dataclass(frozen=True, slots=True)
class PlanMade:
    """The end of a plan: all its parts have been sent."""

    number: int
    head: bytes


@dataclass(frozen=True, slots=True)
class PlanFailed:
    """There is no plan."""

    number: int
    problem: str


Message = Fragment | Loaded | Entry | PlanFor | PlanPart | PlanMade | PlanFailed

_KINDS: Final[tuple[type, ...]] = (Fragment, Loaded, Entry, PlanFor, PlanPart, PlanMade, PlanFailed)


def encode(message: Message) -> bytes:
    """Return a message as one frame."""
    values = (getattr(message, each.name) for each in fields(message))
    body: bytes = msgpack.packb([_KINDS.index(type(message)), *values], unicode_errors="surrogatepass")
    return framed(body)


def decode(body: bytes) -> Message:
    """Read a frame without its length."""
    found = msgpack.unpackb(body, unicode_errors="surrogatepass")
    try:
        message: Message = _KINDS[found[0]](*found[1:])
    except (TypeError, IndexError, KeyError) as error:
        raise ValueError(f"no message between daemon and worker: {error}") from None
    return message
