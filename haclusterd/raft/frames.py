"""Raft messages as bytes: msgpack arrays of fixed fields per type, with limits.

Invariant: `decode_frame` returns a message of a listed type whose every field has its type and range, or None; it never
raises and never builds anything but numbers, booleans, bytes and lists of these. A message is a dict, as in the
library, with the library's field names where it has them.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgpack

from haclusterd.raft.settings import MAX_ENTRY_BYTES, MAX_FRAME_BYTES, MAX_SNAPSHOT_BYTES

Message = dict[str, Any]

REGULAR, NO_OP, VOTERS = 0, 1, 2
"""The kinds of entries: the first byte of a command. VOTERS is an ordinary one that also changes the voters."""

CHUNK_BYTES = 128 * 1024
"""Maximum number of snapshot bytes in one message."""

DIGEST_BYTES = 32
"""Bytes of a SHA-256."""

_LARGEST = 2**62


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value < _LARGEST


def _is_flag(value: object) -> bool:
    return type(value) is bool


def _is_command(value: object) -> bool:
    return type(value) is bytes and 0 < len(value) <= MAX_ENTRY_BYTES + 1 and value[0] in (REGULAR, NO_OP, VOTERS)


def _is_proposal(value: object) -> bool:
    return type(value) is bytes and len(value) <= MAX_ENTRY_BYTES


def _is_chunk(value: object) -> bool:
    return type(value) is bytes and len(value) <= CHUNK_BYTES


def _is_digest(value: object) -> bool:
    return type(value) is bytes and len(value) == DIGEST_BYTES


def _is_total(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_SNAPSHOT_BYTES


def _is_entries(value: object) -> bool:
    return type(value) is list and all(_is_entry(entry) for entry in value)


def _is_entry(value: object) -> bool:
    return (
        type(value) is list
        and len(value) == 3
        and _is_command(value[0])
        and _is_number(value[1])
        and _is_number(value[2])
    )


_Check = Callable[[object], bool]

_FIELDS: Mapping[str, tuple[tuple[str, _Check], ...]] = {
    "request_vote": (("term", _is_number), ("last_log_index", _is_number), ("last_log_term", _is_number)),
    "response_vote": (("term", _is_number),),
    # Would you vote for me in this term, which is one above mine? (Raft thesis §9.6)
    "request_pre_vote": (("term", _is_number), ("last_log_index", _is_number), ("last_log_term", _is_number)),
    # `term` is the sender's own, `asked_term` the one of the request.
    "response_pre_vote": (("term", _is_number), ("asked_term", _is_number), ("granted", _is_flag)),
    "append_entries": (
        ("term", _is_number),
        ("commit_index", _is_number),
        ("prevLogIdx", _is_number),
        ("prevLogTerm", _is_number),
        ("entries", _is_entries),
    ),
    # success: everything below `next_node_idx` is here and synced. Otherwise `refused_index` is the prevLogIdx that did
    # not match, and `next_node_idx` the next one to try; a refusal at index 0 only shows a newer term.
    "next_node_idx": (
        ("term", _is_number),
        ("next_node_idx", _is_number),
        ("success", _is_flag),
        ("refused_index", _is_number),
    ),
    "install_snapshot": (
        ("term", _is_number),
        ("index", _is_number),
        ("total", _is_total),
        ("offset", _is_total),
        ("data", _is_chunk),
    ),
    "snapshot_received": (("term", _is_number), ("index", _is_number), ("offset", _is_total)),
    "apply_command": (("command", _is_proposal),),
    "timeout_now": (("term", _is_number),),
    # The state's digest at an index (digests.py).
    "digest": (("index", _is_number), ("digest", _is_digest)),
    # First in each session: the newest term and committed entry that the receiver showed to the sender; and the term
    # that the sender leads, with the newest entry that the receiver acknowledged in it.
    "recall": (("term", _is_number), ("index", _is_number), ("led_term", _is_number), ("led_index", _is_number)),
}
_TYPES = tuple(_FIELDS)
_NUMBERS = {kind: number for number, kind in enumerate(_TYPES)}
_FIRST_BUFFER_BYTES = 4096
"""Initial buffer size: most messages fit, and the packer enlarges its buffer for the others."""


def encode_frame(message: Message) -> bytes:
    """Return the bytes of a message; an unknown type is a programmer's error."""
    kind = message["type"]
    fields = [message[name] for name, _ in _FIELDS[kind]]
    frame: bytes = msgpack.Packer(buf_size=_FIRST_BUFFER_BYTES).pack([_NUMBERS[kind], *fields])
    assert len(frame) <= MAX_FRAME_BYTES
    return frame


def decode_frame(frame: bytes) -> Message | None:
    """Return the message, or None when the bytes are not one."""
    if len(frame) > MAX_FRAME_BYTES:
        return None
    try:
        row = msgpack.unpackb(frame, max_ext_len=0, max_map_len=0, strict_map_key=True)
    except (ValueError, TypeError, msgpack.UnpackException):
        return None
    if type(row) is not list or not row or type(row[0]) is not int or not 0 <= row[0] < len(_TYPES):
        return None
    kind = _TYPES[row[0]]
    expected = _FIELDS[kind]
    if len(row) != len(expected) + 1:
        return None
    message: Message = {"type": kind}
    for (name, check), value in zip(expected, row[1:], strict=True):
        if not check(value):
            return None
        message[name] = value
    return message if kind != "append_entries" or _is_coherent(message) else None


def _is_coherent(message: Message) -> bool:
    """Return whether the entries follow each other and the entry before them, in index and term."""
    index, term = message["prevLogIdx"], message["prevLogTerm"]
    for _, entry_index, entry_term in message["entries"]:
        if entry_index != index + 1 or entry_term < term:
            return False
        index, term = entry_index, entry_term
    return bool(term <= message["term"])
