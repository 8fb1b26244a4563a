"""Commands and the CIB as bytes, in the one canonical form: in the journal, in snapshots, between nodes.

Equal values have equal bytes, on every node and in every process: compact JSON in UTF-8, in the order of
`wire.schemas`. A document starts with its format number (how to read it) and its feature level (which fields and types
it may hold). A node refuses any document that is newer than itself: skipping what it does not know would make nodes
differ. A command is written at the lowest level that can express it, a CIB at the level that all members read
(`cib.levels`).

An envelope is one object. A CIB is a sequence of lines, each `[address, value]` with a value small enough that no call
into the JSON library handles more than about 256 KiB: such a call stops every other thread of the process while it
runs. Reading puts the values back at their addresses and then converts the whole by its type.

Nothing here raises on any bytes except `CodecError`. A new field or type raises `FEATURE_LEVEL`; files of every
released level are kept in tests/upgrade.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from haclusterd.cib.commands import Envelope
from haclusterd.cib.levels import level_of
from haclusterd.cib.tags import COMMANDS, REPLICATED
from haclusterd.model.cluster import Cib, NodeStatus, Status
from haclusterd.model.configuration import Configuration
from haclusterd.model.steps import Steps, outcome_of
from haclusterd.wire.schemas import CodecError, FieldSchema, Schema, write_fields

__all__ = [
    "FEATURE_LEVEL",
    "FORMAT",
    "SPREAD",
    "CodecError",
    "decode_cib",
    "decode_cib_in_steps",
    "decode_envelope",
    "digest",
    "encode_cib",
    "encode_envelope",
    "iter_fragments",
    "kind_of",
]

FORMAT: Final = 1
FEATURE_LEVEL: Final = 3

_ITEMS_PER_LINE: Final = 1000
_STEP_BYTES: Final = 64 * 1024
_LINE_COSTS: Final = 512
"""Overhead of a line, as a number of bytes that take as long."""
_PARTS_PER_STEP: Final = 64
"""Number of parts, of a few hundred bytes each, that are converted in one step."""

_ENVELOPE = REPLICATED.schema_of(Envelope)
_KINDS: Final[Mapping[bytes, type]] = {tag.encode(): kind for kind, tag in COMMANDS.items()}
_TAG: Final = re.compile(
    rb'\{"format":\d+,"level":\d+,"envelope":\{"request":"(?:[^"\\]|\\.)*","proposer":"(?:[^"\\]|\\.)*","at":-?\d+,'
    rb'"command":\{"([A-Za-z]+)":'
)
"""The beginning of an envelope in the canonical form, up to the tag of its command."""

SPREAD: Final[Mapping[type, frozenset[str]]] = {
    Cib: frozenset({"members", "configuration", "status", "requests", "refused", "staged"}),
    Configuration: frozenset({"nodes", "resources", "constraints", "templates", "tags", "alerts"}),
    Status: frozenset({"nodes", "fence_orders", "abandoned_fencings", "fencing_history", "proofs"}),
    NodeStatus: frozenset({"attributes", "histories", "probed", "unverified", "orders"}),
}
"""Fields whose parts have lines of their own; all others are small."""

_TOGETHER: Final = {
    kind: tuple(entry for entry in REPLICATED.fields_of(kind) if entry.name not in apart)
    for kind, apart in SPREAD.items()
}
_APART: Final = {
    kind: tuple(entry for entry in REPLICATED.fields_of(kind) if entry.name in apart)
    for kind, apart in SPREAD.items()
}

_encoder = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"))


def encode_envelope(envelope: Envelope) -> bytes:
    """Return the canonical bytes of a command and its proposer."""
    document = {"format": FORMAT, "level": level_of(envelope.command), "envelope": _ENVELOPE.write(envelope)}
    return _encoder.encode(document).encode()


def decode_envelope(data: bytes) -> Envelope:
    """Read what `encode_envelope` wrote; raises CodecError for anything else."""
    document = _parse(data)
    _check_version(document, {"format", "level", "envelope"})
    return cast(Envelope, _read(_ENVELOPE, document["envelope"]))


def kind_of(data: bytes) -> type | None:
    """Return the type of an envelope's command by its tag, without reading the command; None: unreadable.

    Only an envelope that is not in the canonical form of `encode_envelope` is read whole.
    """
    found = _TAG.match(data)
    kind = _KINDS.get(found[1]) if found is not None else None
    if kind is not None:
        return kind
    try:
        return type(decode_envelope(data).command)
    except CodecError:
        return None


def encode_cib(cib: Cib) -> bytes:
    """Return the canonical bytes of a CIB."""
    return b"".join(iter_fragments(cib))


def iter_fragments(cib: Cib) -> Iterator[bytes]:
    """Yield the canonical bytes of a CIB line by line, so that other threads run in between."""
    level = min(max(1, cib.feature_level), FEATURE_LEVEL)
    yield _encoder.encode({"format": FORMAT, "level": level}).encode() + b"\n"
    yield from _value_lines(cib)


def decode_cib(data: bytes) -> Cib:
    """Read what `encode_cib` wrote; raises CodecError for anything else."""
    return outcome_of(decode_cib_in_steps(data))


def decode_cib_in_steps(data: bytes) -> Steps[Cib]:
    """Do what `decode_cib` does, in steps of a few milliseconds; the last one returns the CIB."""
    lines = _lines(data)
    _check_version(_parse(next(lines, b"")), {"format", "level"})
    root: dict[str, Any] = {}
    size = 0
    for number, line in enumerate(lines, start=2):
        try:
            _graft(root, _parse(line))
        except CodecError as error:
            raise error.under(f"line {number}") from None
        size += len(line) + _LINE_COSTS
        if size >= _STEP_BYTES:
            size = 0
            yield
    reading = REPLICATED.read_in_steps(Cib, root, SPREAD)
    try:
        while True:
            for _ in range(_PARTS_PER_STEP):
                next(reading)
            yield
    except StopIteration as end:
        return cast(Cib, end.value)
    except RecursionError:
        raise CodecError("nested too deeply") from None


def digest(cib: Cib) -> str:
    """Return the SHA-256 of a CIB's canonical bytes, in hexadecimal digits, without the version that wrote them."""
    total = hashlib.sha256()
    for fragment in _value_lines(cib):
        total.update(fragment)
    return total.hexdigest()


