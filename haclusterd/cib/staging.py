"""A change of the configuration that is larger than one log entry, cut into parts and put together again.

Invariant: parts are compressed, so that their number and the memory they take stay small; what they unpack to is
limited too, and everything that cannot be read is one CodecError.
"""

import base64
import binascii
import hashlib
import json
import zlib
from collections.abc import Sequence
from typing import Final

from haclusterd.cib.commands import ActivateStaged, ChangeConfiguration, Edit, StageChange
from haclusterd.cib.wire import CodecError, shape_of

PART_CHARACTERS: Final = 40_000
"""Of one part: with everything around it, well below the store's limit of an entry."""
UNPACKED_BYTES_MAX: Final = 32 * 1024 * 1024

_EDITS = shape_of(tuple[Edit, ...])


def staged(command: ChangeConfiguration, transaction: str) -> tuple[StageChange | ActivateStaged, ...]:
    """Return the commands that together do what `command` does; `transaction` must be new."""
    text = json.dumps(_EDITS.write(command.edits), separators=(",", ":"), ensure_ascii=False, check_circular=False)
    data = base64.b64encode(zlib.compress(text.encode(), 6)).decode()
    parts = [data[start : start + PART_CHARACTERS] for start in range(0, len(data), PART_CHARACTERS)]
    last = ActivateStaged(
        transaction, len(parts), digest_of(parts), command.expected_epoch, command.author, command.reason
    )
    return (*(StageChange(transaction, number, part) for number, part in enumerate(parts)), last)


def digest_of(parts: Sequence[str]) -> str:
    """Return the SHA-256 of the parts put together."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part.encode())
    return total.hexdigest()


def put_together(parts: Sequence[str]) -> tuple[Edit, ...]:
    """Return the edits of a change; raise CodecError when they cannot be read."""
    try:
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(base64.b64decode("".join(parts), validate=True), UNPACKED_BYTES_MAX)
        if not unpacker.eof:
            raise CodecError("too large, or cut off")
        edits: tuple[Edit, ...] = _EDITS.read(json.loads(text))
    except CodecError:
        raise
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        raise CodecError(f"no staged change: {error}"[:200]) from None
    return edits
