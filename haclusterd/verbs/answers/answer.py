"""Answers as JSON and back, and their schema: all derived from the type hints of the dataclasses.

Writing is exact: every field, in order, after `schema`. Reading is lenient, since nodes and `crm` of several versions
meet: what is not there, or is something else, counts as empty (0, no text, an empty list), and what is not known is
passed over.
"""

import operator
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, ClassVar, NewType, TypeVar, Union, get_args, get_origin, get_type_hints

from haclusterd.model.json_value import Json
from haclusterd.model.records import Field, field, fields, is_dataclass

PLAIN: Mapping[Any, str] = {str: "string", int: "integer", bool: "boolean"}
"""Types that are what they are in JSON, and what JSON Schema calls them."""
_AS_THEY_ARE = frozenset({*PLAIN, types.NoneType})
_EMPTY: Mapping[Any, Any] = {str: "", int: 0, bool: False}


class Answer:
    """What a verb answers: the base of frozen dataclasses."""

    __slots__ = ()

    SCHEMA: ClassVar[str]
    """`haclusterd.NAME/VERSION`, the first field of its JSON."""
    HAS_REPORTS: ClassVar[bool] = True
    """Whether the reports are beside its fields."""


Record = TypeVar("Record")


def absent() -> Any:
    """Return the default of a field that is left out of the JSON when it is None, because it was always so."""
    return field(default_factory=_nothing)


def _nothing() -> None:
    return None



def as_json(answer: Answer) -> dict[str, Json]:
    """Return an answer as plain JSON data, its schema first."""
    return {"schema": answer.SCHEMA, **_written(answer)}


def read(kind: type[Record], data: Json) -> Record:
    """Return an answer, or a part of one, from JSON data of any version."""
    hint: Any = kind
    found: Record = _reader(hint)(data)
    return found


def extended(kind: type[Record], base: Any, **more: Any) -> Record:
    """Return a record of a type derived from that of `base`, with what is more."""
    assert is_dataclass(base), base
    return kind(**{each.name: getattr(base, each.name) for each in fields(base)}, **more)


def name_of(schema: str) -> str:
    """Return the name in a schema: `status` of `haclusterd.status/1`."""
    return schema.removeprefix("haclusterd.").partition("/")[0]


def _written(value: Any) -> dict[str, Any]:
    kind: Any = type(value)
    found = {}
    for name, get, is_left_out in _getters(kind):
        part = get(value)
        of: Any = type(part)
        if of in _AS_THEY_ARE:
            if part is None and is_left_out:
                continue
            found[name] = part
        else:
            found[name] = _writer(of)(part)
    return found


def _plain(value: Any) -> Any:
    kind: Any = type(value)
    return value if kind in _AS_THEY_ARE else _writer(kind)(value)


@cache
def _writer(kind: type) -> Callable[[Any], Any]:
    """Return what writes a value of exactly this type, which is none of those that stay as they are."""
    if issubclass(kind, Answer):
        return as_json
    if is_dataclass(kind):
        return _written
    if issubclass(kind, Mapping):
        return _written_mapping
    if issubclass(kind, Enum):
        return operator.attrgetter("value")
    if issubclass(kind, str | int):
        return _unchanged
    return _written_list


def _written_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): _plain(each) for key, each in value.items()}


def _written_list(value: Iterable[Any]) -> list[Any]:
    return [each if type(each) in _AS_THEY_ARE else _plain(each) for each in value]


def _unchanged(value: Any) -> Any:
    return value


@cache
def _getters(kind: type) -> tuple[tuple[str, Callable[[Any], Any], bool], ...]:
    assert is_dataclass(kind), kind
    return tuple(
        (wire_name(each.name), operator.attrgetter(each.name), may_be_absent(each)) for each in fields(kind)
    )


def may_be_absent(each: "Field[Any]") -> bool:
    """Say whether a field is one of those that `absent` makes."""
    return each.default_factory is _nothing


def wire_name(name: str) -> str:
    """Return a field's name in JSON: one that is a word of Python's has an underscore after it here."""
    return name.removesuffix("_")


@cache
def hints_of(kind: type) -> Mapping[str, Any]:
    """Return the fields of a dataclass with their types, without names that only mean something to people."""
    hints = get_type_hints(kind, localns={"Json": object, "Mapping": Mapping, "Sequence": Sequence})
    assert is_dataclass(kind), kind
    return {each.name: _resolved(hints[each.name]) for each in fields(kind)}


def _resolved(hint: Any) -> Any:
    while isinstance(hint, NewType):
        hint = hint.__supertype__
    return hint


