"""Fail counts in CIB XML: transient node attributes that hold what is counted of each resource's operations.

Source: Pacemaker Explained, "Handling Resource Failure". Releases before 1.1.17 counted all operations together.
"""

import re
from collections.abc import Mapping

from haclusterd.model import scores
from haclusterd.model.history import FailCount, operation_key
from haclusterd.model.ids import ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass, field, replace

_BY_OPERATION = re.compile(r"(fail-count|last-failure)-(.+)#(.+)_(\d{1,15})\Z")
_TOGETHER = re.compile(r"(fail-count|last-failure)-(.+)\Z")
ALL_OPERATIONS = ""
"""As the operation of a fail count: all of them together."""


@dataclass(slots=True)
class FailCounts:
    """Fail counts of one node while they are read."""

    counts: dict[ResourceId, dict[str, FailCount]] = field(default_factory=dict)

    def take(self, name: str, value: str) -> bool:
        """Take an attribute; False when it is none of a fail count."""
        found = _BY_OPERATION.match(name)
        if found is not None:
            kind, resource, operation, interval = found.groups()
        else:
            older = _TOGETHER.match(name)
            if older is None:
                return False
            (kind, resource), operation, interval = older.groups(), ALL_OPERATIONS, "0"
        known = self.counts.setdefault(ResourceId(resource), {})
        interval_ms = int(interval[:15])
        key = operation_key(operation, interval_ms)
        before = known.get(key, FailCount(operation, interval_ms, 0, WallTime(0)))
        if kind == "fail-count":
            known[key] = replace(before, count=_score(value))
        elif value.isdecimal():
            known[key] = replace(before, failed_at=WallTime(int(value[:15]) * 1000))
        return True

    def of(self, resource: ResourceId) -> Mapping[str, FailCount]:
        """Return the fail counts of a resource; a time without a count says nothing."""
        return {key: each for key, each in self.counts.get(resource, {}).items() if each.count}


def _score(text: str) -> int:
    try:
        return scores.parse(text)
    except ValueError:
        return 0
