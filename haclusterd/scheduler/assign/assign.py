"""Phase: give every resource its node, in the order of priority, then of the document.

Connections to remote nodes come first, so that it is known which of those can be used. When capacities count, resources
of one priority are first put into the order of what they lose by not being where they are (Pacemaker Explained,
"Utilization and Placement Strategy", "Allocation Details").
"""

from functools import cmp_to_key

from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.assign.assignment import Assigner
from haclusterd.scheduler.assign.neighbour_scores import all_scores
from haclusterd.scheduler.assign.placing import Placing, Table
from haclusterd.scheduler.model.entities import Inventory, Resource
from haclusterd.scheduler.model.settings import Settings


def assign_all(inventory: Inventory, settings: Settings) -> None:
    """Assign every resource; afterwards `assigned` of each is final."""
    has_device = settings.is_fence_device_configured
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
