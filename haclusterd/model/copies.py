"""How many nodes may hold one resource at a time, and in the promoted role (Pacemaker Explained, "Clone Options").

The name is the one under which nodes record it: an anonymous clone's instances share their primitive's name, one on
each node; an instance of a unique clone has a name of its own, and so exactly one place.

Defaults of resources count: plans follow them, and this must allow what plans do, and no more.
"""

from collections.abc import Mapping

from haclusterd.model.configuration import Clone, Configuration
from haclusterd.model.ids import ResourceId
from haclusterd.model.properties import collective_meta


class Copies:
    """The limits of one configuration; `nodes` is how many members can run resources."""

    def __init__(self, configuration: Configuration, nodes: int) -> None:
        self._configuration = configuration
        self._nodes = nodes
        self._parents: Mapping[ResourceId, ResourceId] | None = None

    def most(self, resource: ResourceId) -> int:
        """Return on how many nodes it may be active: 1 for whatever is not an anonymous clone's."""
        clone = self._clone_of(resource)
        if clone is None:
            return 1
        return _integer(collective_meta(self._configuration, clone).get("clone-max"), max(1, self._nodes))

    def most_promoted(self, resource: ResourceId) -> int:
        """Return on how many nodes it may be promoted."""
        clone = self._clone_of(ResourceId(resource.partition(":")[0]))
        if clone is None:
            return 1
        meta = collective_meta(self._configuration, clone)
        return _integer(meta.get("promoted-max", meta.get("master-max")), 1)

    def _clone_of(self, resource: ResourceId) -> Clone | None:
        if self._parents is None:
            self._parents = self._configuration.parents()
        seen: set[ResourceId] = set()
        while resource in self._parents and resource not in seen:
            seen.add(resource)
            resource = self._parents[resource]
        found = self._configuration.resources.get(resource)
        return found if isinstance(found, Clone) and seen else None


def _integer(text: str | None, default: int) -> int:
    try:
        return max(0, int(text)) if text is not None else default
    except ValueError:
        return default
