"""How many nodes may hold one resource at a time, and in the promoted role (Pacemaker Explained, "Clone Options").

The name is the one under which nodes record it: an anonymous clone's instances share their primitive's name, one on
each node; an instance of a unique clone has a name of its own, and so exactly one place.

Defaults of resources count: plans follow them, and this must allow what plans do, and no more.
"""

import sys
from collections.abc import Mapping

from haclusterd.model.configuration import Bundle, Clone, Configuration, Primitive, Resource, primitives_of
from haclusterd.model.ids import ResourceId, base_of
from haclusterd.model.properties import collective_flag, collective_meta
from haclusterd.model.templates import expanded


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
        clone = self._clone_of(base_of(resource))
        if clone is None:
            return 1
        meta = collective_meta(self._configuration, clone)
        return _integer(meta.get("promoted-max", meta.get("master-max")), 1)

    def may_be_wanted(self, resource: ResourceId) -> bool:
        """Return whether something may run under that name: `db:0` if `db` is of a unique clone, else `db`.

        Of a unique clone numbers are below its `clone-max`; without one, how many there are is left to plans, as is
        what is not configured, and what is in a bundle.
        """
        base, colon, number = resource.partition(":")
        primitive = self._configuration.resources.get(ResourceId(base))
        if primitive is None or isinstance(self._top_of(primitive.id), Bundle):
            return True
        clone = self._clone_of(primitive.id)
        if clone is None or not self._is_unique(clone):
            return not colon
        if not colon:
            return not self._can_differ(clone)
        return _integer(number, 0) < self._instances(clone)

    def most_instances(self, resource: ResourceId) -> int:
        """Return how many instances of its unique clone may be active; without `clone-max` that is left to plans."""
        clone = self._clone_of(base_of(resource))
        return sys.maxsize if clone is None else self._instances(clone)

    def _instances(self, clone: Clone) -> int:
        return _integer(collective_meta(self._configuration, clone).get("clone-max"), sys.maxsize)

    def _is_unique(self, clone: Clone) -> bool:
        meta = collective_meta(self._configuration, clone)
        if "globally-unique" in meta:
            return collective_flag(self._configuration, clone, "globally-unique")
        # So Pacemaker 3 decides where nothing is said.
        return _integer(meta.get("clone-node-max"), 1) > 1

    def _can_differ(self, clone: Clone) -> bool:
        """Return whether instances certainly get numbers: units do not."""
        configuration = self._configuration
        agents = (configuration.resources[name] for name in primitives_of(configuration, clone.id))
        return all(isinstance(each, Primitive) and expanded(each, configuration).agent.standard == "ocf"
                   for each in agents)  # fmt: skip

    def _clone_of(self, resource: ResourceId) -> Clone | None:
        found = self._top_of(resource)
        return found if isinstance(found, Clone) and found.id != resource else None

    def _top_of(self, resource: ResourceId) -> Resource | None:
        if self._parents is None:
            self._parents = self._configuration.parents()
        seen: set[ResourceId] = set()
        while resource in self._parents and resource not in seen:
            seen.add(resource)
            resource = self._parents[resource]
        return self._configuration.resources.get(resource)


def _integer(text: str | None, default: int) -> int:
    try:
        return max(0, int(text)) if text is not None else default
    except ValueError:
        return default
