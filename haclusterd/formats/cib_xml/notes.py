"""What a reader of CIB XML has to tell: each note with the element's line. Nothing of a CIB is dropped without one."""

import re
from collections.abc import Collection

from haclusterd.formats.cib_xml.tree import Element
from haclusterd.model import durations, scores
from haclusterd.model.operations import read_role
from haclusterd.model.patterns import compile_pattern
from haclusterd.model.properties import read_boolean
from haclusterd.model.records import dataclass, field
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.items import Place, ReportItem, report, report_with

_LARGEST = 2**53
_DIGITS_MAX = 100
_FRACTION = re.compile(r"\A(\s*[0-9]+)\.[0-9]+(?=\s*[a-zA-Z]*\s*\Z)")
_SCORE = re.compile(r"\s*[+-]?[0-9]+\s*|[+-]?INFINITY")
_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")
AS_IN_PACEMAKER = "as in Pacemaker"
"""In a message: what was left out or replaced means the same there."""


_INSTEAD = {
    ("rsc_location", "score-attribute"): "write it at a rule in the location: <rule score-attribute=...>",
    ("rsc_colocation", "rule"): "put it into a <lifetime>, or give the dependent resource a location with that rule",
    ("rsc_colocation", "score-attribute"): "write score=NUMBER",
    ("group", "group"): "put its members into the group around it: Pacemaker has no groups in groups either",
    ("rsc_order", "rule"): "put it into a <lifetime>",
    ("rsc_ticket", "lifetime"): "leave it out, and when its time is over: crm configure delete ID",
}
"""What is written instead of an attribute or a child that cannot be held."""


