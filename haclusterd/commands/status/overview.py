"""The state of every resource of one CIB, for answers that are about all of them.

It says of each what `resource_state` says of one. Each node's history is read a single time, so that the status of ten
thousand resources costs no more than reading them.
"""

from collections.abc import Collection, Iterator, Mapping

from haclusterd.commands.context import Context
from haclusterd.commands.status.resource_state import (
    Failure,
    Instance,
    can_be_promoted,
    failures,
    instances_on,
    why_not_wanted,
)
from haclusterd.model.cluster import Cib, NodeState, TicketState
from haclusterd.model.configuration import (
    Bundle,
    Clone,
    Configuration,
    Primitive,
    TicketConstraint,
    contained,
    effective,
    primitives_of,
)
from haclusterd.model.ids import NodeName, ResourceId, base_of
from haclusterd.model.properties import ClusterProperties, collective_meta

FREEZE = "freeze"
"""The loss-policy with which what runs is left alone."""
WHOLE = (None, "Started")
"""Roles of a ticket constraint with which a resource needs the ticket to run at all."""


class Overview:
    """What the CIB says of all resources, as it holds now: of blocks under rules on dates those that are in force."""

    def __init__(
        self, cib: Cib, own: NodeName | None = None, stopped_alone: Collection[ResourceId] = frozenset()
    ) -> None:
        """`stopped_alone`: what the node `own` has stopped by itself, which the CIB does not know yet."""
        self.cib = cib = cib.as_in_force()
        self.properties = ClusterProperties(cib.in_force)
        self.failures: tuple[Failure, ...] = failures(cib)
        self.online = tuple(name for name, node in sorted(cib.status.nodes.items()) if node.state is NodeState.ONLINE)
        self._instances: dict[ResourceId, list[Instance]] = {}
        self.stopped_alone: dict[ResourceId, NodeName] = {}
        """What a node has stopped by itself, and which."""
        for _, status in sorted(cib.status.nodes.items()):
            for resource, instance in instances_on(status):
                if status.name == own and resource in stopped_alone:
                    self.stopped_alone[base_of(resource)] = status.name
                    continue
                self._instances.setdefault(base_of(resource), []).append(instance)
        self._defaults = effective(cib.in_force.resource_defaults)
        self._inherited = _inherited(cib.configuration)
        self._meta: dict[ResourceId, Mapping[str, str]] = {}
        self._lost_tickets = lost_tickets(cib)
        self._tops = _tops(cib.configuration)
        self._restarted = {
            part: name for name in cib.status.restarts for part in primitives_of(cib.configuration, name)
        }
        self._failed_on: dict[ResourceId, list[NodeName]] = {}
        for failure in self.failures:
            if failure.count is not None:
                self._failed_on.setdefault(base_of(failure.resource), []).append(failure.node)

    def instances(self, resource: ResourceId) -> tuple[Instance, ...]:
        """Return where a primitive runs or may run, in order of nodes."""
        return tuple(self._instances.get(resource, ()))

    def deleted(self) -> tuple[ResourceId, ...]:
        """Return what is configured no more and runs, or may run, by name."""
        return tuple(sorted(name for name in self._instances if name not in self.cib.configuration.resources))

    def meta(self, primitive: Primitive) -> Mapping[str, str]:
        """Return a primitive's effective meta-attributes, without defaults of the table."""
        known = self._meta.get(primitive.id)
        if known is None:
            template = self.cib.configuration.templates.get(primitive.template) if primitive.template else None
            own = effective(primitive.meta if template is None else template.meta + primitive.meta)
            known = {**self._defaults, **self._inherited.get(primitive.id, {}), **own}
            self._meta[primitive.id] = known
        return known

    def not_wanted(self, primitive: Primitive) -> str:
        """Say by whose wish a primitive is not to run; empty when it is to, or is left running."""
        if primitive.id in self._restarted:
            return f"restart of {self._restarted[primitive.id]}"
        wish = why_not_wanted(self.properties, primitive, self.meta(primitive))
        lost = self._lost_tickets.get(primitive.id)
        if wish or lost is None or (lost.loss_policy == FREEZE and self.instances(primitive.id)):
            return wish
        return f"ticket {lost.ticket} is not held"

    def most_copies(self, resource: ResourceId) -> int:
        """Return on how many nodes a primitive may run."""
        top = self.cib.configuration.resources.get(self._tops.get(resource, resource))
        if isinstance(top, Bundle):
            return top.replicas or max(1, top.promoted_max or 1)
        if not isinstance(top, Clone):
            return 1
        most = collective_meta(self.cib.configuration, top).get("clone-max", "")
        nodes = sum(not member.is_witness for member in self.cib.members.values())
        return int(most) if most.isascii() and most.isdigit() else max(1, nodes)

    def is_promotable(self, resource: ResourceId) -> bool:
        """Tell whether instances of a resource can have roles."""
        top = self.cib.configuration.resources.get(self._tops.get(resource, resource))
        return top is not None and can_be_promoted(self.cib.configuration, top)

    def is_witness(self, node: NodeName) -> bool:
        """Tell whether a node votes and runs nothing."""
        return node in self.cib.members and self.cib.members[node].is_witness

    def failed_on(self, resource: ResourceId) -> tuple[NodeName, ...]:
        """Return the nodes on which a primitive has failures that are not forgotten."""
        return tuple(dict.fromkeys(self._failed_on.get(resource, ())))


