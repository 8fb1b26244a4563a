"""The disks of fence devices that leave messages on them for sbd."""

from collections.abc import Mapping

from haclusterd.model.configuration import Primitive, effective

DISK_PARAMETERS: Mapping[str, tuple[str, str]] = {"fence_sbd": ("devices", ","), "external/sbd": ("sbd_device", ";")}
"""By the type of the agent: the parameter that names the disks, and what separates them."""


def disks_of(device: Primitive) -> tuple[str, ...]:
    """Return the disks that a device names, each once; none when its agent uses none, or takes them from a file."""
    name, separator = DISK_PARAMETERS.get(device.agent.type, ("", ","))
    written = effective(device.parameters).get(name, "")
    return tuple(dict.fromkeys(disk.strip() for disk in written.split(separator) if disk.strip()))