@dataclass(slots=True)
class Notes:
    """Collects reports about one document."""

    source: str
    reports: list[ReportItem] = field(default_factory=list)

    def place(self, element: Element) -> Place:
        """Return where an element begins."""
        return Place(self.source, element.line)

    def note(self, code: Code, element: Element, *, severity: Severity | None = None, **parameters: object) -> None:
        """Report something about an element."""
        self.reports.append(report_with(code, parameters, place=self.place(element), severity=severity))

    def not_yet(self, element: Element, construct: str, *, has_effect: bool = True, remedy: str | None = None) -> None:
        """Report what the model cannot hold; without effect on any plan it is only a warning."""
        severity = Severity.ERROR if has_effect else Severity.WARNING
        remedy = remedy if has_effect else ""
        self.reports.append(
            report(Code.NOT_YET, place=self.place(element), severity=severity, construct=construct, remedy=remedy)
        )

    def left_out(self, element: Element, name: str, why: str) -> None:
        """Report an attribute from which nothing follows, when it is there."""
        if element.get(name) is not None:
            problem = f"<{element.tag} {name}>: {why}"
            self.note(Code.LEFT_OUT, element, severity=Severity.WARNING, problem=problem)

    def dropped(self, element: Element, problem: str, remedy: str) -> None:
        """Report what is not obeyed here, with what to do about it."""
        place = self.place(element)
        self.reports.append(
            report(Code.LEFT_OUT, place=place, severity=Severity.WARNING, remedy=remedy, problem=problem)
        )

    def expect_only(self, element: Element, attributes: Collection[str], children: Collection[str] = ()) -> None:
        """Report attributes and children that nobody reads."""
        for name in element.attributes:
            if name not in attributes:
                remedy = _INSTEAD.get((element.tag, name))
                self.not_yet(element, f"<{element.tag}>: attribute {name}", remedy=remedy)
        for child in element.children:
            if child.tag not in children:
                remedy = _INSTEAD.get((element.tag, child.tag))
                self.not_yet(child, f"<{child.tag}> in <{element.tag}>", remedy=remedy)

    def required(self, element: Element, name: str) -> str | None:
        """Return an attribute; report that it is missing."""
        value = element.get(name)
        if not value:
            self.note(Code.MISSING_KEY, element, where=f"<{element.tag}>", key=name)
            return None
        return value

    def boolean(self, element: Element, name: str, *, default: bool) -> bool:
        """Read a boolean attribute."""
        text = element.get(name)
        if text is None:
            return default
        try:
            return read_boolean(text)
        except ValueError as error:
            self.bad_value(element, name, error)
            return default

    def optional_boolean(self, element: Element, name: str) -> bool | None:
        """Read a boolean attribute; None when there is none, or none that can be read: Pacemaker ignores it then."""
        text = element.get(name)
        if text is None:
            return None
        try:
            return read_boolean(text)
        except ValueError as error:
            self.bad_value(element, name, error, severity=Severity.WARNING)
            return None

    def score(self, element: Element, name: str, default: int) -> int:
        """Read a score attribute, as Pacemaker reads it."""
        text = element.get(name)
        if text is None:
            return default
        counted = scores.as_in_pacemaker(text)
        if not _SCORE.fullmatch(text):
            problem = f"not a score: {text[:40]!r}; {scores.render(counted)} counts instead, {AS_IN_PACEMAKER}"
            remedy = "write a whole number, INFINITY or -INFINITY"
            self.bad_value(element, name, problem, severity=Severity.WARNING, remedy=remedy)
        return counted

    def duration_ms(self, element: Element, name: str, *, is_timeout: bool = False) -> int | None:
        """Read a duration attribute; None when there is none, or none that can be read: Pacemaker ignores it then.

        Of a fraction Pacemaker drops what is after the point; it reads ISO 8601 where an interval stands, and not
        where a timeout does (seen with crm_simulate 2.1.5 and 3.0.0).
        """
        text = element.get(name)
        if text is None:
            return None
        whole = _FRACTION.sub(r"\1", text)
        try:
            if is_timeout and text.lstrip().startswith("P"):
                raise ValueError(f"not a timeout: {text[:40]!r} (write it like 30s, 500ms, 2min)")
            span_ms = durations.parse(whole)
        except ValueError as error:
            problem = f"{error}; its default counts instead, {AS_IN_PACEMAKER}"
            self.bad_value(element, name, problem, severity=Severity.WARNING)
            return None
        if whole != text:
            problem = f"a fraction: {text[:40]!r}; {whole.strip()} counts instead, {AS_IN_PACEMAKER}"
            self.bad_value(element, name, problem, severity=Severity.WARNING, remedy="write it in a smaller unit")
        if span_ms > _LARGEST:
            self.bad_value(element, name, f"{text[:40]} is out of range")
            return None
        return span_ms

    def word(self, element: Element, name: str, choices: Collection[str]) -> str | None:
        """Read an attribute that is one of some words, in any case."""
        text = element.get(name)
        if text is None:
            return None
        if text.lower() not in choices:
            self.bad_value(element, name, f"{text[:40]!r} is not one of: {', '.join(choices)}")
            return None
        return text.lower()

    def pattern(self, element: Element, name: str) -> str:
        """Read a regular expression; the empty text when there is none, or none that can be read."""
        text = element.get(name) or ""
        try:
            compile_pattern(text.removeprefix("!"))
        except ValueError as error:
            self.bad_value(element, name, f"{text[:40]!r} is no regular expression: {error}")
            return ""
        return text

    def role(self, element: Element, name: str) -> str | None:
        """Read the attribute that is a role, in its newest spelling."""
        text = element.get(name)
        if text is None:
            return None
        try:
            return read_role(text)
        except ValueError as error:
            self.bad_value(element, name, error)
            return None

    def number(self, element: Element, name: str, default: int) -> int:
        """Read a whole number."""
        text = element.get(name)
        if text is None or text == "":
            return default
        if not _WHOLE.fullmatch(text):
            self.bad_value(element, name, f"{text[:40]!r} is not a whole number")
            return default
        value = int(text) if len(text) <= _DIGITS_MAX else _LARGEST + 1
        if abs(value) > _LARGEST:
            self.bad_value(element, name, f"{text[:40]} is out of range")
            return default
        return value

    def bad_value(
        self, element: Element, name: str, problem: object, *, severity: Severity = Severity.ERROR,
        remedy: str | None = None,
    ) -> None:  # fmt: skip
        """Report a value that cannot be read."""
        parameters = {"name": f"<{element.tag} {name}>", "problem": problem}
        place = self.place(element)
        self.reports.append(report_with(Code.BAD_VALUE, parameters, place=place, severity=severity, remedy=remedy))
