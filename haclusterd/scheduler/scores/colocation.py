"""Phase: the colocations of this plan, those that users wrote and those that the scheduler implies.

Source: Pacemaker Explained, "Placing Resources Relative to other Resources", "Resource Sets". Implied are: each member
of a group with the one before, what a launcher launches with the launcher, a bundle's addresses with its containers.
Which of them count for a resource is in `colocation_lists`; what they do in `colocation_effects` and
`neighbour_scores`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product, takewhile

from haclusterd.model.configuration import Colocation, Configuration, ResourceSet
from haclusterd.model.ids import ResourceId
from haclusterd.model.ocf import Role
from haclusterd.model.records import dataclass
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.dates import EffectiveTime
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import UNAME, ColocationPair, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.references import expanded_sets, named_group
from haclusterd.scheduler.model.rules import is_in_force
from haclusterd.scheduler.scores.location import runs_on_node_of

NESTED = 10_000
"""How much the connection of a bundle's container wants to be where that is: it may have to be on another node."""
_ROLES = {
    "stopped": Role.STOPPED,
    "unpromoted": Role.UNPROMOTED,
    "slave": Role.UNPROMOTED,
    "promoted": Role.PROMOTED,
    "master": Role.PROMOTED,
}


def unpack_colocations(
    inventory: Inventory, configuration: Configuration, time: EffectiveTime, *, binds_to_itself: bool = False
) -> list[ColocationPair]:
    """Make all colocations that are in force; return them as they were made.

    They hang on the resources, most important first.

    What relates a resource to itself, or to what is in it, means nothing. Pacemaker lets it pull on itself, so that it
    leaves its node in every transition (`binds_to_itself`).
    """
    found: list[ColocationPair] = []
    for item in configuration.constraints.values():
        if isinstance(item, Colocation) and is_in_force(item.lifetime, time):
            found.extend(_Reader(item, inventory, configuration, binds_to_itself).read())
    for top in inventory.tops:
        found.extend(_implied(top))
    attach(found)
    ends = (each for item in found for each in (item.dependent, item.primary))
    groups = {id(each.parent): each.parent for each in ends if each.parent is not None}
    for group in groups.values():
        if group.variant is Variant.GROUP:
            members = [member.scores for member in group.children]
            group.scores.members_this_with = [item for each in members for item in _configured(each.this_with)]
            group.scores.members_with_this = [item for each in members for item in _configured(each.with_this)]
    return found


def attach(found: Iterable[ColocationPair]) -> None:
    """Hang colocations on their two resources: more important neighbours first, of equal ones the newest."""
    ends: dict[int, Resource] = {}
    for colocation in found:
        colocation.dependent.scores.this_with.insert(0, colocation)
        colocation.primary.scores.with_this.insert(0, colocation)
        ends[id(colocation.dependent)] = colocation.dependent
        ends[id(colocation.primary)] = colocation.primary
    for resource in ends.values():
        resource.scores.this_with.sort(key=lambda item: importance(item.primary))
        resource.scores.with_this.sort(key=lambda item: importance(item.dependent))


def importance(resource: Resource) -> tuple[int, int, bool, str]:
    """Sort more important resources first."""
    return (-resource.assignment.priority, -resource.variant, not resource.definition.is_promotable, resource.id)


def _configured(items: Iterable[ColocationPair]) -> Iterator[ColocationPair]:
    return (item for item in items if item.is_configured)


def _implied(top: Resource) -> Iterator[ColocationPair]:
    waiting = [top]
    while waiting:
        resource = waiting.pop()
        waiting.extend(reversed(resource.children))
        if resource.variant is Variant.GROUP:
            yield from _of_group(resource)
        elif resource.variant is Variant.BUNDLE:
            for replica in resource.replicas:
                if replica.ip is not None and replica.ip.is_managed:
                    yield _implied_one(f"bundle {resource.id}", replica.ip, replica.container, INFINITY)
        elif resource.launcher is not None and resource.is_managed:
            yield from _of_launched(resource, resource.launcher)


def _of_launched(resource: Resource, launcher: Resource) -> Iterator[ColocationPair]:
    if runs_on_node_of(resource, launcher) is None:
        score = NESTED if resource.definition.is_nesting_allowed else INFINITY
        yield _implied_one(f"launched by {launcher.id}", resource, launcher, score)


def _of_group(group: Resource) -> Iterator[ColocationPair]:
    if group.definition.is_collocated:
        for before, member in zip(group.children, group.children[1:], strict=False):
            has_influence = member.definition.is_critical
            yield _implied_one(f"group {group.id}", member, before, INFINITY, has_own_influence=has_influence)


