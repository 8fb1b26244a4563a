"""Rules in CIB XML (Pacemaker Explained, "Rules").

A rule of which one condition cannot be read is not read at all: with a condition less it would say something else.
"""

import re
from collections.abc import Callable, Mapping

from haclusterd.formats.cib_xml.notes import AS_IN_PACEMAKER, Notes
from haclusterd.formats.cib_xml.references import References
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.formats.rule_words import (
    COMPARISONS,
    DATE_OPERATIONS,
    DURATION_UNITS,
    NUMBER,
    PRESENCE,
    RANGE,
    SOURCES,
    SPEC_FIELDS,
    TYPES,
)
from haclusterd.model.operations import read_role
from haclusterd.model.rules import (
    MAX_DEPTH,
    AttributeExpression,
    Condition,
    DateExpression,
    OperationExpression,
    ResourceExpression,
    Rule,
)


class _UnreadableError(Exception):
    """A condition was reported and cannot be read."""


class RuleReader:
    """Reads rules; a rule that only refers to another one is read as that one."""

    def __init__(self, references: References, notes: Notes) -> None:
        self._references = references
        self._notes = notes
        self._conditions: Mapping[str, Callable[[Element], Condition]] = {
            "expression": self._attribute,
            "date_expression": self._date,
            "rsc_expression": self._resource,
            "op_expression": self._operation,
        }

    def read(self, element: Element) -> Rule | None:
        """Read a rule; None, and a report, when it cannot be read."""
        try:
            return self._rule(element, 1)
        except _UnreadableError:
            return None

    def _rule(self, element: Element, depth: int) -> Rule:
        found = self._references.resolve(element)
        if found is None:
            raise _UnreadableError
        if depth > MAX_DEPTH:
            self._notes.bad_value(element, "id", f"rules are nested more than {MAX_DEPTH} deep")
            raise _UnreadableError
        attributes = ("id", "boolean-op", "score", "score-attribute", "role")
        self._notes.expect_only(found, attributes, ("rule", *self._conditions))
        conditions = tuple(
            self._rule(child, depth + 1) if child.tag == "rule" else self._conditions[child.tag](child)
            for child in found.children
            if child.tag == "rule" or child.tag in self._conditions
        )
        if len(conditions) < len(found.children):
            raise _UnreadableError
        is_any = self._word(found, "boolean-op", ("and", "or")) == "or" and len(conditions) > 1
        if depth > 1:
            for name in ("score", "score-attribute", "role"):
                self._notes.left_out(found, name, "only the outermost rule has one")
            return Rule(found.get("id") or "", conditions, is_any)
        score = None if found.get("score") is None else self._notes.score(found, "score", 0)
        return Rule(
            found.get("id") or "", conditions, is_any, score, found.get("score-attribute"), self._role(found)
        )

    def _role(self, element: Element) -> str | None:
        text = element.get("role")
        if text is None:
            return None
        try:
            return read_role(text)
        except ValueError as error:
            self._notes.bad_value(element, "role", error)
            raise _UnreadableError from None

    def _word(self, element: Element, name: str, choices: tuple[str, ...]) -> str | None:
        text = element.get(name)
        if text is None:
            return None
        if text.lower() not in choices:
            self._notes.bad_value(element, name, f"{text[:40]!r} is not one of: {', '.join(choices)}")
            raise _UnreadableError
        return text.lower()

    def _required(self, element: Element, name: str) -> str:
        text = self._notes.required(element, name)
        if text is None:
            raise _UnreadableError
        return text

    def _attribute(self, element: Element) -> AttributeExpression:
        self._notes.expect_only(element, ("id", "attribute", "operation", "value", "value-source", "type"))
        attribute, _ = self._required(element, "attribute"), self._required(element, "operation")
        operation = self._word(element, "operation", (*PRESENCE, *COMPARISONS))
        assert operation is not None, "it is required"
        if operation not in PRESENCE and element.get("value") is None:
            self._notes.bad_value(element, "operation", f"{operation} needs a value")
            raise _UnreadableError
        if operation in PRESENCE:
            for name in ("value", "value-source", "type"):
                self._notes.left_out(element, name, f"{operation} compares nothing")
            return AttributeExpression(attribute, operation)
        return AttributeExpression(
            attribute,
            operation,
            element.get("value"),
            self._word(element, "value-source", SOURCES),
            self._word(element, "type", TYPES),
        )

    def _date(self, element: Element) -> DateExpression:
        self._notes.expect_only(element, ("id", "operation", "start", "end"), ("duration", "date_spec"))
        operation = self._word(element, "operation", DATE_OPERATIONS)
        return DateExpression(
            operation or "in_range",
            element.get("start"),
            element.get("end"),
            self._parts(element, "duration", DURATION_UNITS, NUMBER),
            self._parts(element, "date_spec", SPEC_FIELDS, RANGE),
        )

    def _parts(
        self, element: Element, tag: str, names: tuple[str, ...], form: re.Pattern[str]
    ) -> tuple[tuple[str, str], ...]:
        found = element.first(tag)
        if found is None:
            return ()
        if found.get("moon") is not None:
            self._notes.dropped(found, "<date_spec moon>: nobody looks at the moon here", "write monthdays or weekdays")
        self._notes.expect_only(found, ("id", "moon", *names))
        parts = tuple((name, text.strip()) for name, text in found.attributes.items() if name in names)
        wrong = [(name, text) for name, text in parts if not form.match(text)]
        for name, text in wrong:
            problem = f"{text[:40]!r} is no number or range of numbers"
            if tag == "duration":
                self._notes.bad_value(found, name, problem)
                raise _UnreadableError
            # Seen with crm_simulate 2.1.5: a list, as in hours="1,3", excludes no time.
            remedy = f"write one range, as {name}=1-7, or a rule for each"
            what = f"<date_spec {name}>: {problem}, and excludes no time, {AS_IN_PACEMAKER}"
            self._notes.dropped(found, what, remedy)
        return tuple(part for part in parts if part not in wrong)

    def _resource(self, element: Element) -> ResourceExpression:
        self._notes.expect_only(element, ("id", "class", "provider", "type"))
        return ResourceExpression(element.get("class"), element.get("provider"), element.get("type"))

    def _operation(self, element: Element) -> OperationExpression:
        self._notes.expect_only(element, ("id", "name", "interval"))
        return OperationExpression(self._required(element, "name"), element.get("interval"))
