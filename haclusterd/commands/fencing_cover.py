"""Which fence device covers which node, and how far that is proven (safety.md §5)."""

import re

from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Primitive, effective
from haclusterd.model.fencing import DeviceProof, ProofState
from haclusterd.model.ids import NodeName
from haclusterd.model.properties import ClusterProperties

_SEPARATOR = re.compile(r"[\s,;]+")


def covers(device: Primitive, node: NodeName) -> bool:
    """Tell whether a device is configured for a node.

    A device with neither `pcmk_host_list` nor `pcmk_host_map` says itself which hosts it knows; it counts for all.
    """
    parameters = effective(device.parameters)
    listed = _SEPARATOR.split(parameters.get("pcmk_host_list", "").strip())
    mapped = re.split(r"[\s;]+", parameters.get("pcmk_host_map", "").strip())
    names = {name for name in listed if name} | {pair.partition(":")[0] for pair in mapped if pair}
    return not names or node in names


def devices_for(cib: Cib, node: NodeName) -> tuple[Primitive, ...]:
    """Return the enabled devices that are configured for a node."""
    return tuple(
        device
        for device in cib.configuration.fence_devices()
        if covers(device, node) and effective(device.meta).get("target-role", "Started").lower() != "stopped"
    )


def nodes_without_device(cib: Cib) -> tuple[NodeName, ...]:
    """Return the members that run resources and that no device covers."""
    return tuple(
        name
        for name, member in sorted(cib.members.items())
        if not member.is_witness and not devices_for(cib, name)
    )


def proof(cib: Cib, device: Primitive, node: NodeName) -> DeviceProof | None:
    """Return the newest evidence about a device and a node; None: there is none."""
    return cib.status.proofs.get(f"{device.id}/{node}")


def is_proven(cib: Cib, node: NodeName) -> bool:
    """Tell whether some device was seen to fence this node."""
    found = (proof(cib, device, node) for device in devices_for(cib, node))
    return any(each is not None and each.state is ProofState.TESTED for each in found)


def is_enabled(cib: Cib) -> bool:
    """Tell whether the cluster fences at all."""
    return ClusterProperties(cib.configuration).boolean("fencing-enabled")
