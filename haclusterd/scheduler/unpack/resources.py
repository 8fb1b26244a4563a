"""Phase: the resources, unpacked from the configuration: what contains what, how many of each, what is said of them.

Templates are expanded, clones and bundles have their instances, remote and guest nodes their connections. What makes no
sense (a clone of nothing, a child in two parents) is left out with a warning in the inventory. Source: Pacemaker
Explained, "Resources", "Advanced Resource Types".
"""

from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Bundle, Clone, Group
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.unpack.bundle_resources import build_bundle
from haclusterd.scheduler.unpack.remote_nodes import discover_remote_nodes
from haclusterd.scheduler.unpack.resource_builder import ResourceBuilder


def unpack_resources(cib: Cib, nodes: tuple[Node, ...], settings: Settings) -> Inventory:
    """Make the inventory: resources in document order, those of higher priority first."""
    inventory = Inventory(nodes)
    connections = discover_remote_nodes(cib, inventory, settings)
    builder = ResourceBuilder(cib, inventory, settings)
    inventory.make_instance = builder.add_instance
    inventory.make_primitive = builder.removed
    for item in cib.configuration.resources.values():
        if builder.is_contained(item):
            continue
        match item:
            case Bundle():
                made = build_bundle(item, builder)
            case Clone():
                made = builder.clone(item)
            case Group():
                made = builder.group(item)
            case _:
                made = builder.primitive(item)
        if made is not None:
            inventory.add_top(made)
    for connection in connections:
        made = builder.primitive(connection)
        if made is not None:
            inventory.add_top(made)
    builder.warn_of_unreached()
    _link_launchers(inventory)
    inventory.sort()
    return inventory


def _link_launchers(inventory: Inventory) -> None:
    """A primitive whose meta-attribute `container` names another resource runs inside that one."""
    for resource in inventory.primitives():
        name = resource.definition.meta.get("container")
        launcher = inventory.find(name) if name is not None and name != resource.id else None
        if launcher is not None and resource.launcher is None:
            _launch(launcher, resource)


def _launch(launcher: Resource, launched: Resource) -> None:
    launched.launcher = launcher
    launcher.launched.append(launched)
