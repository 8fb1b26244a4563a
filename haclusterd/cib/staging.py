"""A change of the configuration that is larger than one log entry, split into parts and joined again.

Invariant: parts are compressed, so that their number and the memory they take stay small; their unpacked size is
limited too, and unreadable parts of any kind raise a CodecError.
"""

import base64
import binascii
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Final

from haclusterd.cib.commands import ActivateStaged, ChangeConfiguration, StageChange
from haclusterd.cib.edits import Edit
from haclusterd.cib.tags import REPLICATED
from haclusterd.model.steps import Steps, outcome_of
from haclusterd.wire.schemas import CodecError

PART_CHARACTERS: Final = 40_000
"""Size of one part: with everything around it, well below the store's limit of an entry."""
UNPACKED_BYTES_MAX: Final = 32 * 1024 * 1024

PutTogether = Callable[[Sequence[str]], tuple[Edit, ...]]
"""The type of `put_together`."""

_STEP_CHARACTERS: Final = 64 * 1024
"""Characters that are decoded in one step; a multiple of four."""
_EDIT_COSTS: Final = 1024
"""Overhead of an edit, as a number of characters that take as long."""
_SPACES: Final = re.compile(r"[ \t\n\r]*")

_EDITS = REPLICATED.schema_of(tuple[Edit, ...])
_EDIT = REPLICATED.schema_of(Edit)

_decoder = json.JSONDecoder()


def staged(command: ChangeConfiguration, transaction: str) -> tuple[StageChange | ActivateStaged, ...]:
    """Return the commands that together do what `command` does; `transaction` must be unique."""
    text = json.dumps(_EDITS.write(command.edits), separators=(",", ":"), ensure_ascii=False, check_circular=False)
    data = base64.b64encode(zlib.compress(text.encode(), 6)).decode()
    parts = [data[start : start + PART_CHARACTERS] for start in range(0, len(data), PART_CHARACTERS)]
    last = ActivateStaged(
        transaction, len(parts), digest_of(parts), command.expected_epoch, command.author, command.reason
    )
    return (*(StageChange(transaction, number, part) for number, part in enumerate(parts)), last)


def digest_of(parts: Sequence[str]) -> str:
    """Return the SHA-256 of the concatenated parts, in hexadecimal digits."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part.encode())
    return total.hexdigest()


def put_together(parts: Sequence[str]) -> tuple[Edit, ...]:
    """Return the edits of a change; raises CodecError when they cannot be read."""
    return outcome_of(put_together_in_steps(parts))


def put_together_in_steps(parts: Sequence[str]) -> Steps[tuple[Edit, ...]]:
    """Do what `put_together` does, in steps of a few milliseconds."""
    try:
        packed = yield from _from_base64("".join(parts))
        text = yield from _unpacked(packed)
        return (yield from _edits_of(text))
    except CodecError:
        raise
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        raise CodecError(f"no staged change: {error}"[:200]) from None


class AlreadyPutTogether:
    """`put_together` with a result that was prepared; for other parts it does the work now."""

    def __init__(self, parts: Sequence[str], outcome: tuple[Edit, ...] | CodecError) -> None:
        self._parts = list(parts)
        self._outcome = outcome

    def __call__(self, parts: Sequence[str]) -> tuple[Edit, ...]:
        """See `put_together`."""
        if list(parts) != self._parts:
            return put_together(parts)
        if isinstance(self._outcome, CodecError):
            raise self._outcome
        return self._outcome


def prepare_in_steps(parts: Sequence[str]) -> Steps[AlreadyPutTogether]:
    """Put parts together in steps of a few milliseconds, before the result is needed at once."""
    try:
        return AlreadyPutTogether(parts, (yield from put_together_in_steps(parts)))
    except CodecError as error:
        return AlreadyPutTogether(parts, error)


def _from_base64(text: str) -> Steps[bytes]:
    """Decode base64, with the same result as at once: padding in the middle is an error."""
    decoded = []
    for start in range(0, len(text), _STEP_CHARACTERS):
        piece = text[start : start + _STEP_CHARACTERS]
        if "=" in piece and start + _STEP_CHARACTERS < len(text):
            raise CodecError("padding in the middle")
        decoded.append(base64.b64decode(piece, validate=True))
        yield
    return b"".join(decoded)


def _unpacked(packed: bytes) -> Steps[str]:
    unpacker = zlib.decompressobj()
    pieces: list[bytes] = []
    size, rest, position = 0, b"", 0
    while not unpacker.eof and size < UNPACKED_BYTES_MAX:
        if not rest:
            rest = packed[position : position + _STEP_CHARACTERS]
            position += len(rest)
        is_last = not rest
        piece = unpacker.decompress(rest, min(_STEP_CHARACTERS, UNPACKED_BYTES_MAX - size))
        if is_last and not piece:
            break
        rest = unpacker.unconsumed_tail
        pieces.append(piece)
        size += len(piece)
        yield
    if not unpacker.eof:
        raise CodecError("too large, or cut off")
    return b"".join(pieces).decode()


def _edits_of(text: str) -> Steps[tuple[Edit, ...]]:
    """Parse a JSON array of edits one by one: a call into the JSON library stops every other thread while it lasts."""
    edits: list[Edit] = []
    position = _past_spaces(text, 0)
    if text[position : position + 1] != "[":
        raise CodecError("expected an array")
    position = _past_spaces(text, position + 1)
    step_ends = _STEP_CHARACTERS
    is_empty = text[position : position + 1] == "]"
    while not is_empty:
        document, position = _decoder.raw_decode(text, position)
        edits.append(_read_edit(document, len(edits)))
        position = _past_spaces(text, position)
        if text[position : position + 1] == "]":
            break
        if text[position : position + 1] != ",":
            raise CodecError("expected a comma or the end of the array")
        position = _past_spaces(text, position + 1)
        step_ends -= _EDIT_COSTS
        if position >= step_ends:
            step_ends = position + _STEP_CHARACTERS
            yield
    if _past_spaces(text, position + 1) != len(text):
        raise CodecError("more than one array")
    return tuple(edits)


def _read_edit(document: object, number: int) -> Edit:
    try:
        edit: Edit = _EDIT.read(document)
    except CodecError as error:
        raise error.under(str(number)) from None
    return edit


def _past_spaces(text: str, position: int) -> int:
    found = _SPACES.match(text, position)
    assert found is not None
    return found.end()
