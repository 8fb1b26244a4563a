"""The one table of cluster properties and meta-attributes: name, type, default, aliases, meaning.

Documentation, verification, completion and the readers below are made from these rows. Names are Pacemaker's newest;
older spellings are aliases (Pacemaker Explained, "Cluster-Wide Configuration" and "Resource Meta-Attributes").
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from haclusterd.model import durations, scores
from haclusterd.model.configuration import Configuration, effective

BOOTSTRAP_OPTIONS = "cib-bootstrap-options"
"""The block of properties that wins over every other."""

_TRUE = frozenset({"true", "on", "yes", "y", "1"})
_FALSE = frozenset({"false", "off", "no", "n", "0"})


class ValueType(StrEnum):
    """What a value must look like."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    DURATION = "duration"
    SCORE = "score"
    CHOICE = "choice"
    STRING = "string"


@dataclass(frozen=True, slots=True)
class Row:
    """One property or meta-attribute."""

    name: str
    type: ValueType
    default: str
    doc: str
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    """Of an integer, or of a duration in ms."""
    maximum: int | None = None


CLUSTER_PROPERTIES: tuple[Row, ...] = (
    Row("node-timeout", ValueType.DURATION, "2s", "How long a host may be silent before it is lost.",
        minimum=500, maximum=60_000),
    Row("brain-timeout", ValueType.DURATION, "10s",
        "How long the daemon of a host that is heard may be away before the node is lost.",
        minimum=2000, maximum=600_000),
    Row("no-quorum-policy", ValueType.CHOICE, "stop", "What a node without quorum does with its resources.",
        choices=("stop",)),
    Row("symmetric-cluster", ValueType.BOOLEAN, "true", "Resources may run anywhere unless a constraint forbids."),
    Row("maintenance-mode", ValueType.BOOLEAN, "false", "Leave all resources alone."),
    Row("start-failure-is-fatal", ValueType.BOOLEAN, "true", "One failed start bans the resource from the node."),
    Row("stop-all-resources", ValueType.BOOLEAN, "false", "Stop everything."),
    Row("stop-removed-resources", ValueType.BOOLEAN, "true", "Stop resources that are no longer configured.",
        aliases=("stop-orphan-resources",)),
    Row("cancel-removed-actions", ValueType.BOOLEAN, "true", "Cancel monitors that are no longer configured.",
        aliases=("stop-orphan-actions",)),
    Row("fencing-enabled", ValueType.BOOLEAN, "true", "Whether failed and lost nodes are fenced.",
        aliases=("stonith-enabled",)),
    Row("fencing-action", ValueType.CHOICE, "reboot", "What is asked of a fence device.",
        aliases=("stonith-action",), choices=("reboot", "off")),
    Row("fencing-timeout", ValueType.DURATION, "60s", "How long one call of a fence agent may take.",
        aliases=("stonith-timeout",), minimum=1000),
    Row("fencing-max-attempts", ValueType.INTEGER, "10",
        "How often fencing of a lost node is tried; then it waits until this is raised, or the node is back.",
        aliases=("stonith-max-attempts",), minimum=1),
    Row("startup-fencing", ValueType.BOOLEAN, "true", "Fence members that are not seen after the cluster forms."),
    Row("cluster-recheck-interval", ValueType.DURATION, "15min", "How often the plan is checked without a cause."),
    Row("batch-limit", ValueType.INTEGER, "0", "Most actions in flight in the whole cluster; 0: no limit.", minimum=0),
    Row("placement-strategy", ValueType.CHOICE, "default",
        "Whether capacities of nodes count, and whether load is spread (balanced) or packed (minimal).",
        choices=("default", "utilization", "minimal", "balanced")),
    Row("node-health-strategy", ValueType.CHOICE, "none", "How nodes' health attributes (#health...) count.",
        choices=("none", "migrate-on-red", "only-green", "progressive", "custom")),
    Row("node-health-base", ValueType.SCORE, "0", "What every node is worth before its health (progressive)."),
    Row("node-health-green", ValueType.SCORE, "0", "What green is worth (progressive, custom)."),
    Row("node-health-yellow", ValueType.SCORE, "0", "What yellow is worth (progressive, custom)."),
    Row("node-health-red", ValueType.SCORE, "-INFINITY", "What red is worth (progressive, custom)."),
    Row("cluster-name", ValueType.STRING, "", "A name for people; nothing follows from it."),
)  # fmt: skip

