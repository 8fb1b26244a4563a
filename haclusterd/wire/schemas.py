"""Values to plain JSON data and back, by the type hints of the frozen dataclasses.

One `Schema` for each type, built when what uses it is imported: a type that has none cannot be written, and says so at
once. `Schemas` is a family of them with its own rules; those of the CIB are in `cib/tags.py`, those of messages stand
beside the messages. Common to all: a dataclass is an object (or, by position, an array) of its fields; a union of
dataclasses is an object with one key, a tag from a table; an enum is its value; a tuple or (sorted) set is an array; a
mapping is an object in the mapping's own order, which is part of its meaning; an integer has 64 bits; text is Unicode
without lone surrogates.

Reading trusts nothing: names are looked up in closed tables, types must match exactly, and the only exception is
`CodecError`.
"""

import base64
import binascii
import operator
import types
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Final, NewType, Union, get_args, get_origin, get_type_hints

from haclusterd.model.ids import NODE_NAME, NodeName
from haclusterd.model.records import MISSING, Field, dataclass, fields, is_dataclass
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
class Schema:
    """How values of one type are read from plain JSON data, and written to it."""

    read: Callable[[Any], Any]
    write: Callable[[Any], Any]
    entries: "tuple[Schema, Schema] | None" = None
    """Of a mapping: how a key and a value of it are."""


@dataclass(frozen=True, slots=True)
class FieldSchema:
    """One field of a dataclass; `default` is what it is where it is not written."""

    name: str
    """In the bytes."""
    attribute: str
    get: Callable[[Any], Any]
    default: object
    schema: Schema


FieldOf = tuple[type, str]
"""A dataclass, and one of its fields."""


