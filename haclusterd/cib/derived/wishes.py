"""What administrators want of a resource: not to run, or to be left alone; for the account of its availability.

The scheduler decides what is done. This only finds out, afterwards, whether an administrator asked for it.
"""

from collections.abc import Iterator
from typing import Final

from haclusterd.model.availability import Cause
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import effective, parts_of
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.properties import ClusterProperties, read_boolean_or

_UNPROMOTED: Final = frozenset({"slave", "unpromoted"})


def node_flag(cib: Cib, node: NodeName, name: str) -> bool:
    """Return a boolean node attribute: standby, maintenance; a transient one comes before what is configured."""
    entry, status = cib.in_force.nodes.get(node), cib.status.nodes.get(node)
    configured = {} if entry is None else effective(entry.attributes)
    transient = {} if status is None else status.attributes
    return read_boolean_or(transient.get(name, configured.get(name, "")), default=False)


class Wishes:
    """The wishes in one configuration, as it is in force."""

    def __init__(self, cib: Cib) -> None:
        self._cib = cib
        self._parents: dict[ResourceId, ResourceId] | None = None

    def why_not(self, resource: ResourceId, node: NodeName | None, *, is_promoted: bool) -> Cause | None:
        """Return the wish by which a resource must not run or be promoted, at all or on a node; None: there is none."""
        restarts = self._cib.status.restarts
        if restarts and any(resource in parts_of(self._cib.configuration, each) for each in restarts):
            return Cause.RESTART
        role = self._meta(resource, "target-role").lower()
        is_stopped = role == "stopped" or (is_promoted and role in _UNPROMOTED)
        if is_stopped or ClusterProperties(self._cib.in_force).boolean("stop-all-resources"):
            return Cause.STOPPED
        if node is None:
            return None
        status = self._cib.status.nodes.get(node)
        if status is not None and status.is_leaving:
            return Cause.SHUTDOWN
        if node_flag(self._cib, node, "standby"):
            return Cause.STANDBY
        return Cause.MAINTENANCE if node_flag(self._cib, node, "maintenance") else None

    def is_unmanaged(self, resource: ResourceId, node: NodeName) -> bool:
        """Return whether an administrator has made a resource unmanaged."""
        properties = ClusterProperties(self._cib.in_force)
        if properties.boolean("maintenance-mode") or node_flag(self._cib, node, "maintenance"):
            return True
        if read_boolean_or(self._meta(resource, "maintenance"), default=False):
            return True
        is_managed = self._meta(resource, "is-managed")
        return bool(is_managed) and not read_boolean_or(is_managed, default=False)

    def _meta(self, resource: ResourceId, name: str) -> str:
        """Return a meta-attribute, of the resource itself or of the innermost container that sets it."""
        configuration = self._cib.in_force
        for each in self._upwards(resource):
            known = configuration.resources.get(each)
            found = effective(known.meta).get(name) if known is not None else None
            if found:
                return found
        return effective(configuration.resource_defaults).get(name, "")

    def _upwards(self, resource: ResourceId) -> Iterator[ResourceId]:
        if self._parents is None:
            self._parents = self._cib.configuration.parents()
        seen: set[ResourceId] = set()
        while resource not in seen:
            yield resource
            seen.add(resource)
            resource = self._parents.get(resource, resource)
