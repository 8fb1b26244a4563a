"""Which fence devices are configured for which node.

One answer for everybody: the scheduler (is recovery possible), the fencer (which devices to try), the status line (NO
FAILOVER). Whether a device works is proof, and kept elsewhere; whether it lists the node only when asked
(`pcmk_host_check=dynamic-list`) is found out when it is asked.
"""

import re
from collections.abc import Iterable

from haclusterd.model.configuration import Configuration, Primitive, effective
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.properties import meta_values

_SEPARATORS = re.compile(r"[\s,;]+")


def usable_devices(configuration: Configuration, node: NodeName) -> tuple[ResourceId, ...]:
    """Return the devices that may fence a node, in the order in which they are to be tried.

    A device that the administrator stopped (`target-role=Stopped`) is not used (Pacemaker Explained, "Fencing").
    """
    parents = configuration.parents()
    return tuple(
        device.id
        for device in configuration.fence_devices()
        if _is_enabled(configuration, device, parents.get(device.id)) and _may_fence(device, node)
    )


def usable_devices_by_node(
    configuration: Configuration, nodes: Iterable[NodeName]
) -> dict[NodeName, tuple[ResourceId, ...]]:
    """Return the usable devices of many nodes."""
    if next(configuration.fence_devices(), None) is None:
        return dict.fromkeys(nodes, ())
    return {node: usable_devices(configuration, node) for node in nodes}


def _is_enabled(configuration: Configuration, device: Primitive, parent: ResourceId | None) -> bool:
    group = configuration.resources.get(parent) if parent is not None else None
    inherited = effective(group.meta) if group is not None else {}
    meta = meta_values(configuration, own=effective(device.meta), parent=inherited)
    return meta.get("target-role", "").strip().lower() != "stopped"


def _may_fence(device: Primitive, node: NodeName) -> bool:
    """Judge by `pcmk_host_list` and `pcmk_host_map`; a device with neither, or that is not to be asked, fences all."""
    parameters = effective(device.parameters)
    listed = _words(parameters.get("pcmk_host_list", ""))
    mapped = _words(parameters.get("pcmk_host_map", ""))
    hosts = {word.lower() for word in listed} | {word.partition(":")[0].partition("=")[0].lower() for word in mapped}
    if not hosts or parameters.get("pcmk_host_check") == "none":
        return True
    return node.lower() in hosts


def _words(text: str) -> list[str]:
    return [word for word in _SEPARATORS.split(text) if word]