def _implied_one(
    source: str, dependent: Resource, primary: Resource, score: int, *, has_own_influence: bool = True
) -> ColocationPair:
    return ColocationPair(source, score, dependent, primary, has_own_influence=has_own_influence, is_configured=False)


@dataclass(frozen=True, slots=True)
class _Side:
    """Resources on one side of a colocation, or one set."""

    id: str
    members: tuple[Resource | None, ...]
    """None: a member that there is not."""
    role: Role
    score: int
    is_sequential: bool
    is_listed: bool = False
    """Of old configurations: each with the next one instead of the one before."""

    @property
    def resources(self) -> tuple[Resource, ...]:
        """The members before the first that is missing."""
        return tuple(each for each in takewhile(lambda each: each is not None, self.members) if each is not None)


class _Reader:
    """Reads one colocation constraint."""

    def __init__(
        self, item: Colocation, inventory: Inventory, configuration: Configuration, binds_to_itself: bool
    ) -> None:
        self._item = item
        self._binds_to_itself = binds_to_itself
        self._inventory = inventory
        self._configuration = configuration

    def read(self) -> Iterator[ColocationPair]:
        """Yield what the constraint means; what names something unknown means nothing."""
        if self._item.sets:
            yield from self._read_sets()
            return
        if self._item.score == 0:
            return
        dependents = self._side(self._item.dependent, self._item.dependent_role)
        primaries = self._side(self._item.primary, self._item.primary_role)
        if dependents is None or primaries is None:
            return
        if len(dependents.resources) > 1 and len(primaries.resources) > 1:
            return
        for dependent in dependents.resources:
            for primary in primaries.resources:
                yield from self._one(dependents, dependent, primaries, primary)

    def _side(self, name: ResourceId, role: str | None) -> _Side | None:
        """Return what a name stands for: a resource, or what is found of those that a template or tag names."""
        group = named_group(name, self._inventory, self._configuration)
        found = [self._inventory.find(each) for each in ((name,) if group is None else group)]
        resources = tuple(each for each in found if each is not None)
        if not resources:
            return None
        return _Side(self._item.id, resources, _role(role), self._item.score, is_sequential=False)

    def _read_sets(self) -> Iterator[ColocationPair]:
        sides = map(self._set, expanded_sets(self._item.sets, self._inventory, self._configuration))
        before: _Side | None = None
        for side in sides:
            yield from self._within(side)
            if before is not None and self._item.score != 0:
                yield from self._between(before, side)
            before = side

    def _set(self, given: ResourceSet) -> _Side:
        return _Side(
            given.id,
            tuple(self._inventory.find(each) for each in given.members),
            _role(given.role),
            self._item.score if given.score is None else given.score,
            is_sequential=given.is_sequential is not False,
            is_listed=given.ordering is not None and given.ordering != "group",
        )

    def _within(self, side: _Side) -> Iterator[ColocationPair]:
        """Members of a set that follow each other: each with the one before; apart from all before, if so.

        A missing member ends it.
        """
        if not side.is_sequential or side.score == 0:
            return
        resources = side.resources
        for index, member in enumerate(resources[1:], start=1):
            if side.score < 0:
                for other in resources[:index]:
                    yield from self._one(side, member, side, other)
            else:
                pair = (resources[index - 1], member)
                dependent, primary = pair if side.is_listed else pair[::-1]
                yield from self._one(side, dependent, side, primary)

    def _between(self, first: _Side, second: _Side) -> Iterator[ColocationPair]:
        """The earlier set depends on the later one; a missing member ends it."""
        dependents = first.members[:1] if first.is_sequential else first.members
        primaries = second.members[-1:] if second.is_sequential else second.members
        for dependent, primary in product(dependents, primaries):
            if dependent is None or primary is None:
                return
            yield from self._one(first, dependent, second, primary)

    def _one(self, first: _Side, dependent: Resource, second: _Side, primary: Resource) -> Iterator[ColocationPair]:
        if not self._binds_to_itself and (dependent.is_inside(primary) or primary.is_inside(dependent)):
            return
        influence = self._item.influence
        is_within = first is second
        yield ColocationPair(
            first.id if is_within else self._item.id,
            first.score if is_within else self._item.score,
            dependent,
            primary,
            first.role,
            second.role,
            self._item.node_attribute or UNAME,
            dependent.definition.is_critical if influence is None else influence,
        )


def _role(text: str | None) -> Role:
    return _ROLES.get((text or "").lower(), Role.UNKNOWN)
