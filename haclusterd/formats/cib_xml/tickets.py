"""Tickets in CIB XML: what this cluster was granted (Pacemaker Explained, "Multi-Site Clusters and Tickets")."""

from haclusterd.formats.cib_xml.membership import is_set
from haclusterd.formats.cib_xml.notes import Notes
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.model.cluster import TicketState
from haclusterd.model.instants import WallTime

_STATE = ("id", "granted", "standby", "last-granted")


def read_tickets(section: Element, notes: Notes) -> dict[str, TicketState]:
    """Read the section `tickets`, in document order."""
    notes.expect_only(section, (), ("ticket_state",))
    found: dict[str, TicketState] = {}
    for element in section.all("ticket_state"):
        identifier = notes.required(element, "id")
        if identifier is not None:
            found[identifier] = TicketState(
                identifier,
                is_set(element.get("granted")),
                is_set(element.get("standby")),
                WallTime(notes.number(element, "last-granted", 0) * 1000),
                {name: value for name, value in element.attributes.items() if name not in _STATE},
            )
    return found
