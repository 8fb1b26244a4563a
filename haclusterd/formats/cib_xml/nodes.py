"""Nodes in CIB XML (Pacemaker Explained, "Cluster Nodes")."""

from collections.abc import Mapping
from dataclasses import dataclass

from haclusterd.formats.cib_xml.notes import Notes
from haclusterd.formats.cib_xml.sets import SetReader
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.model.configuration import NodeEntry
from haclusterd.model.ids import NodeName
from haclusterd.model.scores import INFINITY
from haclusterd.reports.codes import Code

_MEMBERS = (None, "member", "normal")
_TYPES = (*_MEMBERS, "remote", "ping")


@dataclass(frozen=True, slots=True)
class NodeNames:
    """The nodes of a document, by the ids that its status uses."""

    by_id: Mapping[str, NodeName]
    by_name: Mapping[str, NodeName]
    """In lower case: names are looked up in any case."""

    def find(self, identifier: str | None, name: str | None) -> NodeName | None:
        """Return a node by its id, else by its name."""
        return self.by_id.get(identifier or "") or self.by_name.get((name or "").lower())


class NodeReader:
    """Reads the section `nodes`."""

    def __init__(self, sets: SetReader, notes: Notes) -> None:
        self._sets = sets
        self._notes = notes
        self._by_id: dict[str, NodeName] = {}
        self.nodes: dict[NodeName, NodeEntry] = {}

    def names(self) -> NodeNames:
        """Return the nodes by their ids and names."""
        return NodeNames(self._by_id, {name.lower(): name for name in self.nodes})

    def read(self, section: Element) -> None:
        """Read all nodes, in document order."""
        self._notes.expect_only(section, (), ("node",))
        for element in section.all("node"):
            self._node(element)

    def _node(self, element: Element) -> None:
        identifier = self._notes.required(element, "id")
        if identifier is None:
            return
        known = ("id", "uname", "type", "description", "score")
        self._notes.expect_only(element, known, ("instance_attributes", "utilization"))
        kind = element.get("type")
        if kind not in _TYPES:
            self._notes.not_yet(element, f"a node of type {kind}")
            return
        name = NodeName(element.get("uname") or identifier)
        if name in self.nodes:
            self._notes.note(Code.DUPLICATE_ID, element, id=name)
            return
        self._by_id[identifier] = name
        self.nodes[name] = NodeEntry(
            name,
            self._sets.read(element, "instance_attributes"),
            self._sets.read(element, "utilization"),
            element.get("description") or "",
            kind == "remote",
            # Nodes that only answered pings, of releases before 2.0, run nothing.
            -INFINITY if kind == "ping" else self._notes.score(element, "score", 0),
            "" if identifier == name else identifier,
        )
