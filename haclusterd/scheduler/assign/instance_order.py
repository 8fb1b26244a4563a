"""In which order the instances of a clone, or the containers of a bundle, are given their nodes.

Those that are well where they are come first, so that they need not move for others.
"""

from functools import cmp_to_key

from haclusterd.model.ids import NodeName
from haclusterd.scheduler.assign.neighbour_scores import NeighbourScores
from haclusterd.scheduler.assign.placing import Placing
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.scores.colocation_lists import this_with, with_this
from haclusterd.scheduler.scores.influence import has_influence

CANNOT_RUN = " cannot run resources now"
"""How the words end for a node that no instance is given to."""


class InstanceOrder:
    """Compares instances of one collective resource, as they are now."""

    def __init__(self, placing: Placing) -> None:
        self._placing = placing
        self._neighbours: dict[int, int] = {}

    def sorted(self, instances: list[Resource]) -> list[Resource]:
        """Return instances in their order."""
        return sorted(instances, key=cmp_to_key(self.compare))

    def compare(self, left: Resource, right: Resource) -> int:
        """Negative when the left one comes first."""
        active, others = len(left.found.active_nodes), len(right.found.active_nodes)
        if active and others and active != others:
            return active - others
        here, there = left.current_node(), right.current_node()
        is_left_right = here is None or _is_allowed(left, here), there is None or _is_allowed(right, there)
        if is_left_right[0] is not is_left_right[1]:
            return -1 if is_left_right[0] else 1
        if not is_left_right[0]:
            here = there = None
        if left.assignment.priority != right.assignment.priority:
            return -1 if left.assignment.priority > right.assignment.priority else 1
        if here is None and there is None:
            return 0
        if here is None or there is None:
            return 1 if here is None else -1
        return self._compare_active(left, here, right, there)

    def _compare_active(self, left: Resource, here: Node, right: Resource, there: Node) -> int:
        is_usable = here.name in self._placing.available, there.name in self._placing.available
        if is_usable[0] is not is_usable[1]:
            return -1 if is_usable[0] else 1
        is_known = _has_entry(left, here), _has_entry(right, there)
        if is_known[0] is not is_known[1]:
            return -1 if is_known[0] else 1
        if not is_known[0]:
            return 0
        counts = _count(left, here) - _count(right, there)
        if counts:
            return counts
        failed = has_failed(left), has_failed(right)
        if failed[0] is not failed[1]:
            return 1 if failed[0] else -1
        pulled = self._by_neighbours(left, here.name) - self._by_neighbours(right, there.name)
        if pulled:
            return -1 if pulled > 0 else 1
        return instance_number(left) - instance_number(right)

    def _by_neighbours(self, instance: Resource, node: NodeName) -> int:
        """What neighbours think of the instance being where it is."""
        known = self._neighbours.get(id(instance))
        if known is not None:
            return known
        table = {node: self._placing.base_score(self._placing.nodes[node])}
        neighbours = NeighbourScores(self._placing, instance, table, follows_primaries=True)
        for item in this_with(instance):
            neighbours.add(item.primary, item, is_dropped_if_useless=False)
        neighbours = NeighbourScores(self._placing, instance, table, is_nonnegative=True)
        for item in with_this(instance):
            if has_influence(item, instance):
                neighbours.add(item.dependent, item, is_dropped_if_useless=False)
        self._neighbours[id(instance)] = table[node]
        return table[node]


def instance_number(instance: Resource) -> int:
    """Return an instance's number: of a bundle's container the one of its replica."""
    if instance.number is not None:
        return instance.number
    tail = instance.id.rpartition("-")[2]
    return int(tail) if tail.isdecimal() else 0


def _is_allowed(instance: Resource, node: Node) -> bool:
    """Tell whether an instance may be where it is, as it and its clone say; a container's bundle has no say.

    An instance itself may not be where it failed to stop.
    """
    is_container = instance.definition.is_replica_container
    judges = [instance] if is_container or instance.parent is None else [instance, instance.parent]
    return all(judge.assignment.allowed.get(node.name, -1) >= 0 for judge in judges)


def _has_entry(instance: Resource, node: Node) -> bool:
    return instance.parent is not None and node.name in instance.parent.assignment.allowed


def _count(instance: Resource, node: Node) -> int:
    return instance.parent.assignment.counts.get(node.name, 0) if instance.parent is not None else 0


def has_failed(instance: Resource) -> bool:
    """Tell whether an instance, or something in it, has failed."""
    return instance.found.is_failed or any(has_failed(child) for child in instance.children)
