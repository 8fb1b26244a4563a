"""Nodes in CIB XML (Pacemaker Explained, "Cluster Nodes")."""

from collections.abc import Mapping, Sequence

from haclusterd.formats.cib_xml.notes import Notes
from haclusterd.formats.cib_xml.sets import SetReader
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.model.configuration import AttributeSet, NodeEntry
from haclusterd.model.ids import NodeName
from haclusterd.model.records import dataclass
from haclusterd.model.scores import INFINITY
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.items import report

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

    def __init__(self, sets: SetReader, notes: Notes, states: Sequence[Element] = ()) -> None:
        """`states`: what the document's status says of nodes."""
        self._sets = sets
        self._states = states
        self._notes = notes
        self._by_id: dict[str, NodeName] = {}
        self.nodes: dict[NodeName, NodeEntry] = {}

    def names(self) -> NodeNames:
        """Return the nodes by their ids and names."""
        return NodeNames(self._by_id, {name.lower(): name for name in self.nodes})

    def _is_the_same(self, element: Element, identifier: str, before: NodeEntry) -> bool:
        """Tell whether a second entry of a node counts; Pacemaker warns, and takes all that has the node's id.

        With another id that is the one by which the status knows the node (seen with crm_simulate 2.1.5).
        """
        other = before.id or before.name
        if identifier == other:
            place, remedy = self._notes.place(element), "write what both say into one entry: here both count"
            self._notes.reports.append(
                report(Code.DUPLICATE_ID, place=place, severity=Severity.WARNING, remedy=remedy, id=before.name)
            )
            return True
        counts, lost = (identifier, other) if self._is_in_status(identifier) else (other, identifier)
        problem = f"the entry of node {before.name} with the id {lost}: that with the id {counts} counts"
        self._notes.dropped(element, problem, "remove one of them")
        return counts == identifier

    def _is_in_status(self, identifier: str) -> bool:
        return any(state.get("id") == identifier for state in self._states)

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
            remedy = "leave type out, or write one that Pacemaker has"
            self._notes.not_yet(element, f"a node of type {kind}", remedy=remedy)
            return
        name = NodeName(element.get("uname") or identifier)
        before = self.nodes.get(name)
        if before is not None and not self._is_the_same(element, identifier, before):
            return
        attributes: tuple[AttributeSet, ...] = ()
        utilization: tuple[AttributeSet, ...] = ()
        if before is not None and (before.id or name) == identifier:
            attributes, utilization = before.attributes, before.utilization
        self._by_id[identifier] = name
        self.nodes[name] = NodeEntry(
            name,
            (*attributes, *self._sets.read(element, "instance_attributes")),
            (*utilization, *self._sets.read(element, "utilization")),
            element.get("description") or "",
            kind == "remote",
            # Nodes that only answered pings, of releases before 2.0, run nothing.
            -INFINITY if kind == "ping" else self._notes.score(element, "score", 0),
            "" if identifier == name else identifier,
        )
