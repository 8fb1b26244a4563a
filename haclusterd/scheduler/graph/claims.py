"""Phase: which devices each placed resource gets (docs/design: "GPUs are devices, not node weather").

The claim is chosen together with the place and travels in the start order, so that it is committed before anything
uses the device. A cluster without an inventory of devices has no claims.
"""

from collections.abc import Mapping

from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.scheduler.model.entities import Inventory

Claims = Mapping[tuple[ResourceId, NodeName], tuple[str, ...]]


def claim_devices(inventory: Inventory) -> Claims:
    """Return the devices of each (resource, node): those that a resource holds where it is and stays.

    Nothing offers devices yet that could be claimed again: the inventory is empty.
    """
    claims: dict[tuple[ResourceId, NodeName], tuple[str, ...]] = {}
    for resource in inventory.primitives():
        for name, history in resource.found.histories.items():
            if history.devices and resource.assignment.node is not None and resource.assignment.node.name == name:
                claims[(resource.id, name)] = history.devices
    return claims
