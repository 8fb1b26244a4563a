"""How one primitive gets its node.

Source: Pacemaker Explained, "Constraints" and Pacemaker Development, "Scheduler": mandatory colocations first, then the
optional ones; the best score wins; of equal ones the node with fewer resources, then where it is, then the name.
"""

from haclusterd.model.ids import NodeName
from haclusterd.model.ocf import Role
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.assign_group import Steps, assign_group
from haclusterd.scheduler.colocation import any_available, apply_to_dependent, this_with, with_this
from haclusterd.scheduler.entities import Resource, Together, Variant
from haclusterd.scheduler.neighbour_scores import pull_by_dependent
from haclusterd.scheduler.nodes import Node
from haclusterd.scheduler.settings import Settings


class Assignment:
    """Assigns resources, each once."""

    def __init__(self, nodes: dict[NodeName, Node], settings: Settings, *, is_all_unmanaged: bool) -> None:
        self._nodes = nodes
        self._settings = settings
        self._is_all_unmanaged = is_all_unmanaged

    def assign(self, resource: Resource) -> None:
        """Assign a resource, and before it whatever its place depends on.

        Each step that needs another resource's place asks for it and waits; the waiting ones stand in a list, not on
        the call stack, because chains of dependencies may be long.
        """
        waiting = [self._assign(resource, None)]
        while waiting:
            needed = next(waiting[-1], None)
            if needed is None:
                waiting.pop()
            else:
                waiting.append(self._assign(*needed))

    def _assign(self, resource: Resource, prefer: Node | None) -> Steps:
        group = resource.parent
        if group is not None and not (group.is_assigning or group.is_assigned):
            yield group, prefer
        if resource.is_assigned or resource.is_assigning:
            return
        if resource.variant is Variant.GROUP:
            yield from assign_group(resource, prefer)
            return
        resource.is_assigning = True
        yield from self._collect_scores(resource)
        self._settle(resource, prefer)
        resource.is_assigned = True
        resource.is_assigning = False

    def _collect_scores(self, resource: Resource) -> Steps:
        primaries = this_with(resource)
        dependents = with_this(resource)
        for is_mandatory in (True, False):
            for together in primaries:
                if together.is_mandatory is is_mandatory:
                    yield from self._follow(resource, together)
            for together in dependents:
                if together.is_mandatory is is_mandatory:
                    pull_by_dependent(resource, together, self._nodes)
        if resource.next_role is Role.STOPPED:
            resource.ban_everywhere(_stopped_words(resource))

    def _follow(self, resource: Resource, together: Together) -> Steps:
        before = None
        if together.dependent_role is Role.PROMOTED or -INFINITY < together.score < 0:
            before = dict(resource.allowed)
        yield together.primary, None
        apply_to_dependent(resource, together, self._nodes)
        if before is not None and not any_available(resource.allowed, self._nodes):
            resource.allowed = before

    def _settle(self, resource: Resource, prefer: Node | None) -> None:
        if self._is_all_unmanaged:
            resource.is_managed = False
        if not resource.is_managed:
            current = resource.current_node()
            resource.next_role = resource.original_role
            self._force(resource, current)
        elif self._settings.stops_all:
            self._force(resource, None)
        else:
            chosen = self._choose(resource, prefer)
            self._place(resource, chosen)

    def _choose(self, resource: Resource, prefer: Node | None) -> Node | None:
        """Return the best node; it may still turn out to be forbidden."""
        allowed = resource.allowed
        if not allowed:
            return None
        nodes = self._nodes
        current = resource.current_node()

        def rank(name: NodeName) -> tuple[int, int, bool, str]:
            node = nodes[name]
            score = allowed[name] if node.is_available else -INFINITY
            return (-score, node.resources_assigned, node is not current, name)

        best = nodes[min(allowed, key=rank)]
        best_score = allowed[best.name] if best.is_available else -INFINITY
        if prefer is not None and prefer.is_available:
            score = allowed.get(prefer.name, -INFINITY)
            if score >= 0 and score >= best_score:
                return prefer
        is_kept = current is not None and current.is_available and allowed.get(current.name) == best_score
        if is_kept and best_score > 0:
            return current
        return best

    def _place(self, resource: Resource, node: Node | None) -> None:
        if node is None or resource.allowed[node.name] < 0 or not node.is_available:
            self._take_none(resource)
            return
        resource.assigned = node
        node.resources_assigned += 1

    def _force(self, resource: Resource, node: Node | None) -> None:
        if node is None:
            self._take_none(resource)
            return
        resource.assigned = node
        node.resources_assigned += 1

    def _take_none(self, resource: Resource) -> None:
        resource.assigned = None
        if resource.is_managed and resource.next_role is not Role.STOPPED:
            resource.next_role = Role.STOPPED


def _stopped_words(resource: Resource) -> str:
    if resource.target_role_stopped:
        return "target-role=Stopped"
    return resource.failed_because or "it is to be stopped"