class Schemas:
    """Schemas by one set of rules.

    `tags` are the names of classes in unions: they are part of the bytes and never change, whatever a class is called.
    `special` holds schemas that are in the place of the derived ones, for types, type aliases or single fields;
    `names`, other names than the attributes'; `omitted`, the fields that are never written. Fields that equal their
    defaults are left out if `is_sparse`. Names that are not known are refused, or passed over if `is_open`. Fields that
    have a default may be absent, unless it `requires_all`.
    Dataclasses are arrays if `is_positional`.
    """

    def __init__(
        self,
        *,
        tags: Mapping[type, str] | None = None,
        special: Mapping[Any, Schema] | None = None,
        names: Mapping[FieldOf, str] | None = None,
        omitted: Iterable[FieldOf] = (),
        is_sparse: bool = False,
        is_open: bool = False,
        requires_all: bool = False,
        is_positional: bool = False,
    ) -> None:
        self._tags = tags or {}
        self._special = special or {}
        self._names = names or {}
        self._omitted = frozenset(omitted)
        self._is_sparse = is_sparse
        self._is_open = is_open
        self._requires_all = requires_all
        self._is_positional = is_positional
        self._schemas: dict[Any, Schema] = {}
        self._fields: dict[type, tuple[FieldSchema, ...]] = {}
        self._hints: dict[type, dict[str, Any]] = {}
        self._unfinished: list[type] = []
        """Dataclasses whose schemas are being built: what contains itself refers to its schema by name."""

    def fields_of(self, kind: type) -> tuple[FieldSchema, ...]:
        """Return the fields of a dataclass, in order."""
        found = self._fields.get(kind)
        if found is None:
            hints = self._hints_of(kind)
            assert is_dataclass(kind)
            found = self._fields[kind] = tuple(
                self._field(kind, entry, hints[entry.name])
                for entry in fields(kind)
                if (kind, entry.name) not in self._omitted
            )
        return found

    def _hints_of(self, kind: type) -> dict[str, Any]:
        found = self._hints.get(kind)
        if found is None:
            found = self._hints[kind] = get_type_hints(kind)
        return found

    def _field(self, kind: type, entry: "Field[Any]", hint: Any) -> FieldSchema:
        place = kind, entry.name
        schema = self._special.get(place) or self.schema_of(hint)
        name = self._names.get(place, entry.name)
        return FieldSchema(name, entry.name, operator.attrgetter(entry.name), _default(entry), schema)

    def schema_of(self, hint: Any) -> Schema:
        """Return the schema of a type; raise TypeError for a type that cannot be written."""
        found = self._schemas.get(hint)
        if found is None:
            found = self._made(hint)
            if hint not in self._unfinished:
                self._schemas[hint] = found
        return found

    def _made(self, hint: Any) -> Schema:
        while hint not in self._special and isinstance(hint, NewType):
            hint = hint.__supertype__
        if hint in self._special:
            return self._special[hint]
        if hint in _PLAIN:
            return _PLAIN[hint]
        if isinstance(hint, type) and issubclass(hint, Enum):
            return _enum(hint)
        if isinstance(hint, type) and is_dataclass(hint):
            return self._deferred(hint) if hint in self._unfinished else self._record(hint)
        return self._composed(hint, get_origin(hint), get_args(hint))

    def _composed(self, hint: Any, origin: Any, arguments: tuple[Any, ...]) -> Schema:
        if origin in (Union, types.UnionType):
            return self._union(arguments)
        if origin is tuple and arguments[-1] is Ellipsis:
            return _sequence(self.schema_of(arguments[0]))
        if origin is tuple:
            return _fixed(tuple(map(self.schema_of, arguments)))
        if origin is frozenset:
            return _set(self.schema_of(arguments[0]))
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return _mapping(self.schema_of(arguments[0]), self.schema_of(arguments[1]))
        raise TypeError(f"{hint} cannot be written: it has no schema")

    def _deferred(self, kind: type) -> Schema:
        return Schema(lambda value: self.schema_of(kind).read(value), lambda value: self.schema_of(kind).write(value))

    def _record(self, kind: type) -> Schema:
        self._unfinished.append(kind)
        table = self.fields_of(kind)
        self._unfinished.remove(kind)
        if self._is_positional:
            return _array(kind, table)
        writes = write_fields if self._is_sparse else _write_all
        return Schema(self._reader(kind, table), lambda value: writes(value, table))

    def _reader(self, kind: type, table: tuple[FieldSchema, ...]) -> Callable[[Any], Any]:
        readers = {entry.name: (entry.attribute, entry.schema.read) for entry in table}
        required, is_open = _required(table, requires_all=self._requires_all), self._is_open

        def read(value: Any) -> Any:
            if type(value) is not dict:
                raise _wrong(kind.__name__, value)
            arguments = {}
            for name, item in value.items():
                found = readers.get(name)
                if found is None:
                    if is_open:
                        continue
                    raise CodecError(f"{kind.__name__} has no field {name!r:.40}")
                try:
                    arguments[found[0]] = found[1](item)
                except CodecError as error:
                    raise error.under(name) from None
            return _built(kind, required, arguments)

        return read

    def _union(self, arguments: tuple[Any, ...]) -> Schema:
        kinds = tuple(kind for kind in arguments if kind is not types.NoneType)
        inner = self.schema_of(kinds[0]) if len(kinds) == 1 else self._tagged(kinds)
        return _optional(inner) if len(kinds) < len(arguments) else inner

    def _tagged(self, kinds: tuple[type, ...]) -> Schema:
        untagged = [kind for kind in kinds if kind not in self._tags]
        if untagged:
            raise TypeError(f"{untagged[0].__name__} is in a union and has no tag")
        by_kind = {kind: (self._tags[kind], self.schema_of(kind)) for kind in kinds}
        by_tag = dict(by_kind.values())
        assert len(by_tag) == len(kinds), "two classes of one tag in a union"

        def read(value: Any) -> Any:
            if type(value) is not dict or len(value) != 1:
                raise CodecError(f"expected one of {', '.join(by_tag)}")
            ((tag, content),) = value.items()
            schema = by_tag.get(tag)
            if schema is None:
                raise CodecError(f"unknown type {tag!r:.40}")
            try:
                return schema.read(content)
            except CodecError as error:
                raise error.under(tag) from None

        def write(value: Any) -> dict[str, Any]:
            tag, schema = by_kind[type(value)]
            return {tag: schema.write(value)}

        return Schema(read, write)

    def messages(self, tag_name: str, kinds: Mapping[str, type]) -> Schema:
        """Return the schema of messages: objects whose field `tag_name` says of which class they are."""
        schemas = {tag: self.schema_of(kind) for tag, kind in kinds.items()}
        tags = {kind: tag for tag, kind in kinds.items()}

        def read(value: Any) -> Any:
            if type(value) is not dict:
                raise _wrong("an object", value)
            tag = value.get(tag_name)
            schema = schemas.get(tag) if type(tag) is str else None
            if schema is None:
                raise CodecError(f"unknown {tag_name} {str(tag)[:20]!r}")
            return schema.read({name: item for name, item in value.items() if name != tag_name})

        def write(value: Any) -> dict[str, Any]:
            tag = tags[type(value)]
            return {tag_name: tag, **schemas[tag].write(value)}

        return Schema(read, write)

    def read_in_steps(self, kind: type, document: Any, apart: Mapping[type, frozenset[str]]) -> Steps[Any]:
        """Read a dataclass as its schema does, but pause after each entry of a mapping in a field that stands `apart`.

        `apart` names the fields of this dataclass, and of those that it contains, whose parts are many. What was read
        is taken out of the document, so that no large value of plain data is ever dropped at once.
        """
        if type(document) is not dict:
            raise _wrong(kind.__name__, document)
        table = {entry.name: entry for entry in self.fields_of(kind)}
        kinds = self._hints_of(kind)
        arguments = {}
        for name in tuple(document):
            entry = table.get(name)
            if entry is None:
                raise CodecError(f"{kind.__name__} has no field {name!r:.40}")
            item = document.pop(name)
            try:
                if kinds[name] in apart:
                    arguments[name] = yield from self.read_in_steps(kinds[name], item, apart)
                elif entry.schema.entries is not None and name in apart[kind]:
                    arguments[name] = yield from self._mapping_in_steps(kinds[name], entry.schema.entries, item, apart)
                else:
                    arguments[name] = entry.schema.read(item)
            except CodecError as error:
                raise error.under(name) from None
        return _built(kind, _required(table.values()), arguments)

    def _mapping_in_steps(
        self, hint: Any, schemas: tuple[Schema, Schema], document: Any, apart: Mapping[type, frozenset[str]]
    ) -> Steps[Any]:
        if type(document) is not dict:
            raise _wrong("an object", document)
        kind = get_args(hint)[1]
        result = {}
        for name in tuple(document):
            item = document.pop(name)
            try:
                key = schemas[0].read(name)
                if kind in apart:
                    result[key] = yield from self.read_in_steps(kind, item, apart)
                else:
                    result[key] = schemas[1].read(item)
            except CodecError as error:
                raise error.under(name) from None
            yield
        return result


