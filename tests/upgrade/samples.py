"""One value of every replicated type with every field filled: the samples of the feature level that is being built.

REWRITE_SAMPLES=1 pytest tests/upgrade writes the files of the newest level again; those of a released level are never
touched (frozen_samples.py).
"""

import types
from collections.abc import Mapping
from enum import Enum
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

from haclusterd.cib.commands import Command, Envelope
from haclusterd.model.cluster import Cib
from haclusterd.model.records import MISSING, fields, is_dataclass

DEPTH = 2
"""How often a type that contains itself is filled with itself."""


def sample_cib() -> Cib:
    """Return a CIB that holds every type that a CIB can hold."""
    made = _value(Cib, "cib", ())
    assert isinstance(made, Cib)
    return made


def sample_envelopes() -> list[Envelope]:
    """Return an envelope with each command."""
    return [
        Envelope(
            _value(get_type_hints(Envelope)["request"], "request", ()),
            _value(get_type_hints(Envelope)["proposer"], "proposer", ()),
            _value(get_type_hints(Envelope)["at"], "at", ()),
            _value(kind, kind.__name__, ()),
        )
        for kind in get_args(Command)
    ]


def _value(hint: Any, name: str, above: tuple[type, ...]) -> Any:
    """Return a value of a type; of a union its first member that is not None."""
    return _values(hint, name, above)[0]


def _values(hint: Any, name: str, above: tuple[type, ...]) -> list[Any]:
    """Return values of a type: of a union one of each member."""
    while isinstance(hint, NewType):
        hint = hint.__supertype__
    if isinstance(hint, type) and issubclass(hint, Enum):
        return list(hint)[-1:]
    if hint in _PLAIN:
        return [_PLAIN[hint](name)]
    if isinstance(hint, type) and is_dataclass(hint):
        return [_record(hint, above)] if above.count(hint) < DEPTH else []
    return _composed(get_origin(hint), get_args(hint), name, above)


_PLAIN: Mapping[Any, Any] = {
    bool: lambda _name: True,
    int: lambda name: 1000 + len(name),
    str: lambda name: f"{name} é",
}


def _composed(origin: Any, arguments: tuple[Any, ...], name: str, above: tuple[type, ...]) -> list[Any]:
    if origin in (Union, types.UnionType):
        kinds = [each for each in arguments if each is not types.NoneType]
        return [value for kind in kinds for value in _values(kind, name, above)]
    if origin is tuple and arguments[-1] is Ellipsis:
        return [tuple(_values(arguments[0], name, above))]
    if origin is tuple:
        return [tuple(_value(each, name, above) for each in arguments)]
    if origin is frozenset:
        return [frozenset(_values(arguments[0], name, above))]
    assert issubclass(origin, Mapping), origin
    key = _value(arguments[0], name, above)
    items = _values(arguments[1], name, above)
    return [{f"{key} {number}": item for number, item in enumerate(items)}]


def _record(kind: type, above: tuple[type, ...]) -> Any:
    hints = get_type_hints(kind)
    arguments = {}
    for entry in fields(kind):
        value = _value(hints[entry.name], entry.name, (*above, kind))
        default = entry.default_factory() if entry.default_factory is not MISSING else entry.default
        arguments[entry.name] = not default if isinstance(default, bool) else value
    return kind(**arguments)
