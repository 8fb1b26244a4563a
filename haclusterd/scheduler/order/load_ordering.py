"""Phase: where nodes have limits, what comes to a node waits until what leaves it is gone.

Source: Pacemaker Explained, "Utilization and Placement Strategy".
"""

from collections.abc import Iterator

from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.flags import need
from haclusterd.scheduler.actions.ordering import OrderingTemplate
from haclusterd.scheduler.model.entities import Action, Node, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.name_order import name_order
from haclusterd.scheduler.model.relation_flags import IF_ON_SAME_NODE_OR_TARGET
from haclusterd.scheduler.model.tasks import MIGRATE_TO, START, STOP

LOAD_MARK = "load_stopped_"


def load_templates(resource: Resource, inventory: Inventory, table: ActionTable) -> Iterator[OrderingTemplate]:
    """Yield how a primitive that uses something of its node waits, and lets others wait."""
    names = sorted(resource.assignment.allowed, key=name_order)
    marks = [_mark(inventory.nodes_by_name[name], table) for name in names]
    for node in resource.found.active_nodes:
        mark = _mark(node, table)
        yield OrderingTemplate(resource, STOP, None, "", IF_ON_SAME_NODE_OR_TARGET, then_action=mark)
    for mark in marks:
        for task in (START, MIGRATE_TO):
            yield OrderingTemplate(None, "", resource, task, IF_ON_SAME_NODE_OR_TARGET, first_action=mark)


def _mark(node: Node, table: ActionTable) -> Action:
    mark = table.make_mark(f"{LOAD_MARK}{node.name}", node)
    need(mark, f"what leaves {node.name} has left")
    return mark
