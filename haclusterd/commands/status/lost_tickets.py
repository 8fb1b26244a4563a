"""What does not run because this cluster does not hold a ticket: that is how it should be, not a failure."""

from collections.abc import Iterator, Mapping

from haclusterd.commands.names import primitives_of
from haclusterd.model.cluster import Cib, TicketState
from haclusterd.model.configuration import Configuration, TicketConstraint
from haclusterd.model.ids import ResourceId

_WHOLE = (None, "Started")


def lost_tickets(cib: Cib) -> Mapping[ResourceId, TicketConstraint]:
    """Return for each primitive that may not start the first constraint that says so."""
    found: dict[ResourceId, TicketConstraint] = {}
    for constraint in cib.configuration.constraints.values():
        if not isinstance(constraint, TicketConstraint):
            continue
        state = cib.status.tickets.get(constraint.ticket, TicketState(constraint.ticket))
        if state.is_granted and not state.is_standby:
            continue
        for name in _bound_whole(constraint):
            for primitive in _primitives(cib.configuration, name):
                found.setdefault(primitive, constraint)
    return found


def _bound_whole(constraint: TicketConstraint) -> Iterator[str]:
    """Yield what needs the ticket to run at all, not only to be promoted."""
    if constraint.resource and constraint.role in _WHOLE:
        yield constraint.resource
    for each in constraint.sets:
        if (each.role or constraint.role) in _WHOLE:
            yield from each.members


def _primitives(configuration: Configuration, name: str) -> Iterator[ResourceId]:
    tag = configuration.tags.get(name)
    for each in (name,) if tag is None else tag.references:
        if ResourceId(each) in configuration.templates:
            yield from (primitive.id for primitive in configuration.primitives() if primitive.template == each)
        else:
            yield from primitives_of(configuration, ResourceId(each))
