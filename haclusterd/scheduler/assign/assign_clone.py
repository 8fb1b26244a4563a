"""How a clone is assigned: its instances spread over the nodes, those that are well where they are first.

Source: Pacemaker Explained, "Clones". An instance that could stay is given its node early, if no better use of the
instances takes that away; what is tried and does not come out so is undone (`placing.SavedAssignment`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from haclusterd.model.ids import NodeName
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.assign.colocation_effects import ColocationEffects
from haclusterd.scheduler.assign.gangs import settle_gang
from haclusterd.scheduler.assign.instance_order import CANNOT_RUN, InstanceOrder
from haclusterd.scheduler.assign.neighbour_scores import add_scores_of_dependents
from haclusterd.scheduler.assign.placing import Placing, SavedAssignment
from haclusterd.scheduler.assign.promotion import choose_roles
from haclusterd.scheduler.assign.promotion_scores import add_promotion_scores
from haclusterd.scheduler.assign.steps import Steps, Wanted, remember_scores
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.scores.colocation_lists import this_with, with_this


def assign_clone(clone: Resource, placing: Placing, effects: ColocationEffects) -> Steps:
    """Assign all instances, and choose who is promoted."""
    clone.assignment.is_assigning = True
    if clone.definition.is_promotable:
        add_promotion_scores(clone, placing)
    for colocation in this_with(clone):
        yield Wanted(colocation.primary)
    add_scores_of_dependents(clone, with_this(clone), placing, is_nonnegative=True)
    remember_scores(clone)
    clone.reorder(InstanceOrder(placing).sorted(clone.children))
    definition = clone.definition
    yield from Instances(clone, definition.clone_max, definition.clone_node_max, placing).steps(clone.children)
    if clone.definition.is_gang:
        settle_gang(clone, placing)
    if clone.definition.is_promotable:
        choose_roles(clone, placing, effects)
    clone.assignment.is_assigned = True
    clone.assignment.is_assigning = False


class Instances:
    """Gives nodes to the instances of one clone, or to the containers of one bundle."""

    def __init__(self, collective: Resource, most: int, most_per_node: int, placing: Placing) -> None:
        self._collective = collective
        self._most = most
        self._most_per_node = most_per_node
        self._placing = placing

    def steps(self, instances: Iterable[Resource]) -> Steps:
        """Assign instances in the order given."""
        collective = self._collective
        collective.assignment.counts = {}
        usable = sum(1 for name in collective.assignment.allowed if name in self._placing.available)
        optimal_per_node = max(1, self._most // usable) if usable else self._most
        waiting = [instance for instance in instances if not instance.assignment.is_assigned]
        assigned = 0
        rest = []
        for instance in waiting:
            is_new = not instance.assignment.is_assigned
            node = self._current(instance, optimal_per_node) if is_new and assigned < self._most else None
            if node is not None:
                yield from self._try_to_keep(instance, node, self._most - assigned)
            if instance.assignment.node is not None:
                assigned += 1
            else:
                rest.append(instance)
        for instance in rest:
            if assigned >= self._most:
                instance.assignment.ban_everywhere(f"{collective.id} has no more than {self._most} instances")
            else:
                yield from self._assign(instance, None, is_trial=False)
                assigned += instance.assignment.node is not None

    def _current(self, instance: Resource, optimal_per_node: int) -> Node | None:
        """Where an instance is and may be; None when it should not stay there as a matter of course."""
        node = instance.current_node()
        if node is None or instance.found.is_failed or not self._placing.can_stay(node):
            return None
        return node if self._collective.assignment.counts.get(node.name, 0) < optimal_per_node else None

    def _try_to_keep(self, instance: Resource, node: Node, free: int) -> Steps:
        """Assign an instance to its node, if it would still get that after those who get better ones."""
        if not self._placing.can_use(instance.assignment.allowed, node.name):
            return
        before, counts = SavedAssignment.begin(instance), dict(self._collective.assignment.counts)
        for _ in range(free):
            yield from self._assign(instance, node, is_trial=True)
            chosen = instance.assignment.node
            if chosen is node or (chosen is None and self._is_left_nowhere(instance)):
                break
            self._placing.unassign(instance)
            before.undo()
            if chosen is None:
                break
        self._collective.assignment.counts = counts
        if instance.assignment.node is node:
            counts[node.name] = counts.get(node.name, 0) + 1

    def _is_left_nowhere(self, instance: Resource) -> bool:
        """Tell whether a trial that found no node for an instance, as it must not stay, counts at once.

        In Pacemaker it does for groups: as many other instances as there are other nodes get these, so the group stops
        and they start. As a whole a group whose members may be apart has no node, so its members keep those of the
        first trial, which nothing counts (docs/design/0007).
        """
        return instance.variant is Variant.GROUP and self._placing.settings.options.is_pacemaker_compatible

    def _assign(self, instance: Resource, prefer: Node | None, *, is_trial: bool) -> Steps:
        self._ban(instance)
        yield Wanted(instance, prefer, is_trial)
        if instance.assignment.node is not None:
            name = instance.assignment.node.name
            self._collective.assignment.counts[name] = self._collective.assignment.counts.get(name, 0) + 1

    def _ban(self, instance: Resource) -> None:
        """Forbid the nodes where the collective resource cannot have another instance."""
        for name in instance.assignment.allowed:
            words = self._objection(instance, name)
            if words:
                _forbid(instance, name, words)
        is_apart = instance.variant is Variant.GROUP and not instance.definition.is_collocated
        if is_apart and not self._placing.settings.options.is_pacemaker_compatible:
            self._keep_members_apart(instance)

    def _keep_members_apart(self, group: Resource) -> None:
        """Forbid each member, placed by itself, the nodes that have as many instances of it as there may be."""
        others = [each for each in self._collective.children if each is not group]
        for member in group.children:
            twins = (twin for each in others for twin in each.children if twin.base_id == member.base_id)
            taken = Counter(twin.assignment.node.name for twin in twins if twin.assignment.node is not None)
            for name, count in taken.items():
                if count >= self._most_per_node:
                    _forbid(member, name, f"{self._collective.id} has an instance of {member.base_id} there already")

    def _objection(self, instance: Resource, name: NodeName) -> str:
        collective = self._collective
        if instance.found.is_removed:
            return "it is an instance too many"
        if name not in self._placing.available:
            return f"{name}{CANNOT_RUN}"
        if collective.assignment.allowed.get(name, -INFINITY) < 0:
            return f"{collective.id} must not run there"
        if collective.assignment.counts.get(name, 0) >= self._most_per_node:
            already = "an instance" if self._most_per_node == 1 else f"{self._most_per_node} instances"
            return f"{collective.id} has {already} there already"
        return ""


def _forbid(resource: Resource, name: NodeName, words: str) -> None:
    if resource.assignment.allowed.get(name, -INFINITY) > -INFINITY:
        resource.assignment.add(name, -INFINITY, words)
    for child in resource.children:
        _forbid(child, name, words)
