"""Tags and fencing levels in CIB XML (Pacemaker Explained, "Tagging Configuration Elements", "Fencing Topologies")."""

from haclusterd.formats.cib_xml.notes import Notes
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.model.configuration import FencingLevel, Tag
from haclusterd.model.ids import ResourceId
from haclusterd.reports.codes import Code

_LEVELS = range(1, 10)
"""What is outside, Pacemaker ignores."""


def read_tags(section: Element, notes: Notes) -> dict[str, Tag]:
    """Read tags, in document order."""
    found: dict[str, Tag] = {}
    notes.expect_only(section, (), ("tag",))
    for element in section.all("tag"):
        identifier = notes.required(element, "id")
        if identifier is None:
            continue
        notes.expect_only(element, ("id", "description"), ("obj_ref",))
        notes.left_out(element, "description", "descriptions stand at resources here")
        if identifier in found:
            notes.note(Code.DUPLICATE_ID, element, id=identifier)
            continue
        references = (notes.required(each, "id") for each in element.all("obj_ref"))
        found[identifier] = Tag(identifier, tuple(each for each in references if each is not None))
    return found


def read_fencing_levels(section: Element, notes: Notes) -> tuple[FencingLevel, ...]:
    """Read the levels of all targets, in document order."""
    notes.expect_only(section, (), ("fencing-level",))
    found = (_level(element, notes) for element in section.all("fencing-level"))
    return tuple(level for level in found if level is not None)


def _level(element: Element, notes: Notes) -> FencingLevel | None:
    known = ("id", "index", "devices", "target", "target-pattern", "target-attribute", "target-value")
    notes.expect_only(element, known)
    identifier, devices = notes.required(element, "id"), notes.required(element, "devices")
    index = notes.number(element, "index", 0)
    if index not in _LEVELS:
        notes.dropped(element, f"<fencing-level index={index}>: Pacemaker ignores it too", "number levels from 1 to 9")
        return None
    if identifier is None or devices is None:
        return None
    return FencingLevel(
        identifier,
        index,
        tuple(ResourceId(name.strip()) for name in devices.split(",") if name.strip()),
        element.get("target") or "",
        notes.pattern(element, "target-pattern"),
        element.get("target-attribute") or "",
        element.get("target-value") or "",
    )
