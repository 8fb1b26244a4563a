"""What a colocation does to its dependent once its primary has a place: to scores of nodes, or to its promotion.

Source: Pacemaker Explained, "Placing Resources Relative to other Resources", "Colocation with promotable clones". A
mandatory colocation decides where the dependent may run, an optional one is a weight. A group as a primary is its last
member where all of it must be there, else its first; a clone each of its instances, or with `interleave` the one that
matches the dependent; a bundle its containers.
"""

from __future__ import annotations

from collections.abc import Iterable

from haclusterd.model.ids import NodeName
from haclusterd.model.ocf import Role
from haclusterd.model.scores import INFINITY, add
from haclusterd.scheduler.assign.placing import Placing, Table
from haclusterd.scheduler.model.entities import UNAME, Resource, Together, Variant
from haclusterd.scheduler.model.node_values import host_of, is_bundled, is_same, value_on

_PROMOTABLE_ROLES = (Role.UNPROMOTED, Role.PROMOTED)


class ColocationEffects:
    """Applies colocations to dependents."""

    def __init__(self, placing: Placing) -> None:
        self._placing = placing

    def apply(self, dependent: Resource, primary: Resource, together: Together) -> None:
        """Change a dependent after its primary was assigned (or found to have no node)."""
        if dependent.variant is Variant.GROUP:
            dependent = dependent.children[0]
        if primary.variant is Variant.GROUP:
            self._with_group(dependent, primary, together)
        elif primary.variant is Variant.CLONE:
            self._with_clone(dependent, primary, together)
        elif primary.variant is Variant.BUNDLE:
            self._with_bundle(dependent, primary, together)
        elif affects_role(dependent, primary, together):
            _apply_role(dependent, primary, together)
        elif affects_location(dependent, primary, together):
            self._apply_location(dependent, primary, together)

    # -- primaries that contain others -------------------------------------------------------------------------------

    def _with_group(self, dependent: Resource, group: Resource, together: Together) -> None:
        if not group.is_assigned:
            return
        if group.is_collocated:
            self.apply(dependent, group.children[-1 if together.is_mandatory else 0], together)
        elif not together.is_mandatory:
            for member in group.children:
                self.apply(dependent, member, together)

    def _with_clone(self, dependent: Resource, clone: Resource, together: Together) -> None:
        if not clone.is_assigned:
            return
        if clone.is_promotable and together.primary_role is not Role.UNKNOWN:
            if not dependent.is_assigned:
                self._with_role(dependent, clone, together)
            elif together.dependent_role is Role.PROMOTED:
                self._promote_with(dependent, clone, together)
            return
        if _is_interleaved(dependent, clone):
            self._with_matching(dependent, clone.children, together)
        elif together.score >= INFINITY:
            self._restrict(dependent, together, clone.children)
        else:
            for instance in clone.children:
                self.apply(dependent, instance, together)

    def _with_bundle(self, dependent: Resource, bundle: Resource, together: Together) -> None:
        if not bundle.is_assigned:
            return
        containers = [replica.container for replica in bundle.replicas]
        if together.dependent.variant >= Variant.CLONE:
            self._with_matching(dependent, containers, together)
        elif together.score >= INFINITY:
            if together.primary_role is Role.PROMOTED:
                containers = [each for each in containers if for_role(each).next_role is Role.PROMOTED]
            self._restrict(dependent, together, containers)
        else:
            for container in containers:
                self.apply(dependent, container, together)

    def _with_matching(self, dependent: Resource, instances: list[Resource], together: Together) -> None:
        found = self._matching(dependent, instances)
        if found is not None:
            self.apply(dependent, found, together)
        elif together.score >= INFINITY and not dependent.is_assigned:
            dependent.ban_everywhere(f"{together.id}: no instance of {together.primary.id} is where it could be")
            self._placing.take_none(dependent)

    def _matching(self, dependent: Resource, instances: list[Resource]) -> Resource | None:
        """Return the instance where the dependent is, or else where it would rather be."""
        by_node: dict[NodeName, Resource] = {}
        for instance in instances:
            if instance.assigned is not None and not _is_any_blocked(instance):
                by_node.setdefault(instance.assigned.name, instance)
        if dependent.assigned is not None:
            place = dependent.assigned if dependent.assigned.name in by_node else host_of(dependent.assigned)
            return by_node.get(place.name) if place is not None else None
        table = {name: score for name, score in dependent.allowed.items() if name in by_node and score >= 0}
        return by_node[self._placing.best(table, None)] if table else None

    # -- effects on scores --------------------------------------------------------------------------------------------

    def _apply_location(self, dependent: Resource, primary: Resource, together: Together) -> None:
        node = primary.assigned
        if node is None and together.score < 0:
            return
        if node is None:
            table = {name: add(value, -together.score) for name, value in dependent.allowed.items()}
        else:
            table = self._beside(dependent, value_on(node, together.attribute, primary), together)
        if together.is_mandatory or self._placing.any_usable(table):
            replace_scores(dependent, table, words_of(together))

    def _beside(self, dependent: Resource, wanted: str | None, together: Together) -> Table:
        """A dependent's scores, given the value that the primary's node has."""
        allowed, score = dependent.allowed, together.score
        if together.attribute == UNAME and not dependent.uses_host_attributes and not is_bundled(dependent):
            same = [NodeName(wanted)] if wanted is not None and wanted in allowed else []
        else:
            nodes, attribute = self._placing.nodes, together.attribute
            same = [name for name in allowed if is_same(value_on(nodes[name], attribute, dependent), wanted)]
        table = dict.fromkeys(allowed, -INFINITY) if score >= INFINITY else dict(allowed)
        for name in same:
            table[name] = allowed[name] if score >= INFINITY else add(allowed[name], score)
        return table

    def _restrict(self, dependent: Resource, together: Together, instances: Iterable[Resource]) -> None:
        """Allow only nodes where an instance is that may run."""
        if dependent.is_assigned:
            return
        names = {each.assigned.name for each in instances if each.assigned is not None and not _is_any_blocked(each)}
        table = {name: value if name in names else -INFINITY for name, value in dependent.allowed.items()}
        replace_scores(dependent, table, words_of(together))

    def _with_role(self, dependent: Resource, clone: Resource, together: Together) -> None:
        """Follow the instances of a promotable clone that are to have a role."""
        instances = [each for each in clone.children if each.assigned and each.next_role is together.primary_role]
        if together.score < INFINITY:
            for instance in instances:
                assert instance.assigned is not None
                value = value_on(instance.assigned, together.attribute, instance)
                replace_scores(dependent, self._beside(dependent, value, together), words_of(together))
        elif together.primary_role is not Role.PROMOTED or together.dependent_role is not Role.PROMOTED:
            table = dict.fromkeys(dependent.allowed, -INFINITY)
            for instance in instances:
                node = instance.assigned
                assert node is not None
                name = node.name
                worth = instance.allowed.get(name, 0) if instance.is_managed else self._placing.base_score(node)
                if name in table:
                    table[name] = add(dependent.allowed[name], worth)
            replace_scores(dependent, table, words_of(together))

    @staticmethod
    def _promote_with(dependent: Resource, clone: Resource, together: Together) -> None:
        """Let an instance be promoted where an instance of the other clone has the role that counts."""
        here = value_on(dependent.assigned, together.attribute, dependent) if dependent.assigned is not None else None
        for instance in clone.children:
            if instance.assigned is None or _is_any_blocked(instance) or not _has_role(instance, together.primary_role):
                continue
            if is_same(here, value_on(instance.assigned, together.attribute, instance)):
                add_to_promotion(dependent, together.score, words_of(together))
                return
        if together.score >= INFINITY:
            add_to_promotion(dependent, -INFINITY, words_of(together))


