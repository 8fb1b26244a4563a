"""Whose history it is: which resource is meant by a name that a node recorded something under.

Instances of an anonymous clone are recorded under the bare name of what is cloned, so it is chosen here which instance
a record belongs to; the choice is the same for all that one group of a clone has on one node. What belongs to nothing
that is configured becomes a removed resource. Source: Pacemaker Explained, "Clones", "Configuration Options".
"""

from collections.abc import Mapping

from haclusterd.model.configuration import Primitive
from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.model.records import replace
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.definition import Needs, Variant
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.unpack.failures import bare_name


class HistoryOwners:
    """Finds the resources of histories, and makes those that are missing."""

    def __init__(self, inventory: Inventory, settings: Settings) -> None:
        self._inventory = inventory
        self._settings = settings

    def find(self, name: ResourceId, node: Node) -> Resource | None:
        """Return the primitive that a node recorded something of under that name; None when it is not configured.

        An instance that a clone has too many is found too: it is marked as removed. What a bundle holds runs in its
        containers; recorded on any other node, as of a container that was taken away, it is not configured.
        """
        by_id = self._inventory.by_id
        found = by_id.get(name) or self._inventory.by_history_id.get(name)
        if found is None:
            found = by_id.get(ResourceId(f"{bare_name(name)}:0"))
            if found is None or not found.top.is_anonymous_clone:
                return None
        if found.variant is not Variant.PRIMITIVE:
            return None
        clone = found.top
        if clone.is_anonymous_clone and self._is_of_unique(name, clone):
            return None
        if clone.is_anonymous_clone:
            found = self._instance(clone, found.base_id, node)
            if found is None:
                return None
        if name not in (found.id, found.found.history_id):
            found.found.history_id = name
            self._inventory.by_history_id.setdefault(name, found)
        return found

    def _is_of_unique(self, name: ResourceId, clone: Resource) -> bool:
        """Tell whether a name is one from when the clone was unique: its copy must be stopped under that name.

        Pacemaker takes it for an instance's, since it once recorded anonymous ones like that.
        """
        is_numbered = ":" in name and clone.parent is None
        return is_numbered and not self._settings.options.is_pacemaker_compatible

    def find_probed(self, name: ResourceId, node: Node) -> Resource | None:
        """Return which resource a name means where no history is read.

        Of a clone it is the instance of which something runs on this node, as of a group whose other members do;
        else one that is not in use.
        """
        by_id = self._inventory.by_id
        found = by_id.get(name) or by_id.get(ResourceId(f"{name}:0"))
        if found is None or found.variant is not Variant.PRIMITIVE:
            # What is a clone or a group by now may have been a primitive when it was probed.
            return None
        if not found.top.is_anonymous_clone:
            return found if found.id == name else None
        if self._is_of_unique(name, found.top):
            return None
        instances, chosen = found.top.children, None
        if instances[0].variant is Variant.GROUP:
            chosen = next((child for child in instances if _place(child) is node), None)
        chosen = chosen or next((child for child in instances if _place(child) is None), instances[0])
        return _member(chosen, found.base_id)

    def _instance(self, clone: Resource, base: ResourceId, node: Node) -> Resource | None:
        bundle = clone.parent
        if bundle is not None:
            return next((replica.child for replica in bundle.replicas if replica.node is node), None)
        chosen = self._choose(clone, base, node)
        if chosen is not None and self._is_to_discard(chosen, clone, node):
            chosen = None
        if chosen is None:
            assert self._inventory.make_instance is not None, "the builder of a clone can make instances"
            chosen = _member(self._inventory.make_instance(clone), base)
        return chosen

    def _choose(self, clone: Resource, base: ResourceId, node: Node) -> Resource | None:
        """Return the instance that is on this node already, else the first that is nowhere."""
        inactive: Resource | None = None
        for child in clone.children:
            place = _place(child)
            if place is None:
                if inactive is None:
                    member = _member(child, base)
                    is_free = member.found.pending_node is None or member.found.pending_node is node
                    inactive = member if is_free and not child.is_blocked else None
            elif place is node:
                member = _member(child, base)
                return None if member.found.active_nodes else member
        return inactive

    def _is_to_discard(self, chosen: Resource, clone: Resource, node: Node) -> bool:
        """An instance is not spent on a node that is away, unless there is one for each or fencing must come first."""
        is_away = not node.is_online or node.is_unclean
        is_everywhere = clone.definition.clone_max == len(self._inventory.nodes)
        return is_away and not node.is_guest and chosen.definition.needs is not Needs.FENCING and not is_everywhere

    def removed(
        self, name: ResourceId, agent: AgentReference, parameters: Mapping[str, str], *, is_launched: bool = False
    ) -> Resource | None:
        """Make a resource of what is only known from its history: it is stopped, unless it is to be left alone."""
        inventory, settings = self._inventory, self._settings
        assert inventory.make_primitive is not None, "who unpacked the resources can make primitives"
        of_same_name = inventory.by_id.get(name)
        resource = inventory.make_primitive(Primitive(name, agent))
        if resource is None:
            return None
        resource.definition = replace(resource.definition, parameters=parameters)
        resource.found.is_removed = True
        resource.found.is_removed_launched = is_launched
        if not settings.stops_removed:
            resource.found.is_managed = False
        inventory.add_top(resource)
        if of_same_name is not None:
            inventory.by_id[name] = of_same_name
        elif self._is_in_bundle(name):
            del inventory.by_id[name]  # the next record of it is looked for in the bundle again
        for node in inventory.nodes if settings.stops_removed else ():
            resource.found.scores.append((node.name, -INFINITY, "it is no longer configured"))
        return resource

    def _is_in_bundle(self, name: ResourceId) -> bool:
        instance = self._inventory.by_id.get(ResourceId(f"{name}:0"))
        return instance is not None and instance.top.parent is not None


def _place(child: Resource) -> Node | None:
    """Return where an instance is, or is about to be."""
    if child.variant is Variant.PRIMITIVE:
        return child.found.active_nodes[0] if child.found.active_nodes else child.found.pending_node
    for leaf in child.leaves():
        if leaf.found.active_nodes:
            return leaf.found.active_nodes[0]
        if leaf.found.pending_node is not None:
            return leaf.found.pending_node
    return None


def _member(child: Resource, base: ResourceId) -> Resource:
    """Return the primitive of an instance: itself, or the member of that name."""
    return next(leaf for leaf in child.leaves() if leaf.base_id == base)
