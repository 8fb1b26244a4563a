"""Restarts of resources that a person has asked for: while one is under way, the resource is kept stopped everywhere.

A restart is in the CIB, so that any DC finishes it: nothing is written into the configuration, and nothing
stays behind. It ends in the `apply` after which nothing of the resource may run anywhere, or when its time is over.
"""

from collections.abc import Collection

from haclusterd.model.configuration import AttributeSet, Configuration, parts_of
from haclusterd.model.ids import ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass, replace

_TARGET_ROLE = "target-role"
_REMEMBERED = 16
"""Configurations whose answers are kept; in_force is asked for often."""


@dataclass(frozen=True, slots=True)
class Restart:
    """One that is under way."""

    at: WallTime
    limit_ms: int
    """After so long it ends, whatever still runs then."""
    author: str = ""
    reason: str = ""


def with_stopped(configuration: Configuration, restarted: Collection[ResourceId]) -> Configuration:
    """Return a configuration in which these resources, and all in them, are to be stopped.

    The same object comes back for the same arguments, and for one in which they are.
    """
    key = (id(configuration), tuple(sorted(restarted)))
    found = _known.get(key)
    if found is None:
        if len(_known) >= _REMEMBERED:
            _known.clear()
        found = _known[key] = (configuration, _stopped(configuration, key[1]))
    return found[1]


_known: dict[tuple[int, tuple[ResourceId, ...]], tuple[Configuration, Configuration]] = {}


def _stopped(configuration: Configuration, restarted: tuple[ResourceId, ...]) -> Configuration:
    changed = dict(configuration.resources)
    for part in {part: None for resource in restarted for part in parts_of(configuration, resource)}:
        known = changed[part]
        others = (
            replace(block, pairs=tuple(pair for pair in block.pairs if pair[0] != _TARGET_ROLE)) for block in known.meta
        )
        own = AttributeSet(f"{part}-restart", ((_TARGET_ROLE, "Stopped"),))
        meta = (own, *(block for block in others if block.id != own.id))
        if meta != known.meta:
            changed[part] = replace(known, meta=meta)
    if all(changed[name] is known for name, known in configuration.resources.items()):
        return configuration
    return replace(configuration, resources=changed)
