"""Dataclasses, made by msgspec.

`dataclass`, `field`, `fields`, `replace` and `is_dataclass` mean what the standard library's mean, and type checkers
take them for those. At run time `dataclass` makes a `msgspec.Struct` with the same fields, defaults, equality, order,
hash and repr. The standard library compiles six functions of Python for each class, which was half of what the start of
a daemon costs, and its frozen objects take ten times as long to make.

The standard library's own `fields` and `replace` do not know these classes; nothing but the agents' library, which has
no dependencies, uses them. A field has neither `metadata` nor `kw_only`: such an argument is a TypeError at import.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import MISSING as MISSING
    from dataclasses import Field as Field
    from dataclasses import asdict as asdict
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import fields as fields
    from dataclasses import is_dataclass as is_dataclass
    from dataclasses import replace as replace
else:
    import sys
    from functools import cache
    from typing import NamedTuple

    # Where typing_extensions is installed, msgspec imports it for what `typing` has had since Python 3.11; that takes
    # longer than the rest of msgspec. The entry None makes an import fail.
    _is_hidden = sys.modules.setdefault("typing_extensions") is None
    try:
        from msgspec import NODEFAULT as MISSING
        from msgspec import Struct, StructMeta
        from msgspec import field as struct_field
        from msgspec.structs import replace as replace
    finally:
        if _is_hidden:
            del sys.modules["typing_extensions"]

    _OF_EVERY_CLASS = frozenset({"__dict__", "__weakref__"})
    _OF_FIELDS = frozenset({"__annotations__", "__slots__"})

    class _Example(Struct):
        field: object = struct_field(default_factory=object)

    _FACTORY = type(_Example.__struct_defaults__[0])

    class Field(NamedTuple):
        """What `fields` says of one field."""

        name: str
        default: object
        """MISSING: it has none, or a factory."""
        default_factory: object

    class _Unseen(NamedTuple):
        """A field that the repr of its class leaves out."""

        described: object

    class _Record(StructMeta):
        """The type of the classes that `dataclass` makes.

        A class statement calls it as soon as a base is a record. What it makes then has no fields of its own, like any
        class without the decorator; the decorator, which has the options, makes it again of the same namespace.
        """

        def __new__(cls, name, bases, namespace, options=None):
            if options is not None:
                return super().__new__(cls, name, bases, namespace, **options)
            own = {key: value for key, value in namespace.items() if key not in _OF_FIELDS}
            own["_namespace"] = namespace
            return super().__new__(cls, name, bases, own, dict="__slots__" not in namespace)

        def __init__(self, name, bases, namespace, _options=None):
            super().__init__(name, bases, namespace)

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, order=False, kw_only=False):
        """Make a class of the annotated fields of this one, as `dataclasses.dataclass` does."""
        has_dict = not slots
        options = {"frozen": frozen, "eq": eq, "order": order, "kw_only": kw_only}
        options |= {"dict": has_dict, "weakref": has_dict}
        return (lambda each: _made(each, options)) if cls is None else _made(cls, options)

    def field(*, default=MISSING, default_factory=MISSING, init=True, repr=True):  # noqa: A002 (its name in dataclasses)
        """Describe a field, as `dataclasses.field` does; one without `init` is None until `__post_init__` sets it."""
        described = struct_field(default=default if init else None, default_factory=default_factory)
        return described if repr else _Unseen(described)

    def _made(cls, options):
        name, bases = cls.__name__, cls.__bases__
        namespace = {key: value for key, value in vars(cls).items() if key not in _OF_EVERY_CLASS}
        namespace = dict(namespace.get("_namespace", namespace))
        unseen = {key: value.described for key, value in namespace.items() if isinstance(value, _Unseen)}
        if unseen:
            namespace.update(unseen, __repr__=_repr_without(frozenset(unseen)))
        if not any(isinstance(base, _Record) for base in bases):
            bases = (*(base for base in bases if base is not object), Struct)
        return _Record(name, bases, namespace, options)

    def _repr_without(unseen):
        def shown(record):
            values = (f"{name}={getattr(record, name)!r}" for name in record.__struct_fields__ if name not in unseen)
            return f"{type(record).__name__}({', '.join(values)})"

        return shown

    def is_dataclass(value):
        """Say whether this is a record or a class of records."""
        return isinstance(value, Struct | _Record)

    def fields(value):
        """Return the fields of a record, or of a class of records, in their order."""
        return _fields(value if isinstance(value, type) else type(value))

    @cache
    def _fields(kind):
        names, defaults = kind.__struct_fields__, kind.__struct_defaults__
        required = [MISSING] * (len(names) - len(defaults))
        return tuple(_described(name, default) for name, default in zip(names, (*required, *defaults), strict=True))

    def _described(name, default):
        has_factory = isinstance(default, _FACTORY)
        return Field(name, MISSING if has_factory else default, default.factory if has_factory else MISSING)

    def asdict(value):
        """Return the fields of a record by name, its records, tuples and lists as plain values."""
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}

    def _plain(value):
        if isinstance(value, Struct):
            return asdict(value)
        return type(value)(map(_plain, value)) if isinstance(value, tuple | list) else value
