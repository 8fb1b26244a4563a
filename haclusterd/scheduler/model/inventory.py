"""All resources and nodes of one plan, and how they are found by name."""

from __future__ import annotations

from collections.abc import Callable

from haclusterd.model.configuration import Primitive
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.name_order import name_order


class Inventory:
    """All resources of one plan: those at the top in the order in which they are decided upon, and by id.

    `by_id` also holds the instances of clones (`web:0`), and those only: a primitive that is cloned is not in it by its
    bare id.
    """

    __slots__ = (
        "_leaves", "by_history_id", "by_id", "expired_locks", "make_instance", "make_primitive", "nodes",
        "nodes_by_name", "template_users", "tops", "warnings",
    )  # fmt: skip

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.nodes = nodes
        self.nodes_by_name: dict[NodeName, Node] = {node.name: node for node in nodes}
        self.tops: list[Resource] = []
        self.by_id: dict[ResourceId, Resource] = {}
        self.template_users: dict[ResourceId, list[ResourceId]] = {}
        """The resources made from each template, in document order."""
        self.by_history_id: dict[ResourceId, Resource] = {}
        """The first resource that is recorded under a name that is not its id."""
        self.make_instance: Callable[[Resource], Resource] | None = None
        """Makes one more instance of a clone than it should have."""
        self.make_primitive: Callable[[Primitive], Resource | None] | None = None
        """Makes a resource at the top of something that is not configured any more."""
        self.expired_locks: list[tuple[Resource, Node]] = []
        """Records of shutdown locks that hold no longer."""
        self.warnings: list[str] = []
        """What was left out because it makes no sense."""
        self._leaves: list[Resource] = []

    def add_top(self, resource: Resource) -> None:
        """Add a resource that no other one contains, last."""
        self.by_id[resource.id] = resource
        self.tops.append(resource)
        self._leaves = []

    def add_node(self, node: Node) -> None:
        """Add a remote or guest node."""
        self.nodes = tuple(sorted((*self.nodes, node), key=lambda each: name_order(each.name)))
        self.nodes_by_name[node.name] = node

    def forget_leaves(self) -> None:
        """Make `primitives` look again, after something was added inside a resource."""
        self._leaves = []

    def sort(self) -> None:
        """Bring the resources into the order of decision: higher priority first, else as they are."""
        self.reorder(sorted(self.tops, key=lambda resource: -resource.definition.priority))

    def reorder(self, tops: list[Resource]) -> None:
        """Bring the resources into another order of decision."""
        self.tops = tops
        self._leaves = []

    def find(self, name: str) -> Resource | None:
        """Return what a constraint means by a name: a resource, or the clone whose instances are recorded under it.

        A primitive that is cloned is known by its bare id only once a node has a record of it.
        """
        found = self.by_id.get(ResourceId(name))
        if found is not None:
            return found
        recorded = self.by_history_id.get(ResourceId(name))
        return recorded.top if recorded is not None and recorded.found.history_id == name else None

    def primitives(self) -> list[Resource]:
        """Return all primitives in the order of decision."""
        if not self._leaves:
            for top in self.tops:
                self._leaves.extend(top.leaves())
        return self._leaves