def write_fields(value: object, chosen: Iterable[FieldSchema]) -> dict[str, Any]:
    """Write those of the chosen fields that differ from their defaults."""
    written = {}
    for entry in chosen:
        item = entry.get(value)
        if item != entry.default:
            written[entry.name] = entry.schema.write(item)
    return written


def _write_all(value: object, chosen: Iterable[FieldSchema]) -> dict[str, Any]:
    return {entry.name: entry.schema.write(entry.get(value)) for entry in chosen}


def _default(entry: "Field[Any]") -> object:
    if entry.default is not MISSING:
        return entry.default
    return entry.default_factory() if entry.default_factory is not MISSING else _ABSENT


def _required(table: Iterable[FieldSchema], *, requires_all: bool = False) -> frozenset[str]:
    return frozenset(entry.attribute for entry in table if requires_all or entry.default is _ABSENT)


def _built(kind: type, required: frozenset[str], arguments: Mapping[str, Any]) -> Any:
    if not required <= arguments.keys():
        raise CodecError(f"{kind.__name__} lacks {', '.join(sorted(required - arguments.keys()))}")
    try:
        return kind(**arguments)
    except ValueError as error:
        raise CodecError(str(error)) from None


def _array(kind: type, table: tuple[FieldSchema, ...]) -> Schema:
    """Return the schema of a dataclass whose fields are known by their places."""

    def read(value: Any) -> Any:
        if type(value) is not list or len(value) != len(table):
            raise CodecError(f"{kind.__name__}: expected an array of {len(table)}")
        return _built(kind, frozenset(), _read_named(table, value))

    return Schema(read, lambda value: [entry.schema.write(entry.get(value)) for entry in table])


