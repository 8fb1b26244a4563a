"""Values to plain JSON data and back, by the type hints of the frozen dataclasses.

One `Shape` for each type, built when the codec is imported: a type that has none cannot be replicated, and says so at
once. The rules: a dataclass is an object of those fields that differ from their defaults; a union of dataclasses is an
object with one key, the name of the class; an enum is its value; a tuple or (sorted) set is an array; a mapping is an
object in the mapping's own order, which is part of its meaning; an integer has 64 bits; text is Unicode without lone
surrogates.

Reading trusts nothing: names are looked up in closed tables, types must match exactly, and the only exception is
`CodecError`.
"""

import operator
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Final, NewType, Union, get_args, get_origin, get_type_hints

from haclusterd.model.steps import Steps

_INT64: Final = range(-(2**63), 2**63)
_ABSENT: Final = object()


class CodecError(ValueError):
    """These bytes are no value of this version: `problem` says why, `path` where."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path: tuple[str, ...] = ()

    def under(self, step: str) -> "CodecError":
        """Return this error as seen from one step further out."""
        self.path = (step[:64], *self.path)
        return self

    def __str__(self) -> str:
        return f"{'.'.join(self.path)}: {self.problem}" if self.path else self.problem


@dataclass(frozen=True, slots=True)
class Shape:
    """How values of one type are read from plain JSON data, and written to it."""

    read: Callable[[Any], Any]
    write: Callable[[Any], Any]
    entries: "tuple[Shape, Shape] | None" = None
    """Of a mapping: how a key and a value of it are."""


@dataclass(frozen=True, slots=True)
class FieldShape:
    """One field of a dataclass; `default` is what is left out when written."""

    name: str
    get: Callable[[Any], Any]
    default: object
    shape: Shape


@cache
def fields_of(kind: Any) -> tuple[FieldShape, ...]:
    """Return the fields of a dataclass, in order."""
    hints = get_type_hints(kind)
    return tuple(
        FieldShape(entry.name, operator.attrgetter(entry.name), _default(entry), shape_of(hints[entry.name]))
        for entry in fields(kind)
    )


@cache
def _hints_of(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _default(entry: "Field[Any]") -> object:
    if entry.default is not MISSING:
        return entry.default
    return entry.default_factory() if entry.default_factory is not MISSING else _ABSENT


def write_fields(value: object, chosen: Iterable[FieldShape]) -> dict[str, Any]:
    """Write those of the chosen fields that differ from their defaults."""
    written = {}
    for entry in chosen:
        item = entry.get(value)
        if item != entry.default:
            written[entry.name] = entry.shape.write(item)
    return written


@cache
def shape_of(hint: Any) -> Shape:
    """Return the shape of a type; raise TypeError for a type that cannot be replicated."""
    while isinstance(hint, NewType):
        hint = hint.__supertype__
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return _deferred(hint) if hint in _unfinished else _record(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _union(arguments)
    if origin is tuple:
        return _sequence(shape_of(arguments[0])) if arguments[-1] is Ellipsis else _fixed(arguments)
    if origin is frozenset:
        return _set(shape_of(arguments[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(shape_of(arguments[0]), shape_of(arguments[1]))
    raise TypeError(f"{hint} cannot be replicated: it has no shape")


def _wrong(expected: str, value: object) -> CodecError:
    return CodecError(f"expected {expected}, found {type(value).__name__}")


def _read_text(value: Any) -> str:
    if type(value) is not str:
        raise _wrong("text", value)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise CodecError("text with a lone surrogate") from None
    return value


def _write_text(value: str) -> str:
    # What an agent printed may hold bytes that are no UTF-8; it must be possible to replicate it nevertheless.
    return value if value.isascii() else value.encode(errors="replace").decode()


def _read_integer(value: Any) -> int:
    if type(value) is not int:
        raise _wrong("an integer", value)
    if value not in _INT64:
        raise CodecError("an integer of more than 64 bits")
    return value


def _read_boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise _wrong("true or false", value)
    return value


_PLAIN: Final[Mapping[Any, Shape]] = {
    str: Shape(_read_text, _write_text),
    int: Shape(_read_integer, int),
    bool: Shape(_read_boolean, bool),
}


def _enum(kind: type[Enum]) -> Shape:
    members = {member.value: member for member in kind}
    value_type = type(next(iter(members)))
    assert all(type(value) is value_type for value in members), f"{kind} mixes types"

    def read(value: Any) -> Enum:
        member = members.get(value) if type(value) is value_type else None
        if member is None:
            raise CodecError(f"no {kind.__name__}: {value!r:.40}")
        return member

    return Shape(read, operator.attrgetter("value"))


_unfinished: Final[list[type]] = []
"""Dataclasses whose shapes are being built: what contains itself refers to its shape by name."""


def _deferred(kind: type) -> Shape:
    return Shape(lambda value: shape_of(kind).read(value), lambda value: shape_of(kind).write(value))


def _record(kind: type) -> Shape:
    _unfinished.append(kind)
    table = fields_of(kind)
    _unfinished.remove(kind)
    readers = {entry.name: entry.shape.read for entry in table}
    required = frozenset(entry.name for entry in table if entry.default is _ABSENT)

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise _wrong(kind.__name__, value)
        arguments = {}
        for name, item in value.items():
            reader = readers.get(name)
            if reader is None:
                raise CodecError(f"{kind.__name__} has no field {name!r:.40}")
            try:
                arguments[name] = reader(item)
            except CodecError as error:
                raise error.under(name) from None
        return _built(kind, required, arguments)

    return Shape(read, lambda value: write_fields(value, table))


def _built(kind: type, required: frozenset[str], arguments: Mapping[str, Any]) -> Any:
    if not required <= arguments.keys():
        raise CodecError(f"{kind.__name__} lacks {', '.join(sorted(required - arguments.keys()))}")
    try:
        return kind(**arguments)
    except ValueError as error:
        raise CodecError(str(error)) from None


def read_in_steps(kind: type, document: Any, apart: Mapping[type, frozenset[str]]) -> Steps[Any]:
    """Read a dataclass as its shape does, but pause after each entry of a mapping in a field that stands `apart`.

    `apart` names the fields of this dataclass, and of those that it contains, whose parts are many. What was read is
    taken out of the document, so that no large value of plain data is ever dropped at once.
    """
    if type(document) is not dict:
        raise _wrong(kind.__name__, document)
    table = {entry.name: entry for entry in fields_of(kind)}
    kinds = _hints_of(kind)
    arguments = {}
    for name in tuple(document):
        entry = table.get(name)
        if entry is None:
            raise CodecError(f"{kind.__name__} has no field {name!r:.40}")
        item = document.pop(name)
        try:
            if kinds[name] in apart:
                arguments[name] = yield from read_in_steps(kinds[name], item, apart)
            elif entry.shape.entries is not None and name in apart[kind]:
                arguments[name] = yield from _read_mapping_in_steps(kinds[name], entry.shape.entries, item, apart)
            else:
                arguments[name] = entry.shape.read(item)
        except CodecError as error:
            raise error.under(name) from None
    required = frozenset(entry.name for entry in table.values() if entry.default is _ABSENT)
    return _built(kind, required, arguments)


def _read_mapping_in_steps(
    hint: Any, shapes: tuple[Shape, Shape], document: Any, apart: Mapping[type, frozenset[str]]
) -> Steps[Any]:
    if type(document) is not dict:
        raise _wrong("an object", document)
    kind = get_args(hint)[1]
    result = {}
    for name in tuple(document):
        item = document.pop(name)
        try:
            key = shapes[0].read(name)
            result[key] = (yield from read_in_steps(kind, item, apart)) if kind in apart else shapes[1].read(item)
        except CodecError as error:
            raise error.under(name) from None
        yield
    return result


def _union(arguments: tuple[Any, ...]) -> Shape:
    kinds = tuple(kind for kind in arguments if kind is not types.NoneType)
    inner = shape_of(kinds[0]) if len(kinds) == 1 else _tagged(kinds)
    return _optional(inner) if len(kinds) < len(arguments) else inner


def _optional(inner: Shape) -> Shape:
    return Shape(
        lambda value: None if value is None else inner.read(value),
        lambda value: None if value is None else inner.write(value),
    )


def _tagged(kinds: tuple[type, ...]) -> Shape:
    by_tag = {kind.__name__: shape_of(kind) for kind in kinds}
    by_kind = {kind: (kind.__name__, shape_of(kind)) for kind in kinds}
    assert len(by_tag) == len(kinds), "two classes of one name in a union"

    def read(value: Any) -> Any:
        if type(value) is not dict or len(value) != 1:
            raise CodecError(f"expected one of {', '.join(by_tag)}")
        ((tag, content),) = value.items()
        shape = by_tag.get(tag)
        if shape is None:
            raise CodecError(f"unknown type {tag!r:.40}")
        try:
            return shape.read(content)
        except CodecError as error:
            raise error.under(tag) from None

    def write(value: Any) -> dict[str, Any]:
        tag, shape = by_kind[type(value)]
        return {tag: shape.write(value)}

    return Shape(read, write)


def _read_items(value: Any, item: Shape) -> list[Any]:
    if type(value) is not list:
        raise _wrong("an array", value)
    read, items = item.read, []
    for each in value:
        try:
            items.append(read(each))
        except CodecError as error:
            raise error.under(str(len(items))) from None
    return items


def _sequence(item: Shape) -> Shape:
    return Shape(
        lambda value: tuple(_read_items(value, item)),
        lambda value: [item.write(each) for each in value],
    )


def _set(item: Shape) -> Shape:
    return Shape(
        lambda value: frozenset(_read_items(value, item)),
        lambda value: [item.write(each) for each in sorted(value)],
    )


def _fixed(arguments: tuple[Any, ...]) -> Shape:
    shapes = tuple(shape_of(argument) for argument in arguments)

    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list or len(value) != len(shapes):
            raise CodecError(f"expected an array of {len(shapes)}")
        return tuple(shape.read(each) for shape, each in zip(shapes, value, strict=True))

    return Shape(read, lambda value: [shape.write(each) for shape, each in zip(shapes, value, strict=True)])


def _mapping(key: Shape, item: Shape) -> Shape:
    def read(value: Any) -> dict[Any, Any]:
        if type(value) is not dict:
            raise _wrong("an object", value)
        result = {}
        for name, each in value.items():
            try:
                result[key.read(name)] = item.read(each)
            except CodecError as error:
                raise error.under(name) from None
        return result

    def write(value: Mapping[Any, Any]) -> dict[Any, Any]:
        return {key.write(name): item.write(each) for name, each in value.items()}

    return Shape(read, write, (key, item))
