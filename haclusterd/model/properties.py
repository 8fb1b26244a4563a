"""Readers of cluster properties and meta-attributes, made from the tables of `model.property_tables`."""

from collections.abc import Callable, Mapping

from haclusterd.model import durations
from haclusterd.model.configuration import AttributeSet, Configuration, effective, has_no_rule
from haclusterd.model.property_tables import CLUSTER_PROPERTIES, META_ATTRIBUTES
from haclusterd.model.rows import Row, ValueType, live_objection, objection, read_boolean

__all__ = [
    "BOOTSTRAP_OPTIONS",
    "CLUSTER_PROPERTIES",
    "META_ATTRIBUTES",
    "ClusterProperties",
    "Row",
    "ValueType",
    "live_objection",
    "meta_default",
    "meta_row",
    "meta_values",
    "objection",
    "property_row",
    "read_boolean",
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


class ClusterProperties:
    """The properties of one configuration, with defaults filled in; an invalid value counts as unset.

    Blocks with a rule count when `counts` says so.
    """

    def __init__(
        self, configuration: Configuration, counts: Callable[[AttributeSet], bool] = has_no_rule
    ) -> None:
        bootstrap = tuple(block for block in configuration.properties if block.id == BOOTSTRAP_OPTIONS)
        others = tuple(block for block in configuration.properties if block.id != BOOTSTRAP_OPTIONS)
        self.written = {**effective(others, counts), **effective(bootstrap, counts)}
        """Names and values as they were written, also what is unknown or invalid."""
        self._values: dict[str, str] = {}
        for name, value in self.written.items():
            row = _PROPERTIES.get(name)
            if row is not None and objection(row, value) is None:
                self._values.setdefault(row.name, value)

    def text(self, name: str) -> str:
        """Return a property's value as text."""
        return self._values.get(name, _PROPERTIES[name].default)

    def boolean(self, name: str) -> bool:
        """Return a boolean property."""
        return read_boolean(self.text(name))

    def duration_ms(self, name: str) -> int:
        """Return a duration property in ms."""
        return durations.parse(self.text(name))

    def integer(self, name: str) -> int:
        """Return an integer property."""
        return int(self.text(name))


def fences_unseen(configuration: Configuration) -> bool:
    """Tell whether a member that was never seen is fenced before what may run there starts (safety.md §6).

    With `startup-fencing=false` a person answers for what such a member runs (Pacemaker Explained, "Cluster Options").
    """
    properties = ClusterProperties(configuration)
    return properties.boolean("fencing-enabled") and properties.boolean("startup-fencing")


def meta_values(configuration: Configuration, *, own: Mapping[str, str], parent: Mapping[str, str]) -> dict[str, str]:
    """Resolve a resource's meta-attributes: its own, then its parent's, then the resource defaults.

    `own` and `parent` are merged blocks (`effective`). Unknown names are kept as they are.
    """
    return {**effective(configuration.resource_defaults), **parent, **own}


def meta_default(name: str) -> str:
    """Return a meta-attribute's default."""
    return _META[name].default
