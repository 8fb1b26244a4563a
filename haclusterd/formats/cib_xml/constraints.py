"""Constraints in CIB XML (Pacemaker Explained, "Resource Constraints").

A constraint on a resource that does not exist has no effect in Pacemaker but a warning; here it is the same, and it
stays in the configuration.
"""

from collections.abc import Callable, Container, Mapping

from haclusterd.formats.cib_xml.notes import AS_IN_PACEMAKER, Notes
from haclusterd.formats.cib_xml.sets import SetReader
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.formats.constraint_words import ACTIONS, DISCOVERIES, KINDS, LOSS_POLICIES
from haclusterd.formats.generated_ids import rule_base
from haclusterd.formats.stated import stated
from haclusterd.model.configuration import (
    Colocation,
    Constraint,
    Location,
    Ordering,
    OrderingKind,
    ResourceSet,
    TicketConstraint,
)
from haclusterd.model.ids import ConstraintId, NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.model.rules import AttributeExpression, Condition, DateExpression, Rule, looks_at_dates_only
from haclusterd.reports.codes import Code, Severity

_REFERENCES = ("rsc", "with-rsc", "first", "then")
_ONE_BY_ONE = ("rsc_location", "rsc_ticket")
"""Constraints that do not relate resources with each other."""

MAX_MEMBERS = 1000
"""Resources in one constraint: each may be related with each."""
MAX_PAIRS = 2_000_000
"""Pairs of resources that all constraints of a document relate, at most."""


