"""Which nodes a fence device serves, and what it calls them, read from its parameters apart from the fencer.

Source: Pacemaker Explained, "Fencing": `pcmk_host_list`, `pcmk_host_map`, `pcmk_host_check`, `pcmk_host_argument`.
"""

import re

from haclusterd.model.configuration import Configuration, Primitive, effective
from haclusterd.model.ids import NodeName

ASKED = ("dynamic-list", "status", "none")


def outlets(device: Primitive) -> dict[str, str]:
    """Return what the device calls nodes, by their names."""
    text = effective(device.parameters).get("pcmk_host_map", "")
    pairs = (re.split("[:=]", item, maxsplit=1) for item in re.split(r"[;\s]+", text) if item)
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def name_of(node: NodeName, device: Primitive) -> str:
    """Return what a device is to call a node."""
    is_unnamed = effective(device.parameters).get("pcmk_host_argument") == "none"
    return str(node) if is_unnamed else outlets(device).get(node, str(node))


def served_by(device: Primitive) -> tuple[str, ...]:
    """Return the nodes that are listed for a device, in one way or the other; empty: it is for all, or is asked."""
    parameters = effective(device.parameters)
    if parameters.get("pcmk_host_check") in ASKED:
        return ()
    return tuple(dict.fromkeys((*parameters.get("pcmk_host_list", "").split(), *outlets(device))))


def may_serve(configuration: Configuration, device: Primitive, node: NodeName) -> bool:
    """Tell whether a device may be asked about a node: it is not listed for others alone, or a topology names it."""
    listed = served_by(device)
    has_levels = any(level.target in ("", node) for level in configuration.fencing_levels)
    return has_levels or not listed or node in listed
