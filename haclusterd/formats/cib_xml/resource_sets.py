"""Sets of resources inside constraints (Pacemaker Explained, "Resource Sets")."""

from haclusterd.formats.cib_xml.notes import Notes
from haclusterd.formats.cib_xml.sets import SetReader
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.model.configuration import ResourceSet
from haclusterd.model.ids import ResourceId

_ACTIONS = ("start", "stop", "promote", "demote")
_KNOWN = ("id", "sequential", "require-all", "action", "role", "score", "kind", "ordering")


class ResourceSetReader:
    """Reads the sets of one constraint; a set that only refers to another one is read as that one."""

    def __init__(self, sets: SetReader, notes: Notes) -> None:
        self._sets = sets
        self._notes = notes

    def read(self, constraint: Element) -> tuple[ResourceSet, ...]:
        """Return the sets in document order; what a member refers to is for the scheduler to find."""
        found = (self._sets.references.resolve(each) for each in constraint.all("resource_set"))
        return tuple(self._one(element) for element in found if element is not None)

    def _one(self, element: Element) -> ResourceSet:
        notes = self._notes
        notes.expect_only(element, _KNOWN, ("resource_ref",))
        members = []
        for child in element.all("resource_ref"):
            notes.expect_only(child, ("id",))
            member = notes.required(child, "id")
            if member is not None:
                members.append(ResourceId(member))
        return ResourceSet(
            notes.required(element, "id") or "",
            tuple(members),
            self._choice(element, "sequential"),
            self._choice(element, "require-all"),
            notes.word(element, "action", _ACTIONS),
            notes.role(element, "role"),
            None if element.get("score") is None else notes.score(element, "score", 0),
            element.get("kind"),
            notes.word(element, "ordering", ("group", "listed")),
        )

    def _choice(self, element: Element, name: str) -> bool | None:
        """Read a boolean that may be left open."""
        return None if element.get(name) is None else self._notes.boolean(element, name, default=True)
