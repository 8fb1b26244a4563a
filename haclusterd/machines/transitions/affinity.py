"""Which resources are bound to each other by constraints, directly or through others."""

from collections.abc import Iterable
from itertools import pairwise

from haclusterd.model.configuration import Colocation, Configuration, Ordering, contained
from haclusterd.model.ids import ResourceId, base_of


class Affinity:
    """The given resources and every resource that constraints bind to one of them, directly or through others.

    An instance of a unique clone (`ip:0`) is bound to the same resources as its primitive.
    """

    def __init__(self, configuration: Configuration, given: Iterable[ResourceId]) -> None:
        neighbours: dict[ResourceId, list[ResourceId]] = {}
        for left, right in _bonds(configuration):
            neighbours.setdefault(left, []).append(right)
            neighbours.setdefault(right, []).append(left)
        self._bound: set[ResourceId] = set()
        pending = sorted({base_of(resource) for resource in given})
        while pending:
            resource = pending.pop()
            if resource not in self._bound:
                self._bound.add(resource)
                pending.extend(neighbours.get(resource, ()))

    def touches(self, resource: ResourceId) -> bool:
        """Return whether `resource` is bound to one of the given ones."""
        return base_of(resource) in self._bound


def _bonds(configuration: Configuration) -> Iterable[tuple[ResourceId, ResourceId]]:
    for resource in configuration.resources.values():
        for inner in contained(resource):
            yield resource.id, inner
    for constraint in configuration.constraints.values():
        if isinstance(constraint, Ordering):
            yield constraint.first, constraint.then
        elif isinstance(constraint, Colocation):
            yield constraint.dependent, constraint.primary
        else:
            continue
        members = [member for each in constraint.sets for member in each.members]
        yield from pairwise(members)