def for_role(resource: Resource) -> Resource:
    """Return whose role counts: of a bundle's container, the bundled primitive's."""
    if resource.is_replica_container and resource.parent is not None:
        for replica in resource.parent.replicas:
            if replica.container is resource and replica.child is not None:
                return replica.child
    return resource


def affects_role(dependent: Resource, primary: Resource, together: Together) -> bool:
    """Tell whether a colocation now decides about the dependent's promotion rather than its place."""
    if not primary.is_assigned or together.dependent_role not in _PROMOTABLE_ROLES:
        return False
    instance = for_role(dependent)
    return instance.is_assigned and instance.parent is not None and instance.top.is_promotable


def affects_location(dependent: Resource, primary: Resource, together: Together) -> bool:
    """Tell whether a colocation now decides about the dependent's place."""
    if not primary.is_assigned or dependent.is_assigned:
        return False
    return is_in_roles(dependent, primary, together)


def is_in_roles(dependent: Resource, primary: Resource, together: Together) -> bool:
    """Tell whether both sides are to have the roles for which the colocation counts."""
    return _has_role(dependent, together.dependent_role) and _has_role(primary, together.primary_role)


def _has_role(resource: Resource, role: Role) -> bool:
    return role is Role.UNKNOWN or for_role(resource).next_role is role