def parts_of(hint: Any) -> tuple[Any, tuple[Any, ...], bool]:
    """Return the origin of a hint, its arguments, and whether it may be null besides."""
    hint = _resolved(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        others = tuple(each for each in arguments if each is not types.NoneType)
        if len(others) == 1 and len(others) < len(arguments):
            inner, inside, _ = parts_of(others[0])
            return inner, inside, True
        return Union, others, len(others) < len(arguments)
    return (origin or hint), arguments, False


@cache
def _reader(hint: Any) -> Callable[[Json], Any]:
    """Return what reads a value of this type."""
    origin, arguments, may_be_null = parts_of(hint)
    inner = _plain_reader(origin) or _composed_reader(origin, arguments)
    return (lambda value: None if value is None else inner(value)) if may_be_null else inner


def _plain_reader(origin: Any) -> Callable[[Json], Any] | None:
    if origin in PLAIN:
        empty = _EMPTY[origin]
        return lambda value: value if type(value) is origin else empty
    return None


def _composed_reader(origin: Any, arguments: tuple[Any, ...]) -> Callable[[Json], Any]:
    if is_dataclass(origin):
        # Its reader is looked up when it is used: a type may contain itself.
        return lambda value: _read_record(origin, value)
    if origin is tuple:
        return lambda value: _read_list(arguments[0], value)
    if origin is Mapping or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return lambda value: _read_mapping(arguments[1], value)
    assert origin is Union or origin in (object, Any), f"an answer cannot have a field of type {origin}"
    return lambda value: value


def _read_record(kind: Any, value: Json) -> Any:
    given = value if isinstance(value, Mapping) else {}
    return kind(**{name: _reader(hint)(given.get(wire_name(name))) for name, hint in hints_of(kind).items()})


def _read_list(hint: Any, value: Json) -> tuple[Any, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return ()
    return tuple(_reader(hint)(each) for each in value)


def _read_mapping(hint: Any, value: Json) -> Mapping[str, Any]:
    return {key: _reader(hint)(each) for key, each in value.items()} if isinstance(value, Mapping) else {}


def schema_of(hint: Any) -> dict[str, Json]:
    """Return the JSON Schema of a type; of a dataclass, with all its fields required and others allowed."""
    origin, arguments, may_be_null = parts_of(hint)
    found = _schema(origin, arguments)
    if not may_be_null:
        return found
    if isinstance(found.get("type"), str):
        return {**found, "type": [found["type"], "null"]}
    return {"anyOf": [found, {"type": "null"}]} if found else {}


def _schema(origin: Any, arguments: tuple[Any, ...]) -> dict[str, Json]:
    if origin in PLAIN:
        return {"type": PLAIN[origin]}
    if is_dataclass(origin) and isinstance(origin, type):
        return {"$ref": f"#/components/schemas/{component(origin)}"}
    if origin is tuple:
        return {"type": "array", "items": schema_of(arguments[0])}
    if origin is Mapping or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if origin is Union and all(each in PLAIN for each in arguments):
        return {"type": [PLAIN[each] for each in arguments]}
    return {}


def component(kind: type) -> str:
    """Return the name of a dataclass among the schemas of the OpenAPI document."""
    return f"{kind.__module__.rpartition('.')[2].capitalize()}.{kind.__name__}"


def record_schema(kind: type) -> dict[str, Json]:
    """Return the JSON Schema of a dataclass, written out."""
    properties: dict[str, Json] = {wire_name(name): schema_of(hint) for name, hint in hints_of(kind).items()}
    if issubclass(kind, Answer):
        properties = {"schema": {"const": kind.SCHEMA}, **properties}
    if issubclass(kind, Answer) and kind.HAS_REPORTS:
        properties["reports"] = {"type": "array", "items": {"$ref": "#/components/schemas/Report"}}
    absent = {wire_name(each.name) for each in fields(kind) if may_be_absent(each)}
    required: list[Json] = [name for name in properties if name not in absent]
    first = (kind.__doc__ or "").partition("\n")[0]
    return {"type": "object", "description": first, "properties": properties, "required": required}


def records_in(kind: type) -> tuple[type, ...]:
    """Return a dataclass and every one that is part of it, each once."""
    found: dict[type, None] = {}
    pending: list[Any] = [kind]
    while pending:
        origin, arguments, _ = parts_of(pending.pop(0))
        if is_dataclass(origin) and isinstance(origin, type):
            if origin in found:
                continue
            found[origin] = None
            pending += hints_of(origin).values()
        pending += arguments
    return tuple(found)