def overview_of(context: Context) -> Overview:
    """Return what the CIB says of all resources, and the answering node of its own."""
    live = context.live
    return Overview(context.cib) if live is None else Overview(context.cib, live.node, live.stopped_alone)


def _inherited(configuration: Configuration) -> Mapping[ResourceId, Mapping[str, str]]:
    """Return for each contained resource the meta-attributes of what contains it; the innermost wins."""
    parents = configuration.parents()
    found: dict[ResourceId, Mapping[str, str]] = {}
    pending = [resource for resource in configuration.resources.values() if resource.id not in parents]
    while pending:
        resource = pending.pop()
        below = {**found.get(resource.id, {}), **effective(resource.meta)}
        for child in contained(resource):
            known = configuration.resources.get(child)
            if known is not None and child not in found:
                found[child] = below
                pending.append(known)
    return found


def _tops(configuration: Configuration) -> Mapping[ResourceId, ResourceId]:
    """Return for each contained resource the outermost that contains it."""
    parents = configuration.parents()
    found: dict[ResourceId, ResourceId] = {}
    for resource in parents:
        step, seen = resource, {resource}
        while step in parents and parents[step] not in seen:
            step = parents[step]
            seen.add(step)
        found[resource] = step
    return found


def lost_tickets(cib: Cib) -> Mapping[ResourceId, TicketConstraint]:
    """Return for each primitive that may not start the first constraint that says so."""
    found: dict[ResourceId, TicketConstraint] = {}
    for constraint in cib.configuration.constraints.values():
        if not isinstance(constraint, TicketConstraint):
            continue
        state = cib.status.tickets.get(constraint.ticket, TicketState(constraint.ticket))
        if state.is_granted and not state.is_standby:
            continue
        for name in _needing_it_to_run(constraint):
            for primitive in _primitives(cib.configuration, name):
                found.setdefault(primitive, constraint)
    return found


def _needing_it_to_run(constraint: TicketConstraint) -> Iterator[str]:
    """Yield what needs the ticket to run at all, not only to be promoted."""
    if constraint.resource and constraint.role in WHOLE:
        yield constraint.resource
    for each in constraint.sets:
        if (each.role or constraint.role) in WHOLE:
            yield from each.members


def _primitives(configuration: Configuration, name: str) -> Iterator[ResourceId]:
    tag = configuration.tags.get(name)
    for each in (name,) if tag is None else tag.references:
        if ResourceId(each) in configuration.templates:
            yield from (primitive.id for primitive in configuration.primitives() if primitive.template == each)
        else:
            yield from primitives_of(configuration, ResourceId(each))