def _apply_role(dependent: Resource, primary: Resource, together: Together) -> None:
    """Raise or lower a promotable instance's priority."""
    if dependent.assigned is None:
        return
    here = value_on(dependent.assigned, together.attribute, dependent)
    there = None
    if primary.assigned is not None:
        if not _has_role(primary, together.primary_role):
            return
        there = value_on(primary.assigned, together.attribute, primary)
    sign = -1 if together.dependent_role is Role.UNPROMOTED else 1
    if not is_same(here, there):
        if together.score < INFINITY or together.dependent_role is not Role.PROMOTED:
            return
        sign = -1
    instance = for_role(dependent)
    add_to_promotion(instance, sign * together.score, words_of(together))
    group = instance.parent
    if group is not None and group.variant is Variant.GROUP:
        add_to_promotion(group, sign * together.score, words_of(together))


def add_to_promotion(instance: Resource, score: int, source: str) -> None:
    """Let an instance be more or less important for promotion."""
    instance.priority = add(instance.priority, score)
    if instance.addends is not None:
        instance.promotion_addends.append((score, source))


def _is_interleaved(dependent: Resource, primary: Resource) -> bool:
    """Whether a dependent is of a clone or bundle that goes with another one instance by instance."""
    collective = dependent.parent
    while collective is not None and collective.variant < Variant.CLONE:
        collective = collective.parent
    if collective is None or not collective.is_interleaved:
        return False
    return collective.clone_node_max == primary.clone_node_max


def _is_any_blocked(resource: Resource) -> bool:
    return resource.is_blocked or any(_is_any_blocked(child) for child in resource.children)


def words_of(together: Together) -> str:
    """Say which colocation it is, for a person."""
    if together.primary.assigned is None and together.primary.variant <= Variant.GROUP:
        return f"{together.id}: {together.primary.id} runs nowhere"
    return f"{together.id}: {'apart from' if together.score < 0 else 'with'} {together.primary.id}"


def replace_scores(resource: Resource, table: Table, source: str) -> None:
    """Give a resource new scores, keeping what forbids a node and, if wanted, what each score is the sum of."""
    for name, value in table.items():
        if value <= -INFINITY and resource.allowed[name] > -INFINITY:
            resource.banned_by.setdefault(name, source)
    if resource.addends is not None:
        for name, value in table.items():
            before = resource.allowed.get(name, 0)
            if value != before:
                change = value if abs(value) >= INFINITY else value - before
                resource.addends.setdefault(name, []).append((change, source))
    resource.allowed = table
