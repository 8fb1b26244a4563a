"""Phase: give every resource its node, in the order of priority, then of the document.

A resource that depends on another one's place has that one assigned first; a group's members are assigned one after the
other. The rules for one primitive are in `assign_primitive`, for a group in `assign_group`.
"""

from haclusterd.scheduler.assign_primitive import Assignment
from haclusterd.scheduler.entities import Inventory
from haclusterd.scheduler.settings import Settings


def assign_all(inventory: Inventory, settings: Settings) -> None:
    """Assign every resource; afterwards `assigned` of each is final."""
    has_device = any(resource.is_fence_device for resource in inventory.by_id.values())
    is_all_unmanaged = settings.options.is_pacemaker_compatible and settings.is_fencing_enabled and not has_device
    assignment = Assignment(inventory.nodes_by_name, settings, is_all_unmanaged=is_all_unmanaged)
    for top in inventory.tops:
        assignment.assign(top)
