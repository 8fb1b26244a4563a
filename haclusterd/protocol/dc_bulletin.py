"""What the DC writes to its peers about itself: what no log holds, and what `crm status` shows on every node.

Layout: one byte of kind, then JSON, compressed: [term, warnings, scheduler's error, transition]. `decode` returns a
bulletin whose every field has its type, or raises `BulletinRefusedError`; it unpacks no more than a bounded number of
bytes. Only nodes that read feature level `SINCE_LEVEL` get one: older ones take it for a message of the history.
"""

import json
import zlib
from typing import Final

from haclusterd.model.records import dataclass
from haclusterd.wire.schemas import Schemas, whole_number

KIND: Final = b"\x02"
SINCE_LEVEL: Final = 3
"""The feature level whose nodes read bulletins."""
WARNINGS_MAX: Final = 100
WARNING_CHARACTERS_MAX: Final = 500
ERROR_CHARACTERS_MAX: Final = 2000
UNPACKED_BYTES_MAX: Final = 512 * 1024


class BulletinRefusedError(ValueError):
    """These bytes are no bulletin."""


@dataclass(frozen=True, slots=True)
class DcBulletin:
    """What a DC knows beside the CIB."""

    term: int
    warnings: tuple[str, ...] = ()
    """Of the newest plan."""
    scheduler_error: str = ""
    """Why there is no plan; empty when there is one."""
    transition: tuple[int, int, int] | None = None
    """The running one: its number, actions done, all actions."""


_SCHEMA: Final = Schemas(special={int: whole_number()}, is_positional=True).schema_of(DcBulletin)


def shortened(bulletin: DcBulletin) -> DcBulletin:
    """Return a bulletin that fits into a message, and says what it leaves out."""
    warnings = [_cut(each, WARNING_CHARACTERS_MAX) for each in bulletin.warnings[:WARNINGS_MAX]]
    left_out = len(bulletin.warnings) - len(warnings)
    if left_out:
        warnings.append(f"{left_out} more, which only the DC shows")
    error = _cut(bulletin.scheduler_error, ERROR_CHARACTERS_MAX)
    return DcBulletin(bulletin.term, tuple(warnings), error, bulletin.transition)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def encode(bulletin: DcBulletin) -> bytes:
    """Return the bytes of a bulletin, shortened where it is too long."""
    document = _SCHEMA.write(shortened(bulletin))
    return KIND + zlib.compress(json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode(), 1)


def decode(data: bytes) -> DcBulletin:
    """Read what `encode` wrote; raise BulletinRefusedError for everything else."""
    if data[:1] != KIND:
        raise BulletinRefusedError("not a bulletin")
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(data[1:], UNPACKED_BYTES_MAX)
        if not unpacking.eof or unpacking.unused_data:
            raise BulletinRefusedError("too large, or cut off")
        bulletin: DcBulletin = _SCHEMA.read(json.loads(text))
    except BulletinRefusedError:
        raise
    except (zlib.error, ValueError, RecursionError) as error:
        raise BulletinRefusedError(f"{type(error).__name__}: {error}"[:200]) from None
    return bulletin
