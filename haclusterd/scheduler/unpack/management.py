"""Which resources the administrator has taken out of the cluster's control on one node.

Source: Pacemaker Explained, "Resource Meta-Attributes" (`is-managed`, `maintenance`), "Cluster Options"
(`maintenance-mode`), "Node attributes" (`maintenance`). The answer is the scheduler's: a caller that must decide
without a plan (a node without a lease, a node that leaves) reads the same words by the same rules. Of blocks under
rules on dates those are read that the DC has put into force.
"""

from collections.abc import Iterable

from haclusterd.model.activity import possibly_active
from haclusterd.model.cluster import Cib, NodeStatus
from haclusterd.model.configuration import Bundle, Configuration, Primitive
from haclusterd.model.ids import AgentReference, NodeName, ResourceId, base_of
from haclusterd.model.instants import WallTime
from haclusterd.model.templates import expanded
from haclusterd.scheduler.model.entities import NodeKind
from haclusterd.scheduler.model.meta_attributes import is_left_alone, resolve_meta
from haclusterd.scheduler.model.options import DEFAULT_OPTIONS
from haclusterd.scheduler.model.readings import boolean
from haclusterd.scheduler.model.settings import unpack_settings
from haclusterd.scheduler.unpack.nodes import node_attributes
from haclusterd.scheduler.unpack.resource_builder import Outer


def unmanaged(cib: Cib, node: NodeName, resources: Iterable[ResourceId], now: WallTime) -> frozenset[ResourceId]:
    """Return which of some resources are unmanaged on a node; `now` is what other rules that name dates are judged by.

    `resources` are named as in the histories: an instance of a unique clone (`ip:0`) or a part of a bundle too.
    """
    reading = _Reading(cib, now)
    if reading.is_in_maintenance(node):
        return frozenset(resources)
    return frozenset(resource for resource in resources if reading.is_unmanaged(resource))


def is_fencing_pointless(cib: Cib, lost: NodeStatus, now: WallTime) -> bool:
    """Tell whether nothing would be gained by fencing a lost node now, because nothing could be recovered.

    As with Pacemaker a node that vanishes is fenced unless no resource of the whole cluster is managed. One that left
    with unmanaged resources running is fenced only when one of these is managed again, or a person wants it.
    """
    if lost.is_fence_requested:
        return False
    if lost.has_detached:
        active = possibly_active(lost)
        return unmanaged(cib, lost.name, active, now) == active
    reading = _Reading(cib, now)
    untouched = {
        base_of(resource)
        for status in cib.status.nodes.values()
        if reading.is_in_maintenance(status.name)
        for resource in possibly_active(status)
    }
    primitives = [primitive.id for primitive in cib.configuration.primitives()]
    return bool(primitives) and all(each in untouched or reading.is_unmanaged(each) for each in primitives)


class _Reading:
    """One configuration, read at one time."""

    def __init__(self, cib: Cib, now: WallTime) -> None:
        self._cib = cib = cib.as_in_force()
        self._settings = unpack_settings(cib.configuration, now, DEFAULT_OPTIONS)
        self._parents = cib.configuration.parents()

    def is_in_maintenance(self, node: NodeName) -> bool:
        """Tell whether nobody touches what runs on a node."""
        attributes = node_attributes(self._cib, node, NodeKind.MEMBER, self._settings)
        return boolean(attributes.get("maintenance"), default=False)

    def is_unmanaged(self, resource: ResourceId) -> bool:
        """Tell whether a resource is unmanaged wherever it runs."""
        configuration = self._cib.configuration
        name = base_of(resource)
        found = configuration.resources.get(name)
        agent: AgentReference | None = None
        levels: Outer = ()
        if isinstance(found, Primitive):
            whole = expanded(found, configuration)
            agent, levels = whole.agent, (whole.meta,)
        parent = self._parents.get(name) if found is not None else _bundle_of(configuration, name)
        seen = {name}
        while parent is not None and parent not in seen:
            seen.add(parent)
            container = configuration.resources.get(parent)
            levels += (container.meta,) if container is not None else ()
            parent = self._parents.get(parent)
        return is_left_alone(resolve_meta((), levels, None, agent, self._settings), self._settings)


def _bundle_of(configuration: Configuration, name: ResourceId) -> ResourceId | None:
    """Return the bundle that a container, an address or a connection was made for; these are in no configuration."""
    bundles = (each.id for each in configuration.resources.values() if isinstance(each, Bundle))
    return max((bundle for bundle in bundles if name.startswith(f"{bundle}-")), key=len, default=None)
