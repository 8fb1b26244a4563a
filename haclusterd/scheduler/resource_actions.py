"""Phase: all actions of all resources, members before their group, and the orders they imply."""

from collections.abc import Iterable

from haclusterd.scheduler.actions import ActionTable
from haclusterd.scheduler.configuration_changes import Cancellation
from haclusterd.scheduler.entities import Inventory, Variant
from haclusterd.scheduler.group_actions import create_group_actions, group_templates
from haclusterd.scheduler.ordering import Template, relate_own_actions
from haclusterd.scheduler.primitive_actions import create_actions
from haclusterd.scheduler.recurring import cancel_monitors, create_monitors
from haclusterd.scheduler.settings import Settings


def create_resource_actions(
    inventory: Inventory, cancellations: Iterable[Cancellation], table: ActionTable, settings: Settings
) -> None:
    """Create what each resource may have to do."""
    for top in inventory.tops:
        for leaf in top.children or (top,):
            create_actions(leaf, table)
            create_monitors(leaf, inventory.nodes, table, settings)
        if top.variant is Variant.GROUP:
            create_group_actions(top, table)
    cancel_monitors(cancellations, table)


def relate_internally(inventory: Inventory, table: ActionTable) -> None:
    """Put each primitive's own actions in order."""
    for leaf in inventory.primitives():
        relate_own_actions(leaf, table)


def internal_templates(inventory: Inventory) -> list[Template]:
    """Return the orderings inside groups."""
    return [template for top in inventory.tops if top.variant is Variant.GROUP for template in group_templates(top)]
