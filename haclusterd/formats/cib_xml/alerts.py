"""Alerts in CIB XML (Pacemaker Explained, "Alerts"; their schema is alerts-3.5.rng)."""

from haclusterd.formats.cib_xml.notes import Notes
from haclusterd.formats.cib_xml.sets import SetReader
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.model.configuration import Alert, AlertKind, AlertRecipient
from haclusterd.reports.codes import Code

_BLOCKS = ("instance_attributes", "meta_attributes")
_SELECT = {f"select_{kind}": kind for kind in AlertKind}


class AlertReader:
    """Reads the section `alerts`."""

    def __init__(self, sets: SetReader, notes: Notes) -> None:
        self._sets = sets
        self._notes = notes
        self.alerts: dict[str, Alert] = {}

    def read(self, section: Element) -> None:
        """Read one section; an alert that cannot be read is in the notes."""
        self._notes.expect_only(section, (), ("alert",))
        for element in section.all("alert"):
            self._notes.expect_only(
                element, ("id", "path", "description"), (*_BLOCKS, "select", "recipient")
            )
            identifier, path = self._notes.required(element, "id"), self._notes.required(element, "path")
            if identifier is None or path is None:
                continue
            if identifier in self.alerts:
                self._notes.note(Code.DUPLICATE_ID, element, id=identifier)
                continue
            select, attributes = self._select(element)
            self.alerts[identifier] = Alert(
                identifier,
                path,
                element.get("description") or "",
                select,
                attributes,
                self._sets.read(element, "instance_attributes"),
                self._sets.read(element, "meta_attributes"),
                self._recipients(element),
            )

    def _select(self, alert: Element) -> tuple[tuple[AlertKind, ...] | None, tuple[str, ...]]:
        section = alert.first("select")
        if section is None:
            return None, ()
        self._notes.expect_only(section, (), tuple(_SELECT))
        found = {_SELECT[child.tag] for child in section.children if child.tag in _SELECT}
        if not found:
            problem = "an empty <select>: nodes, fencing and resources count, as without it"
            self._notes.dropped(section, problem, "name what is meant: <select_nodes/>, <select_fencing/>, ...")
            return None, ()
        names: dict[str, None] = {}
        for element in section.all("select_attributes"):
            self._notes.expect_only(element, (), ("attribute",))
            for child in element.all("attribute"):
                self._notes.expect_only(child, ("id", "name"))
                names[self._notes.required(child, "name") or ""] = None
        return tuple(kind for kind in AlertKind if kind in found), tuple(name for name in names if name)

    def _recipients(self, alert: Element) -> tuple[AlertRecipient, ...]:
        found: list[AlertRecipient] = []
        for element in alert.all("recipient"):
            self._notes.expect_only(element, ("id", "value", "description"), _BLOCKS)
            identifier, value = self._notes.required(element, "id"), self._notes.required(element, "value")
            if identifier is None or value is None:
                continue
            if identifier in [each.id for each in found]:
                self._notes.note(Code.DUPLICATE_ID, element, id=identifier)
                continue
            found.append(
                AlertRecipient(
                    identifier,
                    value,
                    element.get("description") or "",
                    self._sets.read(element, "instance_attributes"),
                    self._sets.read(element, "meta_attributes"),
                )
            )
        return tuple(found)