META_ATTRIBUTES: tuple[Row, ...] = (
    Row("target-role", ValueType.CHOICE, "Started", "The role that the resource should have.",
        choices=("Started", "Stopped")),
    Row("is-managed", ValueType.BOOLEAN, "true", "Whether the cluster starts and stops it."),
    Row("maintenance", ValueType.BOOLEAN, "false", "Leave it wholly alone, monitors too."),
    Row("priority", ValueType.SCORE, "0", "Which resources keep running when not all can."),
    Row("critical", ValueType.BOOLEAN, "true", "Whether it moves its colocated resources along when it fails."),
    Row("resource-stickiness", ValueType.SCORE, "0", "How much it prefers to stay where it is."),
    Row("migration-threshold", ValueType.SCORE, "INFINITY", "Failures on a node before it is banned from it."),
    Row("failure-timeout", ValueType.DURATION, "0", "After how long a failure is forgotten; 0: never."),
    Row("multiple-active", ValueType.CHOICE, "stop_start", "What to do when it is found active on several nodes.",
        choices=("stop_start", "stop_only", "block", "stop_unexpected")),
    Row("requires", ValueType.CHOICE, "fencing", "What must be before it may start.",
        choices=("nothing", "quorum", "fencing")),
    Row("allow-migrate", ValueType.BOOLEAN, "false", "Whether it can be migrated live.", choices=("false",)),
)  # fmt: skip


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


def read_boolean(text: str) -> bool:
    """Read a boolean as users write it; raise ValueError otherwise."""
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(f"not a boolean: {text!r} (write true or false)")


def objection(row: Row, text: str) -> str | None:
    """Say what is wrong with a value of this row; None when it is valid."""
    try:
        number = _read_number(row, text)
    except ValueError as error:
        return str(error)
    if number is not None and row.minimum is not None and number < row.minimum:
        return f"{text!r} is below the minimum {_render(row, row.minimum)}"
    if number is not None and row.maximum is not None and number > row.maximum:
        return f"{text!r} is above the maximum {_render(row, row.maximum)}"
    return None


def _read_number(row: Row, text: str) -> int | None:
    if row.choices and text not in row.choices:
        raise ValueError(f"{text!r} is not one of: {', '.join(row.choices)}")
    if row.type is ValueType.BOOLEAN:
        read_boolean(text)
    elif row.type is ValueType.DURATION:
        return durations.parse(text)
    elif row.type is ValueType.SCORE:
        return scores.parse(text)
    elif row.type is ValueType.INTEGER:
        return int(text)
    return None


def _render(row: Row, value: int) -> str:
    return durations.render(value) if row.type is ValueType.DURATION else str(value)


class ClusterProperties:
    """The properties of one configuration, with defaults filled in; an invalid value counts as unset."""

    def __init__(self, configuration: Configuration) -> None:
        bootstrap = tuple(block for block in configuration.properties if block.id == BOOTSTRAP_OPTIONS)
        others = tuple(block for block in configuration.properties if block.id != BOOTSTRAP_OPTIONS)
        raw = {**effective(others), **effective(bootstrap)}
        self._values: dict[str, str] = {}
        for name, value in raw.items():
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


def meta_values(configuration: Configuration, *, own: Mapping[str, str], parent: Mapping[str, str]) -> dict[str, str]:
    """Resolve a resource's meta-attributes: its own, then its parent's, then the resource defaults.

    `own` and `parent` are merged blocks (`effective`). Unknown names are kept as they are.
    """
    return {**effective(configuration.resource_defaults), **parent, **own}


def meta_default(name: str) -> str:
    """Return a meta-attribute's default."""
    return _META[name].default
