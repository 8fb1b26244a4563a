"""What a colocation does to its dependent once its primary has a place: to scores of nodes, or to its promotion.

Source: Pacemaker Explained, "Placing Resources Relative to other Resources", "Colocation with promotable clones". A
mandatory colocation decides where the dependent may run, an optional one is a weight. A group as a primary is its
last member where all of it must be there, else its first, which runs also where a later one cannot, or with
`collocated=false` each of them; a clone each of its instances, or with `interleave` the one that matches the
dependent; a bundle its containers.
"""

from __future__ import annotations

from collections.abc import Iterable

from haclusterd.model.ids import NodeName
from haclusterd.model.ocf import Role
from haclusterd.model.scores import INFINITY, add
from haclusterd.scheduler.assign.placing import Placing, Table
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import UNAME, ColocationPair, Resource
from haclusterd.scheduler.model.node_values import host_of, is_by_host, is_same, value_on

_PROMOTABLE_ROLES = (Role.UNPROMOTED, Role.PROMOTED)


class ColocationEffects:
    """Applies colocations to dependents."""

    def __init__(self, placing: Placing) -> None:
        self._placing = placing

    def apply(self, dependent: Resource, primary: Resource, colocation: ColocationPair) -> None:
        """Change a dependent after its primary was assigned (or found to have no node)."""
        if dependent.variant is Variant.GROUP:
            dependent = dependent.children[0]
        if primary.variant is Variant.GROUP:
            self._with_group(dependent, primary, colocation)
        elif primary.variant is Variant.CLONE:
            self._with_clone(dependent, primary, colocation)
        elif primary.variant is Variant.BUNDLE:
            self._with_bundle(dependent, primary, colocation)
        elif affects_role(dependent, primary, colocation):
            _apply_role(dependent, primary, colocation)
        elif affects_location(dependent, primary, colocation):
            self._apply_location(dependent, primary, colocation)

    # -- primaries that contain others -------------------------------------------------------------------------------

    def _with_group(self, dependent: Resource, group: Resource, colocation: ColocationPair) -> None:
        if not group.assignment.is_assigned:
            return
        members = group.children
        if colocation.score >= INFINITY:
            members = members[-1:] if group.definition.is_collocated else self._sharing(group)
        elif group.definition.is_collocated and not self._is_apart_from_each(colocation):
            members = members[:1]
        for member in members:
            self.apply(dependent, member, colocation)

    def _sharing(self, group: Resource) -> list[Resource]:
        """Return a member of a group whose members may be apart, when all of them share a node.

        In Pacemaker nothing can have to be with such a group: the colocation has no effect (docs/design/0007).
        """
        if group.place() is None or self._placing.settings.options.is_pacemaker_compatible:
            return []
        return [next(member for member in group.children if member.assignment.node is not None)]

    def _is_apart_from_each(self, colocation: ColocationPair) -> bool:
        """Whether every member of a group counts; in Pacemaker the others may be where they are if nobody manages them.

        A running cluster keeps apart from those as well.
        """
        return colocation.is_mandatory and not self._placing.settings.options.is_pacemaker_compatible

    def _with_clone(self, dependent: Resource, clone: Resource, colocation: ColocationPair) -> None:
        if not clone.assignment.is_assigned:
            return
        if clone.definition.is_promotable and colocation.primary_role is not Role.UNKNOWN:
            if not dependent.assignment.is_assigned:
                self._with_role(dependent, clone, colocation)
            elif colocation.dependent_role in _PROMOTABLE_ROLES:
                self._promote_with(dependent, clone, colocation)
            return
        if _is_interleaved(dependent, clone):
            self._with_matching(dependent, clone.children, colocation)
        elif colocation.score >= INFINITY:
            self._restrict(dependent, colocation, clone.children)
        else:
            for instance in clone.children:
                self.apply(dependent, instance, colocation)

    def _with_bundle(self, dependent: Resource, bundle: Resource, colocation: ColocationPair) -> None:
        if not bundle.assignment.is_assigned:
            return
        containers = [replica.container for replica in bundle.replicas]
        if colocation.dependent.variant >= Variant.CLONE:
            is_binding = dependent.assignment.is_assigned or self._counts_now(bundle, colocation)
            self._with_matching(dependent, containers, colocation, is_binding=is_binding)
        elif colocation.score >= INFINITY:
            if colocation.primary_role is Role.PROMOTED:
                containers = [each for each in containers if for_role(each).assignment.next_role is Role.PROMOTED]
            self._restrict(dependent, colocation, containers)
        else:
            for container in containers:
                self.apply(dependent, container, colocation)

    def _counts_now(self, bundle: Resource, colocation: ColocationPair) -> bool:
        """Tell whether a colocation of a clone with a bundle's role keeps an instance from where no container is.

        In Pacemaker (2.1.5 and 3.0.0) it does not while the highest role in the bundle is another one, so that the
        clone runs everywhere, unless no container has a node. In a running cluster it does.
        """
        if colocation.primary_role is Role.UNKNOWN or not self._placing.settings.options.is_pacemaker_compatible:
            return True
        if all(replica.container.assignment.node is None for replica in bundle.replicas):
            return True
        roles = [for_role(replica.container).assignment.next_role for replica in bundle.replicas]
        return max(roles, key=lambda role: role.value, default=Role.UNKNOWN) is colocation.primary_role

    def _with_matching(
        self, dependent: Resource, instances: list[Resource], colocation: ColocationPair, *, is_binding: bool = True
    ) -> None:
        found = self._matching(dependent, instances)
        if found is not None:
            self.apply(dependent, found, colocation)
        elif is_binding and colocation.score >= INFINITY and _may_be_taken_away(dependent):
            words = f"{colocation.id}: no instance of {colocation.primary.id} is where it could be"
            dependent.assignment.ban_everywhere(words)
            self._placing.take_none(dependent)

    def _matching(self, dependent: Resource, instances: list[Resource]) -> Resource | None:
        """Return the instance where the dependent is, or else where it would rather be."""
        by_node: dict[NodeName, Resource] = {}
        for instance in instances:
            place = instance.place()
            if place is not None and not _is_any_blocked(instance):
                by_node.setdefault(place.name, instance)
        node = dependent.assignment.node
        if node is not None:
            place = node if node.name in by_node else host_of(node)
            return by_node.get(place.name) if place is not None else None
        table = {name: score for name, score in dependent.assignment.allowed.items() if name in by_node and score >= 0}
        return by_node[self._placing.best(table, None)] if table else None

    # -- effects on scores --------------------------------------------------------------------------------------------

    def _apply_location(self, dependent: Resource, primary: Resource, colocation: ColocationPair) -> None:
        node = primary.assignment.node
        if node is None and colocation.score < 0:
            return
        if node is None:
            table = {name: add(value, -colocation.score) for name, value in dependent.assignment.allowed.items()}
        else:
            table = self._beside(dependent, value_on(node, colocation.attribute, primary), colocation)
        if colocation.is_mandatory or self._placing.any_usable(table):
            replace_scores(dependent, table, words_of(colocation))

    def _beside(self, dependent: Resource, wanted: str | None, colocation: ColocationPair) -> Table:
        """A dependent's scores, given the value that the primary's node has."""
        allowed, score = dependent.assignment.allowed, colocation.score
        if colocation.attribute == UNAME and not is_by_host(dependent) and wanted is not None:
            same = [NodeName(wanted)] if wanted in allowed else []
        else:
            nodes, attribute = self._placing.nodes, colocation.attribute
            same = [name for name in allowed if is_same(value_on(nodes[name], attribute, dependent), wanted)]
        table = dict.fromkeys(allowed, -INFINITY) if score >= INFINITY else dict(allowed)
        for name in same:
            table[name] = allowed[name] if score >= INFINITY else add(allowed[name], score)
        return table

    def _restrict(self, dependent: Resource, colocation: ColocationPair, instances: Iterable[Resource]) -> None:
        """Allow only nodes where an instance is that may run."""
        if dependent.assignment.is_assigned:
            return
        usable = [each.place() for each in instances if not _is_any_blocked(each)]
        names = {node.name for node in usable if node is not None}
        table = {name: value if name in names else -INFINITY for name, value in dependent.assignment.allowed.items()}
        replace_scores(dependent, table, words_of(colocation))

    def _with_role(self, dependent: Resource, clone: Resource, colocation: ColocationPair) -> None:
        """Follow the instances of a promotable clone that are to have a role."""
        role = colocation.primary_role
        having = (each for each in clone.children if each.assignment.next_role is role)
        instances = [(each, node) for each in having if (node := each.place()) is not None]
        if colocation.score < INFINITY:
            for instance, node in instances:
                value = value_on(node, colocation.attribute, instance)
                replace_scores(dependent, self._beside(dependent, value, colocation), words_of(colocation))
        elif colocation.primary_role is not Role.PROMOTED or colocation.dependent_role is not Role.PROMOTED:
            table = dict.fromkeys(dependent.assignment.allowed, -INFINITY)
            for instance, node in instances:
                name = node.name
                base_score = self._placing.base_score(node)
                worth = instance.assignment.allowed.get(name, 0) if instance.is_managed else base_score
                if name in table:
                    table[name] = add(dependent.assignment.allowed[name], worth)
            replace_scores(dependent, table, words_of(colocation))

    @staticmethod
    def _promote_with(dependent: Resource, clone: Resource, colocation: ColocationPair) -> None:
        """Let an instance be promoted where an instance of the other clone has the role that counts.

        A weight for unpromoted instances is one against promotion there. INFINITY decides about places, and about the
        promotion only of an interleaved clone.
        """
        is_promoted = colocation.dependent_role is Role.PROMOTED
        if not is_promoted and abs(colocation.score) >= INFINITY and not _is_interleaved(dependent, clone):
            return
        node = dependent.assignment.node
        here = value_on(node, colocation.attribute, dependent) if node is not None else None
        for instance in clone.children:
            role = colocation.primary_role
            place = instance.place()
            if place is None or _is_any_blocked(instance) or not _has_role(instance, role):
                continue
            if is_same(here, value_on(place, colocation.attribute, instance)):
                score = colocation.score if is_promoted else -colocation.score
                add_to_promotion(dependent, score, words_of(colocation))
                return
        if is_promoted and colocation.score >= INFINITY:
            add_to_promotion(dependent, -INFINITY, words_of(colocation))


