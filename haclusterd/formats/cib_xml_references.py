"""References inside CIB XML: an element with `id-ref` stands for the one of the same name with that id.

Source: Pacemaker Explained, "Reusing Rules, Options and Sets of Operations". A reference to a reference is none.
"""

from haclusterd.formats.cib_xml_notes import Notes
from haclusterd.formats.cib_xml_tree import Element
from haclusterd.reports.codes import Code


class References:
    """Resolves references within one document, whose ids are collected when the first reference is met."""

    def __init__(self, root: Element, notes: Notes) -> None:
        self._root = root
        self._notes = notes
        self._by_id: dict[tuple[str, str], Element] | None = None

    def resolve(self, element: Element) -> Element | None:
        """Return what an element refers to, or itself; None, and a report, when it refers to nothing."""
        reference = element.get("id-ref")
        if reference is None:
            return element
        if self._by_id is None:
            self._by_id = self._collected()
        target = self._by_id.get((element.tag, reference))
        if target is None or target.get("id-ref") is not None:
            self._notes.note(Code.UNKNOWN_OBJECT, element, id=reference)
            return None
        return target

    def _collected(self) -> dict[tuple[str, str], Element]:
        found: dict[tuple[str, str], Element] = {}
        for section in self._root.all("configuration"):
            for element in section.every():
                identifier = element.get("id")
                if identifier is not None:
                    found.setdefault((element.tag, identifier), element)
        return found
