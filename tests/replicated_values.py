"""Hypothesis strategies for any replicated value, made from the type hints of the model."""

import types
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from haclusterd.model.records import MISSING, fields, is_dataclass

_PLAIN = {
    str: st.text(max_size=6),
    bool: st.booleans(),
    int: st.one_of(st.integers(-2, 300), st.integers(-(2**63), 2**63 - 1)),
}


@cache
def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for values of a type."""
    while isinstance(hint, NewType):
        hint = hint.__supertype__
    if hint in _PLAIN:
        return _PLAIN[hint]
    if hint is types.NoneType:
        return st.none()
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    if is_dataclass(hint):
        return st.deferred(lambda: _records(hint))
    return _collections(get_origin(hint), get_args(hint))


def _collections(origin: Any, arguments: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    if origin in (Union, types.UnionType):
        return st.one_of([values_of(argument) for argument in arguments])
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(values_of(arguments[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*[values_of(argument) for argument in arguments])
    if origin is frozenset:
        return st.frozensets(values_of(arguments[0]), max_size=3)
    assert issubclass(origin, Mapping), origin
    return st.dictionaries(values_of(arguments[0]), values_of(arguments[1]), max_size=2)


@cache
def _records(kind: type) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    return st.fixed_dictionaries(
        {entry.name: values_of(hints[entry.name]) for entry in fields(kind) if _is_required(entry)},
        optional={entry.name: values_of(hints[entry.name]) for entry in fields(kind) if not _is_required(entry)},
    ).map(lambda arguments: kind(**arguments))


def _is_required(entry: Any) -> bool:
    return entry.default is MISSING and entry.default_factory is MISSING
