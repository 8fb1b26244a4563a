"""Where one resource goes, given its scores; taking a place, giving it back, and undoing a trial.

Source: Pacemaker Explained, "Constraints", "Utilization and Placement Strategy": the best score wins; then, by
strategy, the node with more capacity left, the one with fewer resources, the one where it runs, the name. Invariant:
what is counted on a node (resources, capacity) is what is on it; taking back returns exactly what was taken.
"""

from __future__ import annotations

from functools import cmp_to_key, partial

from haclusterd.model.ids import NodeName
from haclusterd.model.ocf import Role
from haclusterd.model.records import dataclass
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.assign.dependent_chains import DependentChains
from haclusterd.scheduler.assign.devices import DevicePools
from haclusterd.scheduler.assign.utilization import compare_capacities, consume, give_back, make_room
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.settings import Settings

Table = dict[NodeName, int]

STEPS_MAX = 1_000_000
STEPS_PER_RESOURCE = 100
"""How many steps all walks along colocations take in one plan, at most: so many, and so many for each resource."""


class Placing:
    """The nodes of one plan while resources are given to them."""

    def __init__(self, inventory: Inventory, settings: Settings) -> None:
        self.nodes: dict[NodeName, Node] = inventory.nodes_by_name
        self.settings = settings
        self.available: set[NodeName] = {node.name for node in inventory.nodes if node.is_available}
        """Nodes that can run resources now, scores aside."""
        self.are_any_nameless = any(node.uname is None for node in inventory.nodes)
        """Whether there are nodes without `#uname`: to colocations they are all one."""
        self.chains = DependentChains()
        self.steps_left = STEPS_MAX + STEPS_PER_RESOURCE * len(inventory.by_id)
        """How far the walks along colocations may still go."""
        self.devices = DevicePools(inventory)
        self._strategy = settings.placement_strategy
        for node in inventory.nodes:
            node.free = dict(node.capacity)

    def node_changed(self, node: Node) -> None:
        """Look again whether a node can run resources."""
        (self.available.add if node.is_available else self.available.discard)(node.name)

    def can_use(self, table: Table, name: NodeName) -> bool:
        """Tell whether a table allows a node that can run resources."""
        return name in self.available and table.get(name, -INFINITY) >= 0

    def any_usable(self, table: Table) -> bool:
        """Tell whether a table allows any node that can run resources."""
        return any(value >= 0 and name in self.available for name, value in table.items())

    def can_stay(self, node: Node) -> bool:
        """Tell whether what runs on a node may keep running there, its own scores aside."""
        return node.name in self.available and node.base_score >= 0

    @staticmethod
    def base_score(node: Node) -> int:
        """Return what a node is worth to everything: a member that is not there, or is leaving, is worth nothing.

        A remote or guest node keeps its score, since it may be there again in the same transition.
        """
        is_gone = not node.is_remote and (not node.is_online or node.is_shutting_down)
        return -INFINITY if is_gone else node.base_score

    # -- the best node ----------------------------------------------------------------------------------------------

    def choose(self, resource: Resource, prefer: Node | None) -> Node | None:
        """Return the best node; its score, or the node itself, may still turn out to forbid the resource."""
        most_free = make_room(resource, self.nodes, self.available) if self._strategy != "default" else None
        if self.devices.are_used:
            self.devices.make_room(resource, partial(self.can_use, resource.assignment.allowed))
        if not resource.assignment.allowed:
            return None
        chosen = self._chosen(resource, resource.assignment.allowed, prefer or most_free)
        if resource.assignment.addends is not None:
            self._find_winning_scores(resource, chosen, prefer or most_free)
        return chosen

    def _chosen(self, resource: Resource, allowed: Table, prefer: Node | None) -> Node:
        current = resource.current_node()
        best = self.nodes[self.best(allowed, current)]
        best_score = allowed[best.name]
        if prefer is not None and self.can_use(allowed, prefer.name) and allowed[prefer.name] >= best_score:
            return prefer
        is_as_good = current is not None and allowed.get(current.name) == best_score and self.can_stay(current)
        if is_as_good and best_score > 0 and best.name in self.available and not _is_unique_instance(resource):
            return current if current is not None else best
        return best

    def _find_winning_scores(self, resource: Resource, chosen: Node, prefer: Node | None) -> None:
        """Work out with which score each other node would have been chosen, could it be used."""
        best_score = max(resource.assignment.allowed[chosen.name], 0) if chosen.name in self.available else 0
        resource.assignment.winning_scores = {}
        known = self.available
        for name in self.nodes:
            if name != chosen.name:
                self.available = known | {name}
                wanted = best_score
                while wanted < INFINITY:
                    if self._chosen(resource, {**resource.assignment.allowed, name: wanted}, prefer).name == name:
                        break
                    wanted += 1
                resource.assignment.winning_scores[name] = wanted
        self.available = known

    def best(self, allowed: Table, preferred: Node | None) -> NodeName:
        """Return the name of the first node in the order of preference of a table that is not empty."""
        names: list[NodeName] = []
        top = -INFINITY - 1
        for name, score in allowed.items():
            value = score if name in self.available else -INFINITY
            if value > top:
                top, names = value, [name]
            elif value == top:
                names.append(name)
        if len(names) == 1:
            return names[0]
        if self._strategy == "minimal":
            return min(names)
        if self._strategy == "balanced":
            return min(names, key=cmp_to_key(partial(self._compare_balanced, preferred)))
        nodes = self.nodes
        return min(names, key=lambda name: (nodes[name].resources_assigned, nodes[name] is not preferred, name))

    def sorted_names(self, allowed: Table) -> list[NodeName]:
        """Return all names of a table, the best first."""
        rest, found = dict(allowed), []
        while rest:
            name = self.best(rest, None)
            found.append(name)
            del rest[name]
        return found

    def _compare_balanced(self, preferred: Node | None, left: NodeName, right: NodeName) -> int:
        first, second = self.nodes[left], self.nodes[right]
        by_capacity = compare_capacities(first, second)
        if by_capacity:
            return by_capacity
        keys = [(node.resources_assigned, node is not preferred, node.name) for node in (first, second)]
        return (keys[0] > keys[1]) - (keys[0] < keys[1])

    # -- taking and giving back -------------------------------------------------------------------------------------

    def take(self, resource: Resource, node: Node | None, *, is_trial: bool) -> None:
        """Place a resource where its scores allow it, or else nowhere."""
        is_usable = node is not None and (node.name in self.available or node.is_guest)
        if node is None or not is_usable or resource.assignment.allowed[node.name] < 0:
            self.take_none(resource, is_trial=is_trial)
        else:
            self.force(resource, node)

    def force(self, resource: Resource, node: Node) -> None:
        """Place a resource on a node, whatever its scores say."""
        self.unassign(resource)
        resource.assignment.is_assigned = True
        resource.assignment.node = node
        node.resources_assigned += 1
        node.assigned.append(resource)
        if self._strategy != "default":
            consume(node, resource)
        if self.devices.are_used:
            self.devices.take(resource, node)

    def take_none(self, resource: Resource, *, is_trial: bool = False) -> None:
        """Place a resource, and all inside it, nowhere: it will be stopped, unless this is only tried."""
        for child in resource.children:
            self.take_none(child, is_trial=is_trial)
        self.unassign(resource)
        resource.assignment.is_assigned = True
        if not is_trial and resource.variant is Variant.PRIMITIVE:
            resource.assignment.next_role = Role.STOPPED

    def unassign(self, resource: Resource) -> None:
        """Take a resource, and all inside it, from where it was placed."""
        for child in resource.children:
            self.unassign(child)
        resource.assignment.is_assigned = False
        node, resource.assignment.node = resource.assignment.node, None
        if node is not None and resource.variant is Variant.PRIMITIVE:
            node.resources_assigned -= 1
            node.assigned.remove(resource)
            if self._strategy != "default":
                give_back(node, resource)
            if self.devices.are_used:
                self.devices.give_back(resource, node)