def _read_named(table: tuple[FieldSchema, ...], items: list[Any]) -> dict[str, Any]:
    arguments = {}
    for entry, item in zip(table, items, strict=True):
        try:
            arguments[entry.attribute] = entry.schema.read(item)
        except CodecError as error:
            raise error.under(entry.name) from None
    return arguments


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


TEXT: Final = Schema(_read_text, _write_text)

_PLAIN: Final[Mapping[Any, Schema]] = {
    str: TEXT,
    int: Schema(_read_integer, int),
    bool: Schema(_read_boolean, bool),
}


def whole_number(minimum: int = 0, maximum: int = 2**53 - 1) -> Schema:
    """Return the schema of an integer within bounds, both included; up to 2^53 any JSON reader keeps it exact."""

    def read(value: Any) -> int:
        if type(value) is not int or not minimum <= value <= maximum:
            raise CodecError(f"not a number from {minimum} to {maximum}: {value!r:.40}")
        return value

    return Schema(read, int)


def text_that(reads: Callable[[str], Any], writes: Callable[[Any], str] = str) -> Schema:
    """Return the schema of what is written as text: `reads` makes the value of it, and raises ValueError."""

    def read(value: Any) -> Any:
        text = _read_text(value)
        try:
            return reads(text)
        except ValueError as error:
            raise CodecError(str(error)) from None

    return Schema(read, lambda value: _write_text(writes(value)))


def _read_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


BASE64: Final = text_that(_read_base64, lambda value: base64.b64encode(value).decode())
"""Bytes in Base64 (RFC 4648 §4)."""


def _read_node(text: str) -> NodeName:
    if not NODE_NAME.match(text):
        raise ValueError(f"not a node name: {text!r:.80}")
    return NodeName(text)


NODE: Final = text_that(_read_node)
"""A name that a node may have. (The log holds names that were checked before they were proposed.)"""


def _enum(kind: type[Enum]) -> Schema:
    members = {member.value: member for member in kind}
    value_type = type(next(iter(members)))
    assert all(type(value) is value_type for value in members), f"{kind} mixes types"

    def read(value: Any) -> Enum:
        member = members.get(value) if type(value) is value_type else None
        if member is None:
            raise CodecError(f"no {kind.__name__}: {value!r:.40}")
        return member

    return Schema(read, operator.attrgetter("value"))


def _optional(inner: Schema) -> Schema:
    return Schema(
        lambda value: None if value is None else inner.read(value),
        lambda value: None if value is None else inner.write(value),
    )


def _read_items(value: Any, item: Schema) -> list[Any]:
    if type(value) is not list:
        raise _wrong("an array", value)
    read, items = item.read, []
    for each in value:
        try:
            items.append(read(each))
        except CodecError as error:
            raise error.under(str(len(items))) from None
    return items


def _sequence(item: Schema) -> Schema:
    return Schema(
        lambda value: tuple(_read_items(value, item)),
        lambda value: [item.write(each) for each in value],
    )


def _set(item: Schema) -> Schema:
    return Schema(
        lambda value: frozenset(_read_items(value, item)),
        lambda value: [item.write(each) for each in sorted(value)],
    )


def _fixed(schemas: tuple[Schema, ...]) -> Schema:
    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list or len(value) != len(schemas):
            raise CodecError(f"expected an array of {len(schemas)}")
        return tuple(schema.read(each) for schema, each in zip(schemas, value, strict=True))

    return Schema(read, lambda value: [schema.write(each) for schema, each in zip(schemas, value, strict=True)])


def _mapping(key: Schema, item: Schema) -> Schema:
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

    return Schema(read, write, (key, item))