def _may_be_taken_away(dependent: Resource) -> bool:
    return dependent.is_managed or not dependent.assignment.is_assigned


def for_role(resource: Resource) -> Resource:
    """Return whose role counts: of a bundle's container, the bundled primitive's."""
    if resource.definition.is_replica_container and resource.parent is not None:
        for replica in resource.parent.replicas:
            if replica.container is resource and replica.child is not None:
                return replica.child
    return resource


def affects_role(dependent: Resource, primary: Resource, colocation: ColocationPair) -> bool:
    """Tell whether a colocation now decides about the dependent's promotion rather than its place."""
    if not primary.assignment.is_assigned or colocation.dependent_role not in _PROMOTABLE_ROLES:
        return False
    instance = for_role(dependent)
    return instance.assignment.is_assigned and instance.parent is not None and instance.top.definition.is_promotable


def affects_location(dependent: Resource, primary: Resource, colocation: ColocationPair) -> bool:
    """Tell whether a colocation now decides about the dependent's place."""
    if not primary.assignment.is_assigned or dependent.assignment.is_assigned:
        return False
    return is_in_roles(dependent, primary, colocation)


def is_in_roles(dependent: Resource, primary: Resource, colocation: ColocationPair) -> bool:
    """Tell whether both sides are to have the roles for which the colocation counts."""
    return _has_role(dependent, colocation.dependent_role) and _has_role(primary, colocation.primary_role)