class ConstraintReader:
    """Reads the section `constraints`.

    `known` are the names that resources have in constraints; `sizes` tells of those that stand for several (tags,
    templates) for how many.
    """

    def __init__(self, sets: SetReader, known: Container[str], sizes: Mapping[str, int], notes: Notes) -> None:
        self._rules = sets.rules
        self._references = sets.references
        self._sizes = sizes
        self._pairs_left = MAX_PAIRS
        self._resource_sets = ResourceSetReader(sets, notes)
        self._known = known
        self._notes = notes
        self._readers: Mapping[str, Callable[[Element, ConstraintId], Constraint | None]] = {
            "rsc_location": self._location,
            "rsc_colocation": self._colocation,
            "rsc_order": self._ordering,
            "rsc_ticket": self._ticket,
        }
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
        reader = self._readers.get(element.tag)
        self._notes.left_out(element, "description", "only resources have a description here")
        if reader is None:
            self._notes.not_yet(element, f"<{element.tag}>")
        if identifier is None or reader is None or not self._is_affordable(element):
            return None
        return reader(element, ConstraintId(identifier))

    def _is_affordable(self, element: Element) -> bool:
        """Tell whether a constraint relates no more resources than anybody could mean; report when it does."""
        named = [element.attributes[name] for name in _REFERENCES if name in element.attributes]
        for written in element.all("resource_set"):
            each = self._references.target(written)
            named += [member.get("id") or "" for member in each.all("resource_ref")] if each is not None else []
        count = sum(self._sizes.get(name, 1) for name in named)
        self._pairs_left -= count if element.tag in _ONE_BY_ONE else count * count // 4
        if count <= MAX_MEMBERS and self._pairs_left >= 0:
            return True
        what = f"<{element.tag}>" if count > MAX_MEMBERS else "what all constraints relate"
        limit = f"{MAX_MEMBERS} resources" if count > MAX_MEMBERS else f"{MAX_PAIRS} pairs of resources"
        self._notes.note(Code.TOO_LARGE, element, what=what, limit=limit)
        return False

    def _resource(self, element: Element, name: str) -> ResourceId | None:
        """Return what an attribute names, whether it exists or not; None, and a report, when there is none."""
        text = self._notes.required(element, name)
        if text is None:
            return None
        self._judge(element, element.get("id"), text)
        return ResourceId(text)

    def _judge(self, element: Element, constraint: str | None, name: str) -> None:
        if name not in self._known:
            where = f"constraint {constraint}"
            self._notes.note(Code.UNKNOWN_RESOURCE, element, severity=Severity.WARNING, where=where, id=name)

    def _sets(self, element: Element) -> tuple[ResourceSet, ...]:
        """Read sets; of those with a place of their own, tell what they name that does not exist."""
        found = self._resource_sets.read(element)
        for each in found:
            for member in each.members:
                self._judge(element, element.get("id"), member)
        return found

    def _location(self, element: Element, identifier: ConstraintId) -> Location | None:
        notes = self._notes
        known = ("id", "description", "rsc", "rsc-pattern", "node", "score", "role", "resource-discovery")
        notes.expect_only(element, known, ("rule", "lifetime", "resource_set"))
        sets = self._sets(element)
        pattern = notes.pattern(element, "rsc-pattern")
        resource = None if sets or element.get("rsc-pattern") else self._resource(element, "rsc")
        written = list(element.all("rule"))
        rules = tuple(rule for each in written if (rule := self._rules.read(each)) is not None)
        node = None if written else notes.required(element, "node")
        if (resource is None and not sets and not pattern) or (node is None and not rules):
            return None
        made = Location(
            identifier,
            resource or ResourceId(""),
            NodeName(node or ""),
            notes.score(element, "score", 0),
            rules,
            pattern,
            sets,
            notes.role(element, "role"),
            notes.word(element, "resource-discovery", DISCOVERIES),
        )
        lifetime = element.first("lifetime")
        return made if lifetime is None else self._limited(made, lifetime)

    def _limited(self, location: Location, lifetime: Element) -> Location | None:
        """Return a location of a schema before 4.0 with its lifetime as a condition of its rules.

        Only dates count in it, as in Pacemaker 2.1.5; one that never holds takes the location with it.
        """
        inside = self._lifetime(lifetime, location.id)
        if inside is None:
            return None
        if not all(map(looks_at_dates_only, inside)):
            problem = f"<lifetime> of {location.id}: only dates count in it; another condition is false"
            remedy = "put conditions on nodes into a <rule> of the location"
            self._notes.dropped(lifetime, f"{problem}, {AS_IN_PACEMAKER}", remedy)
        conditions = tuple(dated for rule in inside if (dated := _by_dates(rule)) is not None)
        if inside and not conditions:
            return None
        if not conditions:
            return location
        at_node = AttributeExpression("#uname", "eq", location.node)
        base = location.rules or (Rule(f"{location.id}-rule", (at_node,), score=location.score),)
        limited = tuple(
            Rule(
                f"{rule.id}-lifetime",
                (rule, Rule(f"{rule.id}-lifetime-any", conditions, is_any=True)),
                score=rule.score,
                score_attribute=rule.score_attribute,
                role=rule.role,
            )
            for rule in base
        )
        return Location(
            location.id, location.resource, NodeName(""), 0, limited, location.pattern, location.sets,
            location.role, location.discovery,
        )  # fmt: skip

    def _lifetime(self, lifetime: Element, owner: str) -> tuple[Rule, ...] | None:
        """Read the rules of a lifetime, of which one must hold; None, and a report, when one cannot be read.

        A rule in it has a score because the schema wants one; from that nothing follows.
        """
        self._notes.expect_only(lifetime, ("id",), ("rule",))
        rules: list[Rule] = []
        for each in lifetime.all("rule"):
            rule = self._rules.read(each)
            if rule is None:
                return None
            if rule.role is not None:
                problem = f"<rule role> in <lifetime>: a lifetime is for all roles, {AS_IN_PACEMAKER}"
                self._notes.dropped(each, problem, "put the role into the constraint")
            # A rule that is only referred to keeps its score where it stands, so this one needs another id.
            id_ = rule.id if each.get("id-ref") is None else rule_base(owner)
            rules.append(replace(rule, id=id_, score=None, score_attribute=None, role=None))
        return tuple(rules)

    def _own_lifetime(self, element: Element) -> tuple[Rule, ...] | None:
        """Read the lifetime of a colocation or an ordering."""
        lifetime = element.first("lifetime")
        return () if lifetime is None else self._lifetime(lifetime, element.get("id") or "")

    def _colocation(self, element: Element, identifier: ConstraintId) -> Colocation | None:
        notes = self._notes
        known = (
            "id", "description", "rsc", "with-rsc", "score", "rsc-role", "with-rsc-role", "node-attribute", "influence",
        )  # fmt: skip
        notes.expect_only(element, known, ("resource_set", "lifetime"))
        score = notes.score(element, "score", 0)
        influence = notes.optional_boolean(element, "influence")
        attribute = element.get("node-attribute")
        lifetime = self._own_lifetime(element)
        sets = self._sets(element)
        if lifetime is None:
            return None
        if sets:
            return Colocation(
                identifier, score, node_attribute=attribute, influence=influence, sets=sets, lifetime=lifetime
            )
        dependent, primary = self._resource(element, "rsc"), self._resource(element, "with-rsc")
        roles = notes.role(element, "rsc-role"), notes.role(element, "with-rsc-role")
        if dependent is None or primary is None:
            return None
        return Colocation(
            identifier, score, dependent, primary, roles[0], roles[1], attribute, influence, lifetime=lifetime
        )

    def _ordering(self, element: Element, identifier: ConstraintId) -> Ordering | None:
        notes = self._notes
        known = (
            "id", "description", "first", "then", "first-action", "then-action", "kind", "score", "symmetrical",
            "require-all",
        )  # fmt: skip
        notes.expect_only(element, known, ("resource_set", "lifetime"))
        kind = self._kind(element)
        is_symmetrical = notes.boolean(element, "symmetrical", default=True)
        require_all = notes.boolean(element, "require-all", default=True)
        lifetime = self._own_lifetime(element)
        sets = self._sets(element)
        if lifetime is None:
            return None
        if sets:
            return Ordering(
                identifier, kind=kind, is_symmetrical=is_symmetrical, require_all=require_all, sets=sets,
                stated=stated(element.get("kind"), None),
                lifetime=lifetime,
            )  # fmt: skip
        first, then = self._resource(element, "first"), self._resource(element, "then")
        if first is None or then is None:
            return None
        first_action = notes.word(element, "first-action", ACTIONS) or "start"
        then_action = notes.word(element, "then-action", ACTIONS)
        return Ordering(
            identifier, first, then, kind, first_action, then_action, is_symmetrical, require_all,
            stated=stated(element.get("kind"), element.get("first-action")), lifetime=lifetime,
        )  # fmt: skip

    def _kind(self, element: Element) -> OrderingKind:
        """Read how binding an order is; the older way to say "optional" is a score of 0."""
        text = element.get("kind")
        if text is None:
            has_zero = element.get("score") is not None and self._notes.score(element, "score", 0) == 0
            return OrderingKind.OPTIONAL if has_zero else OrderingKind.MANDATORY
        kind = KINDS.get(text.lower())
        if kind is None:
            problem = f"{text!r} is not one of: {', '.join(OrderingKind)}; it is read as {OrderingKind.MANDATORY}"
            self._notes.bad_value(element, "kind", problem, severity=Severity.WARNING)
        return kind or OrderingKind.MANDATORY

    def _ticket(self, element: Element, identifier: ConstraintId) -> TicketConstraint | None:
        notes = self._notes
        notes.expect_only(element, ("id", "description", "ticket", "rsc", "rsc-role", "loss-policy"), ("resource_set",))
        ticket = notes.required(element, "ticket")
        sets = self._sets(element)
        resource = None if sets else self._resource(element, "rsc")
        if ticket is None or (resource is None and not sets):
            return None
        return TicketConstraint(
            identifier,
            ticket,
            resource or ResourceId(""),
            notes.role(element, "rsc-role"),
            notes.word(element, "loss-policy", LOSS_POLICIES),
            sets,
        )


def _by_dates(rule: Rule) -> Rule | None:
    """Return a rule without the conditions that are not on dates, which are false; None when it never holds."""
    kept: list[Condition] = []
    for each in rule.conditions:
        dated = _by_dates(each) if isinstance(each, Rule) else each if isinstance(each, DateExpression) else None
        if dated is not None:
            kept.append(dated)
        elif not rule.is_any:
            return None
    return replace(rule, conditions=tuple(kept)) if kept or not rule.conditions else None


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
            notes.word(element, "action", ACTIONS),
            notes.role(element, "role"),
            None if element.get("score") is None else notes.score(element, "score", 0),
            element.get("kind"),
            notes.word(element, "ordering", ("group", "listed")),
        )

    def _choice(self, element: Element, name: str) -> bool | None:
        """Read a boolean that may be left open."""
        return None if element.get(name) is None else self._notes.boolean(element, name, default=True)
