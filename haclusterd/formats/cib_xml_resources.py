"""Resources in CIB XML: primitives and groups with their operations (Pacemaker Explained, "Resources")."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from haclusterd.formats.cib_xml_notes import Notes
from haclusterd.formats.cib_xml_sets import SetReader
from haclusterd.formats.cib_xml_tree import Element
from haclusterd.model import durations
from haclusterd.model.configuration import AttributeSet, Group, Operation, Primitive, Resource
from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.model.operations import OPERATION_ATTRIBUTES, read_role
from haclusterd.model.properties import read_boolean
from haclusterd.reports.codes import Code

_BLOCKS = ("meta_attributes", "instance_attributes", "utilization")
_OPERATION_KEYS = tuple(row.name for row in OPERATION_ATTRIBUTES)
_OPERATION_KNOWN = ("id", "name", "description", "record-pending", *_OPERATION_KEYS)


def _is_true(text: str) -> bool:
    try:
        return read_boolean(text)
    except ValueError:
        return False


def _is_false(text: str) -> bool:
    return text.strip().lower() in ("false", "no", "off", "n", "0")


_META_NOT_YET: Mapping[str, Callable[[str], bool]] = {
    "allow-migrate": _is_true,
    "remote-node": bool,
    "container": bool,
    "requires": lambda text: text == "unfencing",
    "provides": lambda text: text == "unfencing",
    "ordered": _is_false,
    "collocated": _is_false,
}
"""Meta-attributes with an effect on plans that this version does not have, each with when it has one."""


def judge_meta(notes: Notes, element: Element, blocks: tuple[AttributeSet, ...]) -> None:
    """Report meta-attributes whose effect is missing."""
    for block in blocks:
        for name, value in block.pairs:
            has_effect = _META_NOT_YET.get(name)
            if has_effect is not None and has_effect(value):
                notes.not_yet(element, f"{name}={value}")


class ResourceReader:
    """Reads the section `resources`."""

    def __init__(self, sets: SetReader, notes: Notes) -> None:
        self._sets = sets
        self._notes = notes
        self.resources: dict[ResourceId, Resource] = {}
        self.not_held: set[str] = set()
        """Ids of what was reported and left out."""

    def read(self, section: Element) -> None:
        """Read all resources, in document order."""
        for element in section.children:
            if element.tag == "primitive":
                self._primitive(element)
            elif element.tag == "group":
                self._group(element)
            else:
                self._leave_out(element)

    def _leave_out(self, element: Element) -> None:
        self._notes.not_yet(element, f"<{element.tag} id={element.get('id')!r}>")
        self.not_held.update(each.get("id") or "" for each in element.every())

    def _is_new(self, element: Element) -> bool:
        identifier = self._notes.required(element, "id")
        if identifier is not None and ResourceId(identifier) in self.resources:
            self._notes.note(Code.DUPLICATE_ID, element, id=identifier)
            return False
        return identifier is not None

    def _group(self, element: Element) -> None:
        if not self._is_new(element):
            return
        self._notes.expect_only(element, ("id", "description"), ("primitive", *_BLOCKS[:2]))
        identifier = ResourceId(element.attributes["id"])
        meta = self._sets.read(element, "meta_attributes")
        judge_meta(self._notes, element, meta)
        group = Group(
            identifier, (), self._sets.read(element, "instance_attributes"), meta, element.get("description") or ""
        )
        self.resources[identifier] = group
        members = [self._primitive(child) for child in element.all("primitive")]
        held = tuple(member for member in members if member is not None)
        self.resources[identifier] = replace(group, members=held)

    def _primitive(self, element: Element) -> ResourceId | None:
        if not self._is_new(element):
            return None
        agent = self._agent(element)
        if agent is None:
            self.not_held.add(element.attributes["id"])
            return None
        known = ("id", "class", "provider", "type", "description")
        self._notes.expect_only(element, known, ("operations", *_BLOCKS))
        meta = self._sets.read(element, "meta_attributes")
        judge_meta(self._notes, element, meta)
        identifier = ResourceId(element.attributes["id"])
        operations = [self._operation(each) for block in element.all("operations") for each in self._listed(block)]
        self.resources[identifier] = Primitive(
            identifier,
            agent,
            self._sets.read(element, "instance_attributes"),
            meta,
            self._sets.read(element, "utilization"),
            tuple(operation for operation in operations if operation is not None),
            element.get("description") or "",
        )
        return identifier

    def _agent(self, element: Element) -> AgentReference | None:
        if element.get("template") is not None:
            self._notes.not_yet(element, "a primitive from a template")
            return None
        standard, type_ = self._notes.required(element, "class"), self._notes.required(element, "type")
        if standard is None or type_ is None:
            return None
        agent = AgentReference(standard, element.get("provider") or None, type_)
        if str(agent) == "ocf:pacemaker:remote":
            self._notes.not_yet(element, "a Pacemaker Remote connection")
            return None
        return agent

    def _listed(self, block: Element) -> list[Element]:
        self._notes.expect_only(block, ("id",), ("op",))
        return list(block.all("op"))

    def _operation(self, element: Element) -> Operation | None:
        notes = self._notes
        name = notes.required(element, "name")
        if name is None:
            return None
        notes.expect_only(element, _OPERATION_KNOWN, _BLOCKS[:2])
        element, meta = self._with_own_meta(element)
        interval_ms = notes.duration_ms(element, "interval") or 0
        return Operation(
            element.get("id") or f"{name}-{durations.render(interval_ms)}",
            name,
            interval_ms,
            notes.duration_ms(element, "timeout"),
            self._role(element),
            element.get("on-fail"),
            notes.duration_ms(element, "start-delay") or 0,
            notes.boolean(element, "enabled", default=True),
            element.get("requires"),
            self._sets.read(element, "instance_attributes"),
            meta,
        )

    def _role(self, element: Element) -> str | None:
        text = element.get("role")
        if text is None:
            return None
        try:
            role = read_role(text)
        except ValueError as error:
            self._notes.bad_value(element, "role", error)
            return None
        if role in ("Promoted", "Unpromoted"):
            self._notes.not_yet(element, f"an operation with role {role}")
        return role

    def _with_own_meta(self, element: Element) -> tuple[Element, tuple[AttributeSet, ...]]:
        """Give what an operation's meta block says to the operation itself, whose own attributes win."""
        blocks = self._sets.read(element, "meta_attributes")
        said = {name: value for block in reversed(blocks) for name, value in block.pairs if name in _OPERATION_KEYS}
        kept = (replace(block, pairs=tuple(each for each in block.pairs if each[0] not in said)) for block in blocks)
        merged = Element(element.tag, {**said, **element.attributes}, element.line, element.children)
        return merged, tuple(block for block in kept if block.pairs)
