"""Phase: give every resource its node, in the order of priority, then of the document.

Connections to remote nodes come first, so that it is known which of those can be used. When capacities count, resources
of one priority are first put into the order of what they lose by not being where they are (Pacemaker Explained,
"Utilization and Placement Strategy", "Allocation Details"). Each is assigned once, and before it what its place depends
on. A group's members are assigned one after the other, each bound to the one before it; where the first goes is decided
by what all members prefer together (Pacemaker Explained, "Groups").
"""

from functools import cmp_to_key

from haclusterd.model.ocf import Role
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.assign.assign_bundle import assign_bundle
from haclusterd.scheduler.assign.assign_clone import assign_clone
from haclusterd.scheduler.assign.assign_primitive import PrimitiveAssignment
from haclusterd.scheduler.assign.colocation_effects import ColocationEffects
from haclusterd.scheduler.assign.neighbour_scores import all_scores
from haclusterd.scheduler.assign.placing import Placing, Table
from haclusterd.scheduler.assign.steps import Steps, Wanted, remember_scores
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.settings import Settings


def assign_all(inventory: Inventory, settings: Settings) -> None:
    """Assign every resource; afterwards `assigned` of each is final."""
    has_device = settings.is_fence_device_configured or any(top.definition.is_fence_device for top in inventory.tops)
    is_all_unmanaged = settings.options.is_pacemaker_compatible and settings.is_fencing_enabled and not has_device
    for top in inventory.tops:
        _begin(top)
    assignment = Assigner(inventory, settings, is_all_unmanaged=is_all_unmanaged)
    if settings.placement_strategy != "default":
        _sort_by_scores(inventory, assignment.placing)
    for top in inventory.tops:
        if top.definition.is_remote_connection:
            assignment.assign(top, top.found.partial_target)
    for top in list(inventory.tops):
        if not top.definition.is_remote_connection:
            assignment.assign(top)


def _begin(resource: Resource) -> None:
    assignment = resource.assignment
    assignment.begin(resource.scores)
    assignment.next_role = resource.found.next_role
    for child in resource.children:
        _begin(child)


def _sort_by_scores(inventory: Inventory, placing: Placing) -> None:
    table: Table = {node.name: placing.base_score(node) for node in inventory.nodes}
    names = placing.sorted_names(table)
    scores = {id(top): all_scores(top, placing) for top in inventory.tops}

    def compare(left: Resource, right: Resource) -> int:
        if left.assignment.priority != right.assignment.priority:
            return -1 if left.assignment.priority > right.assignment.priority else 1
        first, second = scores[id(left)], scores[id(right)]
        by_current = _score_where_it_runs(left, first) - _score_where_it_runs(right, second)
        if by_current:
            return -1 if by_current > 0 else 1
        for name in names:
            difference = first.get(name, -INFINITY) - second.get(name, -INFINITY)
            if difference:
                return -1 if difference > 0 else 1
        return 0

    inventory.reorder(sorted(inventory.tops, key=cmp_to_key(compare)))


def _score_where_it_runs(resource: Resource, scores: Table) -> int:
    node = resource.current_node()
    return scores.get(node.name, -INFINITY) if node is not None else -INFINITY


class Assigner:
    """One plan's assignment."""

    def __init__(self, inventory: Inventory, settings: Settings, *, is_all_unmanaged: bool) -> None:
        self._placing = Placing(inventory, settings)
        self._effects = ColocationEffects(self._placing)
        self._primitives = PrimitiveAssignment(self._placing, self._effects, is_all_unmanaged=is_all_unmanaged)

    @property
    def placing(self) -> Placing:
        """The nodes."""
        return self._placing

    def assign(self, resource: Resource, prefer: Node | None = None) -> None:
        """Assign a resource, and before it whatever its place depends on."""
        waiting = [self._steps(Wanted(resource, prefer))]
        while waiting:
            needed = next(waiting[-1], None)
            if needed is None:
                waiting.pop()
            else:
                waiting.append(self._steps(needed))

    def _steps(self, wanted: Wanted) -> Steps:
        resource = wanted.resource
        parent = resource.parent
        if parent is not None and not (parent.assignment.is_assigning or parent.assignment.is_assigned):
            yield Wanted(parent, wanted.prefer, wanted.is_trial)
        if resource.assignment.is_assigned:
            return
        if resource.assignment.is_assigning and not self._is_entered_again(resource):
            return
        match resource.variant:
            case Variant.PRIMITIVE:
                yield from self._primitives.steps(wanted)
            case Variant.GROUP:
                yield from assign_group(resource, wanted.prefer, is_trial=wanted.is_trial)
            case Variant.CLONE:
                yield from assign_clone(resource, self._placing, self._effects)
            case Variant.BUNDLE:
                yield from assign_bundle(resource, self._placing)

    def _is_entered_again(self, resource: Resource) -> bool:
        """Tell whether a circle of colocations leads through a resource a second time.

        In Pacemaker 3 it does through a bundle: what its container goes with, and what itself goes with the bundle, has
        all of the bundle assigned but that container, in which therefore nothing is promoted. A running cluster ends
        the circle where it closes, as Pacemaker 2.1.5 does, and stops nothing for it (docs/design/0007).
        """
        return resource.variant is Variant.BUNDLE and self._placing.settings.options.is_pacemaker_compatible


def assign_group(group: Resource, prefer: Node | None, *, is_trial: bool) -> Steps:
    """Assign all members; a collocated group is where its first member is."""
    group.assignment.is_assigning = True
    remember_scores(group)
    first: Node | None = None
    for member in group.children:
        yield Wanted(member, prefer, is_trial)
        first = first or member.assignment.node
    group.assignment.next_role = group.children[0].assignment.next_role
    if first is None and group.assignment.next_role is Role.UNKNOWN and not is_trial:
        group.assignment.next_role = Role.STOPPED
    group.assignment.node = first if group.definition.is_collocated else None
    group.assignment.is_assigned = True
    group.assignment.is_assigning = False
