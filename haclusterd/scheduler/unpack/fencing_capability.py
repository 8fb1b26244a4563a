"""Which fence devices are configured for which node.

One answer for everybody: the scheduler (is recovery possible), the fencer (which devices to try), the status line (NO
FAILOVER). Whether a device works is proof, and kept in the CIB's status; whether it lists the node only when asked
(`pcmk_host_check=dynamic-list`) is found out when it is asked.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from haclusterd.model.cluster import NodeStatus
from haclusterd.model.configuration import Configuration, FencingLevel, Primitive, effective
from haclusterd.model.fence_parameters import host_check, is_plugin
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.patterns import compile_pattern
from haclusterd.model.properties import ClusterProperties, meta_values
from haclusterd.model.templates import fence_devices
from haclusterd.model.watchdog import WATCHDOG

_SEPARATORS = re.compile(r"[\s,;]+")
_NAMES = re.compile(r"[\s,;:=]+")
"""Between the names in a plugin's own list, as `n1:vm1,n2:vm2`."""


def usable_devices(configuration: Configuration, node: NodeName) -> tuple[ResourceId, ...]:
    """Return the devices that may fence a node, in the order in which they are to be tried."""
    return usable_devices_by_node(configuration, (node,))[node]


def usable_devices_by_node(
    configuration: Configuration, nodes: Iterable[NodeName]
) -> dict[NodeName, tuple[ResourceId, ...]]:
    """Return the usable devices of many nodes."""
    enabled = _enabled_devices(configuration)
    found: dict[NodeName, tuple[ResourceId, ...]] = {}
    for node in nodes:
        levels = _levels(configuration, enabled, node, _attributes_of(configuration, node)) if enabled else ()
        found[node] = tuple(dict.fromkeys(device for level in levels for device in level))
    return found


def fencing_levels(
    configuration: Configuration, node: NodeName, attributes: Mapping[str, str] | None = None
) -> tuple[tuple[ResourceId, ...], ...]:
    """Return what fences a node, in the order in which it is tried: of each level all devices must succeed.

    Without a topology for the node each usable device is a level of its own. A device that the administrator stopped
    (`target-role=Stopped`) is not used; a level that names one, or one that is missing, cannot succeed and is left out
    (Pacemaker Explained, "Fencing Levels"). `attributes` are the node's, for levels by attribute.
    """
    return _levels(configuration, _enabled_devices(configuration), node, attributes or {})


def watchdog_levels(configuration: Configuration, status: NodeStatus | None) -> tuple[tuple[ResourceId, ...], ...]:
    """Return the last level of a node whose own watchdog silences it: power fencing comes first, and waits less."""
    is_offered = ClusterProperties(configuration).boolean("watchdog-fencing")
    return ((WATCHDOG,),) if is_offered and status is not None and status.watchdog is not None else ()


def _enabled_devices(configuration: Configuration) -> list[Primitive]:
    devices = list(fence_devices(configuration))
    if not devices:
        return []
    parents = configuration.parents()
    return [device for device in devices if _is_enabled(configuration, device, parents.get(device.id))]


def _levels(
    configuration: Configuration, enabled: Sequence[Primitive], node: NodeName, attributes: Mapping[str, str]
) -> tuple[tuple[ResourceId, ...], ...]:
    levels = [level for level in configuration.fencing_levels if _is_for(level, node, attributes)]
    if not levels:
        usable = [device for device in enabled if _may_fence(device, node)]
        return tuple((device.id,) for device in sorted(usable, key=lambda device: _is_doubtful(device, node)))
    by_index: dict[int, tuple[ResourceId, ...]] = {}
    for level in levels:
        by_index[level.index] = tuple(dict.fromkeys((*by_index.get(level.index, ()), *level.devices)))
    names = {device.id for device in enabled}
    return tuple(devices for _, devices in sorted(by_index.items()) if devices and names.issuperset(devices))


def _attributes_of(configuration: Configuration, node: NodeName) -> Mapping[str, str]:
    entry = configuration.nodes.get(node)
    return effective(entry.attributes) if entry is not None else {}


def _is_for(level: FencingLevel, node: NodeName, attributes: Mapping[str, str]) -> bool:
    if level.target:
        return level.target.lower() == node.lower()
    if level.target_pattern:
        try:
            return compile_pattern(level.target_pattern, is_case_ignored=True).search(node) is not None
        except ValueError:
            return False
    return bool(level.target_attribute) and attributes.get(level.target_attribute) == level.target_value


def unfencing_devices(configuration: Configuration, node: NodeName) -> tuple[ResourceId, ...]:
    """Return the devices that must let a node in (`on`) before it runs anything: those that say `provides=unfencing`.

    All of them must, whatever a topology says (Pacemaker Explained, "Unfencing").
    """
    return tuple(
        device.id
        for device in _enabled_devices(configuration)
        if meta_values(configuration, own=effective(device.meta), parent={}).get("provides") == "unfencing"
        and _may_fence(device, node)
    )


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
    if not hosts or parameters.get("pcmk_host_check") in ("none", "dynamic-list", "status"):
        return True
    return node.lower() in hosts


def _is_doubtful(device: Primitive, node: NodeName) -> bool:
    """Return whether a plugin of cluster-glue, which is asked for its hosts, seems to be for other nodes.

    Often each node has its own device, and only a parameter of the plugin says which (`hostname=n1`): to ask one after
    the other would delay each fencing. It is a guess, so that such a device is tried last, and not left out.
    """
    parameters = effective(device.parameters)
    if not is_plugin(device.agent.type) or host_check(device.agent.type, parameters) != "dynamic-list":
        return False
    return all(node.lower() not in _NAMES.split(value.lower()) for value in parameters.values())


def _words(text: str) -> list[str]:
    return [word for word in _SEPARATORS.split(text) if word]
