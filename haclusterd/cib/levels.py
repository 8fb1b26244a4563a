"""Feature levels: what nodes of two versions can exchange while a cluster is upgraded node by node.

Each node publishes in its Join which level it can read; the cluster's level is the lowest that any member published,
and rises by itself when the last one is upgraded. A command is written at the lowest level that can express it. Above
the cluster's level it is not proposed, and if it is in the log nevertheless it has no effect on any node: an older one
cannot read it, and a newer one must come to the same CIB. A level never falls: a node that reads less is refused at its
Join.

Everything that first appears in a level above `FIRST_FEATURE_LEVEL` is listed in `SINCE`, as a type or (type, field); a
test compares it with the samples of the released levels. A rule of `apply` is listed there too, as (SafetyRules,
field): an older member would accept what it refuses, and replicas that decide differently about an entry are detected
as different (docs/design/0002-store.md, "Replicas that differ"). So it applies from the entry after the rise on.
"""

from collections.abc import Iterable, Mapping
from enum import Enum

from haclusterd.cib.commands import Command
from haclusterd.model.cluster import FIRST_FEATURE_LEVEL, Cib
from haclusterd.model.ids import NodeName
from haclusterd.model.records import MISSING, fields, is_dataclass, replace
from haclusterd.model.rules_in_force import SafetyRules

SINCE: dict[type | tuple[type, str], int] = {}
"""By type, or (type, field): the level in which it first appeared, if above the first."""


def level_of(command: Command) -> int:
    """Return the lowest level that can express a command."""
    return max(_levels(command), default=FIRST_FEATURE_LEVEL) if SINCE else FIRST_FEATURE_LEVEL


def rules_at(rules: SafetyRules, level: int) -> SafetyRules:
    """Return the rules without those that appeared in a later level."""
    later = {each[1]: False for each, since in SINCE.items()
             if isinstance(each, tuple) and each[0] is SafetyRules and since > level}  # fmt: skip
    return replace(rules, **later) if later else rules


def behind(cib: Cib, level: int) -> tuple[NodeName, ...]:
    """Return the members that are not known to read a level."""
    nodes = cib.status.nodes
    return tuple(
        sorted(name for name in cib.members if name not in nodes or nodes[name].feature_level < level)
    )


def level_of_all(cib: Cib) -> int:
    """Return the highest level that all members are known to read, but never less than the cluster's."""
    levels = [cib.status.nodes[name].feature_level if name in cib.status.nodes else 0 for name in cib.members]
    return max(cib.feature_level, min(levels, default=0))


def _levels(value: object) -> Iterable[int]:
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        yield SINCE.get(kind, FIRST_FEATURE_LEVEL)
        for entry in fields(kind):
            item = getattr(value, entry.name)
            default = entry.default if entry.default is not MISSING else None
            if item != default:
                yield SINCE.get((kind, entry.name), FIRST_FEATURE_LEVEL)
                yield from _levels(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _levels(item)
    elif isinstance(value, tuple | frozenset) and not isinstance(value, Enum):
        for item in value:
            yield from _levels(item)
