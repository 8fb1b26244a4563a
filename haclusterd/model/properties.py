"""Readers of cluster properties and meta-attributes, made from the tables of `model.property_tables`."""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache

from haclusterd.model import durations
from haclusterd.model.configuration import AttributeSet, Configuration, Resource, effective, has_no_rule
from haclusterd.model.property_tables import CLUSTER_PROPERTIES, META_ATTRIBUTES
from haclusterd.model.rows import (
    Row,
    ValueType,
    canonical,
    live_objection,
    objection,
    read_boolean,
    read_boolean_or,
    read_integer,
    read_percentage,
)

__all__ = [
    "BOOTSTRAP_OPTIONS",
    "CLUSTER_PROPERTIES",
    "META_ATTRIBUTES",
    "ClusterProperties",
    "Row",
    "ValueType",
    "collective_flag",
    "collective_meta",
    "is_of_others",
    "is_own_meta",
    "live_objection",
    "meta_default",
    "meta_row",
    "meta_values",
    "misspelled",
    "objection",
    "property_row",
    "read_boolean",
    "read_boolean_or",
]

BOOTSTRAP_OPTIONS = "cib-bootstrap-options"
"""The block of properties that wins over every other."""


def _by_name(rows: tuple[Row, ...]) -> dict[str, Row]:
    return {name: row for row in rows for name in (row.name, *row.aliases)}


_PROPERTIES = _by_name(CLUSTER_PROPERTIES)
_META = _by_name(META_ATTRIBUTES)


def property_row(name: str) -> Row | None:
    """Return the row of a cluster property, by name or alias."""
    return _PROPERTIES.get(name)


def meta_row(name: str) -> Row | None:
    """Return the row of a resource meta-attribute, by name or alias."""
    return _META.get(name)


def set_over(before: Iterable[tuple[str, str]], new: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of a block of properties or defaults after others were set in it.

    What is set replaces the other spelling of the same property too: `stonith-timeout` where `fencing-timeout` stood.
    """
    added = dict(new)
    replaced = {_newest_name(name): name for name in added}
    kept = {name: value for name, value in before if replaced.get(_newest_name(name), name) == name or name in added}
    return tuple({**kept, **added}.items())


def _newest_name(name: str) -> str:
    row = property_row(name) or meta_row(name)
    return name if row is None else row.name


_PLAIN_NAME = re.compile(r"[a-z0-9-]+\Z")
_ALMOST = 0.8
"""How like a known name an unknown one is that was probably meant to be it."""


def misspelled(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant by an unknown one; None: it is a name of its own."""
    names = sorted(known)
    dashed = name.replace("_", "-").lower()
    if dashed in names:
        return dashed
    found = get_close_matches(name, names, n=1, cutoff=_ALMOST)
    return found[0] if found else None


def is_of_others(block: str, name: str) -> bool:
    """Return whether a name among the properties is an agent's own: the cluster keeps it and does not read it.

    Agents write such names with capitals or underscores (redis_REPL_INFO), or into blocks of their own (SAPHanaSR).
    """
    if name in _PROPERTIES or misspelled(name, _PROPERTIES) is not None:
        return False
    return block != BOOTSTRAP_OPTIONS or _PLAIN_NAME.match(name) is None


@lru_cache(maxsize=256)
def is_own_meta(name: str) -> bool:
    """Return whether a meta-attribute is the administrator's own: agents get it as `CRM_meta_NAME`."""
    return name not in _META and misspelled(name, _META) is None


_Resolved = tuple[Mapping[str, str], Mapping[str, str]]
"""What is written, and what of it is valid, by its name in the table."""


def _resolved(blocks: tuple[AttributeSet, ...], counts: Callable[[AttributeSet], bool]) -> _Resolved:
    bootstrap = tuple(block for block in blocks if block.id == BOOTSTRAP_OPTIONS)
    others = tuple(block for block in blocks if block.id != BOOTSTRAP_OPTIONS)
    written = {**effective(others, counts), **effective(bootstrap, counts)}
    values: dict[str, str] = {}
    for name, value in written.items():
        row = _PROPERTIES.get(name)
        if row is not None and objection(row, value) is None:
            values.setdefault(row.name, canonical(row, value))
    return written, values


class _Newest:
    """The properties of the configuration that was asked about last: a daemon asks about one, many times a second."""

    def __init__(self) -> None:
        self._known: tuple[tuple[AttributeSet, ...], _Resolved] = ((), ({}, {}))

    def of(self, blocks: tuple[AttributeSet, ...]) -> _Resolved:
        """Return what `_resolved` does for blocks without a rule."""
        known, resolved = self._known
        if blocks is not known:
            resolved = _resolved(blocks, has_no_rule)
            # One assignment, since threads share it.
            self._known = (blocks, resolved)
        return resolved


_NEWEST = _Newest()


class ClusterProperties:
    """The properties of one configuration, with defaults filled in; an invalid value counts as unset.

    Blocks with a rule count when `counts` says so.
    """

    def __init__(
        self, configuration: Configuration, counts: Callable[[AttributeSet], bool] = has_no_rule
    ) -> None:
        self.written: Mapping[str, str]
        """Names and values as they were written, also what is unknown or invalid."""
        if counts is has_no_rule:
            self.written, self._values = _NEWEST.of(configuration.properties)
        else:
            self.written, self._values = _resolved(configuration.properties, counts)

    def text(self, name: str) -> str:
        """Return a property's value as text."""
        return self._values.get(name, _PROPERTIES[name].default)

    def default(self, name: str) -> str:
        """Return the value that counts where none is written."""
        return _PROPERTIES[name].default

    def boolean(self, name: str) -> bool:
        """Return a boolean property."""
        return read_boolean(self.text(name))

    def duration_ms(self, name: str) -> int:
        """Return a duration property in ms."""
        return durations.parse(self.text(name))

    def percentage(self, name: str) -> int:
        """Return a percentage property."""
        return read_percentage(self.text(name))

    def integer(self, name: str) -> int:
        """Return an integer property."""
        return read_integer(self.text(name))


def fences_unseen(configuration: Configuration) -> bool:
    """Return whether a member that was never seen is fenced before what may run there starts (safety.md §6).

    With `startup-fencing=false` a person answers for what such a member runs (Pacemaker Explained, "Cluster Options").
    """
    properties = ClusterProperties(configuration)
    return properties.boolean("fencing-enabled") and properties.boolean("startup-fencing")


def meta_values(configuration: Configuration, *, own: Mapping[str, str], parent: Mapping[str, str]) -> dict[str, str]:
    """Resolve a resource's meta-attributes: its own, then its parent's, then the resource defaults.

    `own` and `parent` are merged blocks (`effective`). Unknown names are kept as they are.
    """
    return {**effective(configuration.resource_defaults), **parent, **own}


def collective_meta(configuration: Configuration, top: Resource) -> dict[str, str]:
    """Resolve the meta-attributes of a clone or a group: its own, then the resource defaults, as plans do."""
    return meta_values(configuration, own=effective(top.meta), parent={})


def collective_flag(configuration: Configuration, top: Resource, name: str) -> bool:
    """Read a boolean meta-attribute of a clone or a group; what is invalid counts as unset."""
    try:
        return read_boolean(collective_meta(configuration, top)[name])
    except (KeyError, ValueError):
        return read_boolean(meta_default(name))


def meta_default(name: str) -> str:
    """Return a meta-attribute's default."""
    return _META[name].default
