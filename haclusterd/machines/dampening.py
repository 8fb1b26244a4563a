"""Dampening of node attributes: a value that changes often is written once it has not changed for a while.

An agent that measures something publishes at every monitor, and several agents see the same cable pulled within a
second. Each attribute may therefore wait: a changed value restarts the span, an unchanged one does not, and at the end
of the span the newest value is written, once (attrd_updater(8), `--delay`).

Invariants: a value waits at most LONGEST_SPANS spans, however often it changes; at most one write of an attribute is
in flight, so that an older value never overtakes a newer one; a value that cannot be written yet (no quorum) is kept.
A value that the CIB already has must never be written.
"""

from haclusterd.cib.commands import SetTransientAttribute
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import NEVER, Instant, after
from haclusterd.model.records import dataclass

LONGEST_SPANS = 5


@dataclass(slots=True)
class _Wanted:
    value: str | None
    due_at: Instant
    latest: Instant
    is_in_flight: bool = False
    is_private: bool = False


class Dampening:
    """Values of this node's agents that are not written yet."""

    def __init__(self) -> None:
        self._wanted: dict[tuple[NodeName, str], _Wanted] = {}

    def put(self, command: SetTransientAttribute, span_ms: int, now: Instant, cib: Cib) -> None:
        """Take a value; it is due after `span_ms` without another change."""
        key = command.node, command.name
        known = self._wanted.get(key)
        current = value_of(cib, *key) if known is None else known.value
        if command.value == current:
            return
        latest = after(now, span_ms * LONGEST_SPANS) if known is None or known.is_in_flight else known.latest
        is_in_flight = known is not None and known.is_in_flight
        due_at = min(after(now, span_ms), latest)
        self._wanted[key] = _Wanted(command.value, due_at, latest, is_in_flight, command.is_private)

    def drop(self, node: NodeName, name: str) -> None:
        """Forget an attribute's pending value: another caller writes the attribute at once."""
        self._wanted.pop((node, name), None)

    def due(self, now: Instant, cib: Cib) -> tuple[SetTransientAttribute, ...]:
        """Return the values to write now; each counts as in flight until `written`."""
        found = []
        for key, wanted in sorted(self._wanted.items()):
            if wanted.is_in_flight or wanted.due_at > now:
                continue
            if wanted.value == value_of(cib, *key):
                del self._wanted[key]
                continue
            wanted.is_in_flight = True
            found.append(SetTransientAttribute(*key, wanted.value, is_private=wanted.is_private))
        return tuple(found)

    def written(self, command: SetTransientAttribute) -> None:
        """Note that a write was applied or refused; a newer value waits for its own time."""
        wanted = self._wanted.get((command.node, command.name))
        if wanted is None:
            return
        wanted.is_in_flight = False
        if wanted.value == command.value:
            del self._wanted[command.node, command.name]

    def deadline(self) -> Instant:
        """Return when the next value is due."""
        return min((wanted.due_at for wanted in self._wanted.values() if not wanted.is_in_flight), default=NEVER)

    def values(self) -> dict[tuple[NodeName, str], str | None]:
        """Return the pending values; None: to be deleted."""
        return {key: wanted.value for key, wanted in self._wanted.items()}


def value_of(cib: Cib, node: NodeName, name: str) -> str | None:
    """Return the value of a transient attribute in the CIB, including private ones."""
    status = cib.status.nodes.get(node)
    return None if status is None else status.attributes.get(name, status.private_attributes.get(name))
