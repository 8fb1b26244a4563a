"""Constraints in CIB XML (Pacemaker Explained, "Resource Constraints").

A constraint on a resource that does not exist has no effect in Pacemaker but a warning; here it is the same.
"""

from collections.abc import Collection, Mapping

from haclusterd.formats.cib_xml_notes import Notes
from haclusterd.formats.cib_xml_tree import Element
from haclusterd.model.configuration import Colocation, Constraint, Location, Ordering, OrderingKind, Resource
from haclusterd.model.ids import ConstraintId, NodeName, ResourceId
from haclusterd.model.operations import read_role
from haclusterd.reports.codes import Code, Severity

_KINDS = {kind.value.lower(): kind for kind in OrderingKind}
_OF_PROMOTABLES = ("promote", "demote")


class ConstraintReader:
    """Reads the section `constraints`."""

    def __init__(self, resources: Mapping[ResourceId, Resource], not_held: Collection[str], notes: Notes) -> None:
        self._resources = resources
        self._not_held = not_held
        self._notes = notes
        self.constraints: dict[ConstraintId, Constraint] = {}

    def read(self, section: Element) -> None:
        """Read all constraints, in document order."""
        for element in section.children:
            made = self._one(element)
            if made is None:
                continue
            if made.id in self.constraints:
                self._notes.note(Code.DUPLICATE_ID, element, id=made.id)
            else:
                self.constraints[made.id] = made

    def _one(self, element: Element) -> Constraint | None:
        identifier = self._notes.required(element, "id")
        if identifier is None:
            return None
        if element.children or element.get("rsc-pattern") is not None:
            inside = f" with <{element.children[0].tag}>" if element.children else " with rsc-pattern"
            self._notes.not_yet(element, f"<{element.tag}>{inside}")
            return None
        match element.tag:
            case "rsc_location":
                return self._location(element, ConstraintId(identifier))
            case "rsc_colocation":
                return self._colocation(element, ConstraintId(identifier))
            case "rsc_order":
                return self._ordering(element, ConstraintId(identifier))
            case _:
                self._notes.not_yet(element, f"<{element.tag}>")
                return None

    def _resource(self, element: Element, name: str) -> ResourceId | None:
        """Return a resource that an attribute names."""
        text = self._notes.required(element, name)
        if text is None:
            return None
        if ResourceId(text) in self._resources:
            return ResourceId(text)
        if text in self._not_held:
            self._notes.not_yet(element, f"<{element.tag}> with {text}")
        else:
            where = f"constraint {element.get('id')}"
            self._notes.note(Code.UNKNOWN_RESOURCE, element, severity=Severity.WARNING, where=where, id=text)
        return None

    def _location(self, element: Element, identifier: ConstraintId) -> Location | None:
        self._notes.expect_only(element, ("id", "rsc", "node", "score", "role", "resource-discovery"))
        resource, node = self._resource(element, "rsc"), self._notes.required(element, "node")
        discovery = element.get("resource-discovery")
        if discovery not in (None, "always"):
            self._notes.not_yet(element, f"resource-discovery={discovery}")
        if self._role(element, "role") in ("Promoted", "Stopped"):
            self._notes.not_yet(element, f"a location for role {element.get('role')}")
        if resource is None or node is None:
            return None
        return Location(identifier, resource, NodeName(node), self._notes.score(element, "score", 0))

    def _colocation(self, element: Element, identifier: ConstraintId) -> Colocation | None:
        known = ("id", "rsc", "with-rsc", "score", "rsc-role", "with-rsc-role", "node-attribute", "influence")
        self._notes.expect_only(element, known)
        dependent, primary = self._resource(element, "rsc"), self._resource(element, "with-rsc")
        roles = self._role(element, "rsc-role"), self._role(element, "with-rsc-role")
        for role in roles:
            if role not in (None, "Started"):
                self._notes.not_yet(element, f"a colocation with role {role}")
        if dependent is None or primary is None:
            return None
        has_influence = element.get("influence") is not None
        influence = self._notes.boolean(element, "influence", default=False) if has_influence else None
        score = self._notes.score(element, "score", 0)
        attribute = element.get("node-attribute")
        return Colocation(identifier, score, dependent, primary, roles[0], roles[1], attribute, influence)

    def _role(self, element: Element, name: str) -> str | None:
        text = element.get(name)
        if text is None:
            return None
        try:
            return read_role(text)
        except ValueError as error:
            self._notes.bad_value(element, name, error)
            return None

    def _ordering(self, element: Element, identifier: ConstraintId) -> Ordering | None:
        known = (
            "id", "first", "then", "first-action", "then-action", "kind", "score", "symmetrical", "require-all"
        )  # fmt: skip
        self._notes.expect_only(element, known)
        first, then = self._resource(element, "first"), self._resource(element, "then")
        for name in ("first-action", "then-action"):
            if element.get(name) in _OF_PROMOTABLES:
                self._notes.not_yet(element, f"an order with {element.get(name)}")
        if first is None or then is None:
            return None
        return Ordering(
            identifier,
            first,
            then,
            self._kind(element),
            element.get("first-action") or "start",
            element.get("then-action"),
            self._notes.boolean(element, "symmetrical", default=True),
            self._notes.boolean(element, "require-all", default=True),
        )

    def _kind(self, element: Element) -> OrderingKind:
        """Read how binding an order is; the older way to say "optional" is a score of 0."""
        text = element.get("kind")
        if text is None:
            has_zero = element.get("score") is not None and self._notes.score(element, "score", 0) == 0
            return OrderingKind.OPTIONAL if has_zero else OrderingKind.MANDATORY
        kind = _KINDS.get(text.lower())
        if kind is None:
            problem = f"{text!r} is not one of: {', '.join(OrderingKind)}; it is read as {OrderingKind.MANDATORY}"
            self._notes.bad_value(element, "kind", problem, severity=Severity.WARNING)
        return kind or OrderingKind.MANDATORY
