"""References inside CIB XML: an element with `id-ref` stands for the one of the same name with that id.

Source: Pacemaker Explained, "Reusing Rules, Options and Sets of Operations". A reference to a reference is none.
What references make of a document is limited, as the document itself is: otherwise a few of them, one inside the other,
could make any number of elements.
"""

from haclusterd.formats.cib_xml.notes import Notes
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.reports.codes import Code, Severity

MAX_REFERRED = 200_000
"""Elements that all references of a document stand for, together."""


class References:
    """Resolves references within one document, whose ids are collected when the first reference is met."""

    def __init__(self, root: Element, notes: Notes) -> None:
        self._root = root
        self._notes = notes
        self._by_id: dict[tuple[str, str], Element] | None = None
        self._referred: set[tuple[str, str]] | None = None
        self._sizes: dict[int, int] = {}
        self._left = MAX_REFERRED

    def resolve(self, element: Element) -> Element | None:
        """Return what an element refers to, or itself; None, and a report, when it refers to nothing."""
        target = self.target(element)
        if target is None:
            self._notes.note(Code.UNKNOWN_OBJECT, element, id=element.get("id-ref"))
            return None
        if target is not element and element.children:
            problem = f"what is in <{element.tag} id-ref={element.get('id-ref')}>: it refers to another one"
            self._notes.note(Code.LEFT_OUT, element, severity=Severity.WARNING, problem=problem)
        return target if target is element or self.is_affordable(element, target) else None

    def target(self, element: Element) -> Element | None:
        """Return what an element refers to, or itself; None when it refers to nothing."""
        reference = element.get("id-ref")
        if reference is None:
            return element
        if self._by_id is None:
            self._by_id = self._collected()
        target = self._by_id.get((element.tag, reference))
        return None if target is None or target.get("id-ref") is not None else target

    def is_referred(self, element: Element) -> bool:
        """Tell whether another element of the same name refers to this one."""
        if self._referred is None:
            self._referred = {
                (each.tag, str(each.get("id-ref"))) for section in self._root.all("configuration")
                for each in section.every() if each.get("id-ref") is not None
            }  # fmt: skip
        return (element.tag, element.get("id")) in self._referred

    def is_affordable(self, element: Element, target: Element) -> bool:
        """Tell whether a document may make one thing more of `target`; report at `element` when it may not."""
        if self._left < 0:
            return False
        size = self._sizes.get(id(target))
        if size is None:
            size = self._sizes[id(target)] = sum(1 for _ in target.every())
        self._left -= size
        if self._left < 0:
            limit = f"{MAX_REFERRED} elements"
            self._notes.note(Code.TOO_LARGE, element, what="what the references stand for", limit=limit)
        return self._left >= 0

    def _collected(self) -> dict[tuple[str, str], Element]:
        found: dict[tuple[str, str], Element] = {}
        for section in self._root.all("configuration"):
            for element in section.every():
                identifier = element.get("id")
                if identifier is not None:
                    found.setdefault((element.tag, identifier), element)
        return found
