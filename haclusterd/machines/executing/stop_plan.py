"""The order in which a node stops its own resources when it acts alone (safety.md §4).

It follows from the configuration, without the scheduler: a node that lost its lease has little time and must not
depend on anything that can fail. Resources without an order are stopped in parallel.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise

from haclusterd.model.configuration import Configuration, Ordering, Primitive, ResourceSet, contained
from haclusterd.model.ids import ResourceId, base_of
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import DEFAULT_TIMEOUT_MS, ActionName
from haclusterd.model.templates import expanded
from haclusterd.scheduler.model.dates import EffectiveTime
from haclusterd.scheduler.model.defaults import OperationDefaults
from haclusterd.scheduler.model.readings import duration_ms
from haclusterd.scheduler.model.rules import RuleContext, by_strength, merge


def stops_before(
    configuration: Configuration, active: Iterable[ResourceId]
) -> Mapping[ResourceId, frozenset[ResourceId]]:
    """Return, for each active resource, the active resources that must have stopped first.

    The later members of a group stop before the earlier ones; of a symmetrical ordering, `then` stops before `first`
    (Pacemaker Explained, "Resource Sets": symmetrical), even if its rule's dates have passed: this node's clock decides
    nothing, and stopping in order is never wrong. A cycle is broken by leaving out the pair that closes it. An active
    instance of a unique clone (`ip:0`) stands for its primitive.
    """
    present = sorted(active)
    instances: dict[ResourceId, list[ResourceId]] = {}
    for name in present:
        instances.setdefault(base_of(name), []).append(name)
    before: dict[ResourceId, set[ResourceId]] = {resource: set() for resource in present}
    for later, earlier in _pairs(configuration):
        for then in _active_inside(configuration, later, instances):
            for first in _active_inside(configuration, earlier, instances):
                if then != first and not _reaches(before, then, first):
                    before[first].add(then)
    return {resource: frozenset(others) for resource, others in before.items()}


def held_by(
    before: Mapping[ResourceId, frozenset[ResourceId]], unmanaged: frozenset[ResourceId]
) -> frozenset[ResourceId]:
    """Return the resources that cannot stop because something unmanaged, which runs on, would have to stop first.

    `before` is what `stops_before` returned. Pacemaker does the same ("due to unrunnable db stop (blocked)"): a file
    system is not unmounted under an unmanaged database.
    """
    held = set(unmanaged)
    grown = True
    while grown:
        more = {resource for resource, others in before.items() if resource not in held and others & held}
        held |= more
        grown = bool(more)
    return frozenset(held - unmanaged)


def timeout_of(action: ActionName, configuration: Configuration, resource: ResourceId, now: WallTime) -> int:
    """Return the timeout in ms of a stop, a demotion or a probe, as a plan made now would set it.

    It comes from the operation, its meta-attributes, or the defaults. A probe that is not configured gets the timeout
    of the monitor with the shortest interval (Pacemaker Explained, "Operation Properties"). An instance of a unique
    clone is configured under the name before its colon.
    """
    found = configuration.resources.get(base_of(resource))
    if not isinstance(found, Primitive):
        return DEFAULT_TIMEOUT_MS
    named = [each for each in expanded(found, configuration).operations if each.name == action]
    operation = min(named, key=lambda each: each.interval_ms, default=None)
    if operation is not None and operation.timeout_ms is not None:
        return operation.timeout_ms
    time = EffectiveTime(now)
    own = merge(by_strength(operation.meta), RuleContext(time, operation=action)) if operation is not None else {}
    defaults = OperationDefaults(configuration.operation_defaults, time).of(found.agent, action, 0)
    stated = duration_ms(own.get("timeout", defaults.get("timeout")), 0)
    return stated if stated > 0 else DEFAULT_TIMEOUT_MS


def _pairs(configuration: Configuration) -> Iterable[tuple[ResourceId, ResourceId]]:
    """Yield pairs (started later, started earlier)."""
    for group in configuration.groups():
        yield from zip(group.members[1:], group.members, strict=False)
    for constraint in configuration.constraints.values():
        if not isinstance(constraint, Ordering) or not constraint.is_symmetrical:
            continue
        if constraint.sets:
            yield from _set_pairs(constraint.sets)
        elif constraint.first_action in ("start", "promote"):
            yield constraint.then, constraint.first


def _set_pairs(sets: tuple[ResourceSet, ...]) -> Iterable[tuple[ResourceId, ResourceId]]:
    for each in sets:
        if each.is_sequential is not False:
            yield from zip(each.members[1:], each.members, strict=False)
    for earlier, later in pairwise(sets):
        for then in later.members:
            for first in earlier.members:
                yield then, first


def _active_inside(
    configuration: Configuration, resource: ResourceId, instances: Mapping[ResourceId, list[ResourceId]]
) -> Iterable[ResourceId]:
    """Yield the active primitives that a resource is, or contains."""
    pending, seen = [resource], set()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        yield from instances.get(name, ())
        found = configuration.resources.get(name)
        if found is not None:
            pending.extend(contained(found))


def _reaches(before: Mapping[ResourceId, set[ResourceId]], start: ResourceId, goal: ResourceId) -> bool:
    """Return whether it already follows that `goal` must stop before `start`."""
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