def _read(schema: Schema, document: object) -> object:
    try:
        return schema.read(document)
    except RecursionError:
        raise CodecError("nested too deeply") from None


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise CodecError(f"no JSON: {error}"[:200]) from None


def _check_version(document: object, names: set[str]) -> None:
    if type(document) is not dict or document.keys() != names:
        raise CodecError(f"expected an object of {', '.join(sorted(names))}")
    found = document["format"], document["level"]
    if type(found[0]) is not int or type(found[1]) is not int or found[1] < 1:
        raise CodecError("format and level are no positive integers")
    if found[0] != FORMAT or found[1] > FEATURE_LEVEL:
        known = f"format {FORMAT} up to level {FEATURE_LEVEL}"
        raise CodecError(f"written in format {found[0]}, level {found[1]}; this version reads {known}")


def _value_lines(cib: Cib) -> Iterator[bytes]:
    for address, value in _spread((), cib):
        yield _encoder.encode([address, value]).encode() + b"\n"


def _lines(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        if end < 0:
            raise CodecError("the last line is cut off")
        yield data[start:end]
        start = end + 1


def _spread(address: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield address, write_fields(value, _TOGETHER[type(value)])
    for entry in _APART[type(value)]:
        yield from _spread_field((*address, entry.name), entry, entry.get(value))


def _spread_field(address: tuple[str, ...], entry: FieldSchema, part: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if type(part) in SPREAD:
        yield from _spread(address, part)
    elif part == entry.default:
        return
    elif isinstance(part, Mapping):
        assert entry.schema.entries is not None
        key, schema = entry.schema.entries
        for name, item in part.items():
            if type(item) in SPREAD:
                yield from _spread((*address, name), item)
            else:
                yield (*address, key.write(name)), schema.write(item)
    else:
        items = entry.schema.write(part)
        for start in range(0, len(items), _ITEMS_PER_LINE):
            yield address, items[start : start + _ITEMS_PER_LINE]


def _graft(root: dict[str, Any], line: object) -> None:
    if type(line) is not list or len(line) != 2 or type(line[0]) is not list:
        raise CodecError("expected an address and a value")
    address, value = line
    if not all(type(step) is str for step in address):
        raise CodecError("an address is made of text")
    if not address:
        if root or type(value) is not dict:
            raise CodecError("the root is an object and comes first")
        root.update(value)
        return
    _place(_parent(root, address), address[-1], value)


def _parent(root: dict[str, Any], address: list[str]) -> dict[str, Any]:
    place = root
    for step in address[:-1]:
        inner = place.setdefault(step, {})
        if type(inner) is not dict:
            raise CodecError(f"{step!r:.40} holds no parts")
        place = inner
    return place


def _place(parent: dict[str, Any], name: str, value: Any) -> None:
    present = parent.get(name)
    if present is None and name not in parent:
        parent[name] = value
    elif type(present) is list and type(value) is list:
        present.extend(value)
    else:
        raise CodecError(f"{name!r:.40} is there twice")
