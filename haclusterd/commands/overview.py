"""Every resource of one CIB, looked at once: for answers that are about all of them.

Answers are those of `resource_state`, one resource at a time there; here each node's history is read a single time, so
that the status of ten thousand resources costs no more than reading them.
"""

from collections.abc import Mapping

from haclusterd.commands.resource_state import Failure, Instance, failures, instances_on, why_not_wanted
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.configuration import Primitive, effective
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.properties import ClusterProperties


class Overview:
    """What the CIB says of all resources."""

    def __init__(self, cib: Cib) -> None:
        self.cib = cib
        self.properties = ClusterProperties(cib.configuration)
        self.failures: tuple[Failure, ...] = failures(cib)
        self.online = tuple(name for name, node in sorted(cib.status.nodes.items()) if node.state is NodeState.ONLINE)
        self._instances: dict[ResourceId, list[Instance]] = {}
        for _, status in sorted(cib.status.nodes.items()):
            for resource, instance in instances_on(status):
                self._instances.setdefault(resource, []).append(instance)
        self._defaults = effective(cib.configuration.resource_defaults)
        self._inherited = {
            member: effective(group.meta) for group in cib.configuration.groups() for member in group.members
        }
        self._failed_on: dict[ResourceId, list[NodeName]] = {}
        for failure in self.failures:
            if failure.count is not None:
                self._failed_on.setdefault(failure.resource, []).append(failure.node)

    def instances(self, resource: ResourceId) -> tuple[Instance, ...]:
        """Return where a primitive runs or may run, in order of nodes."""
        return tuple(self._instances.get(resource, ()))

    def meta(self, primitive: Primitive) -> Mapping[str, str]:
        """Return a primitive's effective meta-attributes, without defaults of the table."""
        return {**self._defaults, **self._inherited.get(primitive.id, {}), **effective(primitive.meta)}

    def not_wanted(self, primitive: Primitive) -> str:
        """Say by whose wish a primitive is not to run; empty when it is to."""
        return why_not_wanted(self.properties, primitive, self.meta(primitive))

    def failed_on(self, resource: ResourceId) -> tuple[NodeName, ...]:
        """Return the nodes on which a primitive has failures that are not forgotten."""
        return tuple(dict.fromkeys(self._failed_on.get(resource, ())))