def _is_unique_instance(resource: Resource) -> bool:
    parent = resource.parent
    return parent is not None and parent.variant is Variant.CLONE and parent.definition.is_unique


@dataclass(frozen=True, slots=True)
class SavedAssignment:
    """How a resource and all inside it were before an assignment that is only tried."""

    resource: Resource
    allowed: Table
    next_role: Role
    banned_by: dict[NodeName, str]
    addends: dict[NodeName, list[tuple[int, str]]] | None
    inside: tuple[SavedAssignment, ...]

    @staticmethod
    def begin(resource: Resource) -> SavedAssignment:
        """Remember how things are."""
        addends = resource.assignment.addends
        return SavedAssignment(
            resource,
            dict(resource.assignment.allowed),
            resource.assignment.next_role,
            dict(resource.assignment.banned_by),
            {name: list(items) for name, items in addends.items()} if addends is not None else None,
            tuple(SavedAssignment.begin(child) for child in resource.children),
        )

    def undo(self) -> None:
        """Bring the scores back, as often as wanted; places are given back by `Placing.unassign`."""
        self.resource.assignment.allowed = dict(self.allowed)
        self.resource.assignment.next_role = self.next_role
        self.resource.assignment.banned_by = dict(self.banned_by)
        if self.addends is not None:
            self.resource.assignment.addends = {name: list(items) for name, items in self.addends.items()}
        for each in self.inside:
            each.undo()
