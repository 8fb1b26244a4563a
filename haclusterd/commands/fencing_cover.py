"""Which fence device covers which node, and how far that is proven (safety.md §5)."""

from haclusterd.model.cluster import Cib
from haclusterd.model.fencing import DeviceProof, ProofState
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.watchdog import WATCHDOG
from haclusterd.scheduler.fencing_capability import usable_devices, usable_devices_by_node, watchdog_levels


def devices_for(cib: Cib, node: NodeName) -> tuple[ResourceId, ...]:
    """Return the enabled devices that are configured for a node, and last its own watchdog, where that counts."""
    return (*usable_devices(cib.configuration, node), *_watchdog(cib, node))


def _watchdog(cib: Cib, node: NodeName) -> tuple[ResourceId, ...]:
    return tuple(device for level in watchdog_levels(cib.configuration, cib.status.nodes.get(node)) for device in level)


def weak_watchdogs(cib: Cib) -> dict[NodeName, str]:
    """Return the nodes that nothing but a weak watchdog silences, and why it is weak."""
    found = {}
    for name, member in sorted(cib.members.items()):
        status = cib.status.nodes.get(name)
        if member.is_witness or status is None or status.watchdog is None or not status.watchdog.weakness:
            continue
        if devices_for(cib, name) == (WATCHDOG,):
            found[name] = f"{status.watchdog.identity}: {status.watchdog.weakness}"
    return found


def nodes_without_device(cib: Cib) -> tuple[NodeName, ...]:
    """Return the members that run resources and that no device covers."""
    names = [name for name, member in sorted(cib.members.items()) if not member.is_witness]
    devices = usable_devices_by_node(cib.configuration, names)
    return tuple(name for name in names if not devices[name] and not _watchdog(cib, name))


def proof(cib: Cib, device: ResourceId, node: NodeName) -> DeviceProof | None:
    """Return the newest evidence about a device and a node; None: there is none."""
    return cib.status.proofs.get(f"{device}/{node}")


def is_proven(cib: Cib, node: NodeName) -> bool:
    """Tell whether some device was seen to fence this node."""
    found = (proof(cib, device, node) for device in devices_for(cib, node))
    return any(each is not None and each.state is ProofState.TESTED for each in found)


def is_enabled(cib: Cib) -> bool:
    """Tell whether the cluster fences at all."""
    return ClusterProperties(cib.configuration).boolean("fencing-enabled")
