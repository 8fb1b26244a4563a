"""Which resources are bound to each other by constraints, directly or through others."""

from collections.abc import Iterable

from haclusterd.model.configuration import Colocation, Configuration, Ordering
from haclusterd.model.ids import ResourceId


class Affinity:
    """The resources that are bound to any of some given ones; those themselves included."""

    def __init__(self, configuration: Configuration, given: Iterable[ResourceId]) -> None:
        neighbours: dict[ResourceId, list[ResourceId]] = {}
        for left, right in _bonds(configuration):
            neighbours.setdefault(left, []).append(right)
            neighbours.setdefault(right, []).append(left)
        self._bound: set[ResourceId] = set()
        pending = sorted(given)
        while pending:
            resource = pending.pop()
            if resource not in self._bound:
                self._bound.add(resource)
                pending.extend(neighbours.get(resource, ()))

    def touches(self, resource: ResourceId) -> bool:
        """Tell whether `resource` is bound to one of the given ones."""
        return resource in self._bound


def _bonds(configuration: Configuration) -> Iterable[tuple[ResourceId, ResourceId]]:
    for group in configuration.groups():
        for member in group.members:
            yield group.id, member
    for constraint in configuration.constraints.values():
        if isinstance(constraint, Ordering):
            yield constraint.first, constraint.then
        elif isinstance(constraint, Colocation):
            yield constraint.dependent, constraint.primary
