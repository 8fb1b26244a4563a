"""In which order a node stops its own resources when it must act alone (safety.md §4).

Only the configuration is asked, not the scheduler: a node that lost its lease has little time and must not depend on
anything that can fail. What is not ordered is stopped in parallel.
"""

from collections.abc import Iterable, Mapping

from haclusterd.model.configuration import Configuration, Group, Ordering
from haclusterd.model.ids import ResourceId


def stops_before(
    configuration: Configuration, active: Iterable[ResourceId]
) -> Mapping[ResourceId, frozenset[ResourceId]]:
    """Return, for each active resource, the active resources that must have stopped first.

    The later members of a group stop before the earlier ones; of a symmetrical ordering, `then` stops before `first`
    (Pacemaker Explained, "Resource Sets": symmetrical). A cycle is broken by leaving out what closes it.
    """
    present = sorted(active)
    before: dict[ResourceId, set[ResourceId]] = {resource: set() for resource in present}
    for later, earlier in _pairs(configuration):
        for then in _primitives(configuration, later):
            for first in _primitives(configuration, earlier):
                if then in before and first in before and then != first and not _reaches(before, then, first):
                    before[first].add(then)
    return {resource: frozenset(others) for resource, others in before.items()}


def _pairs(configuration: Configuration) -> Iterable[tuple[ResourceId, ResourceId]]:
    """Yield (later started, earlier started) pairs."""
    for group in configuration.groups():
        yield from zip(group.members[1:], group.members, strict=False)
    for constraint in configuration.constraints.values():
        if isinstance(constraint, Ordering) and constraint.is_symmetrical and constraint.first_action == "start":
            yield constraint.then, constraint.first


def _primitives(configuration: Configuration, resource: ResourceId) -> tuple[ResourceId, ...]:
    found = configuration.resources.get(resource)
    return found.members if isinstance(found, Group) else (resource,)


def _reaches(before: Mapping[ResourceId, set[ResourceId]], start: ResourceId, goal: ResourceId) -> bool:
    """Tell whether `goal` must stop before `start` already."""
    seen: set[ResourceId] = set()
    pending = [start]
    while pending:
        resource = pending.pop()
        if resource == goal:
            return True
        if resource not in seen:
            seen.add(resource)
            pending.extend(sorted(before.get(resource, ())))
    return False