def _has_role(resource: Resource, role: Role) -> bool:
    return role is Role.UNKNOWN or for_role(resource).assignment.next_role is role


def _apply_role(dependent: Resource, primary: Resource, colocation: ColocationPair) -> None:
    """Raise or lower a promotable instance's priority."""
    if dependent.assignment.node is None:
        return
    here = value_on(dependent.assignment.node, colocation.attribute, dependent)
    there = None
    if primary.assignment.node is not None:
        if not _has_role(primary, colocation.primary_role):
            return
        there = value_on(primary.assignment.node, colocation.attribute, primary)
    sign = -1 if colocation.dependent_role is Role.UNPROMOTED else 1
    if not is_same(here, there):
        if colocation.score < INFINITY or colocation.dependent_role is not Role.PROMOTED:
            return
        sign = -1
    instance = for_role(dependent)
    add_to_promotion(instance, sign * colocation.score, words_of(colocation))
    group = instance.parent
    if group is not None and group.variant is Variant.GROUP:
        add_to_promotion(group, sign * colocation.score, words_of(colocation))


def add_to_promotion(instance: Resource, score: int, source: str) -> None:
    """Let an instance be more or less important for promotion."""
    instance.assignment.priority = add(instance.assignment.priority, score)
    if instance.assignment.addends is not None:
        instance.assignment.promotion_addends.append((score, source))


def _is_interleaved(dependent: Resource, primary: Resource) -> bool:
    """Whether a dependent is of a clone or bundle that goes with another one instance by instance."""
    collective = dependent.parent
    while collective is not None and collective.variant < Variant.CLONE:
        collective = collective.parent
    if collective is None or not collective.definition.is_interleaved:
        return False
    return collective.definition.clone_node_max == primary.definition.clone_node_max


def _is_any_blocked(resource: Resource) -> bool:
    return resource.is_blocked or any(_is_any_blocked(child) for child in resource.children)


def words_of(colocation: ColocationPair) -> str:
    """Say which colocation it is, for a person."""
    if colocation.primary.assignment.node is None and colocation.primary.variant <= Variant.GROUP:
        return f"{colocation.id}: {colocation.primary.id} runs nowhere"
    return f"{colocation.id}: {'apart from' if colocation.score < 0 else 'with'} {colocation.primary.id}"


def replace_scores(resource: Resource, table: Table, source: str) -> None:
    """Give a resource new scores, keeping what forbids a node and, if wanted, what each score is the sum of."""
    for name, value in table.items():
        if value <= -INFINITY and resource.assignment.allowed[name] > -INFINITY:
            resource.assignment.banned_by.setdefault(name, source)
    if resource.assignment.addends is not None:
        for name, value in table.items():
            before = resource.assignment.allowed.get(name, 0)
            if value != before:
                change = value if abs(value) >= INFINITY else value - before
                resource.assignment.addends.setdefault(name, []).append((change, source))
    resource.assignment.allowed = table
