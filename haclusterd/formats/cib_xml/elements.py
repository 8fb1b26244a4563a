"""Elements of CIB XML as lines of text, with ids that are unique and well-formed: what all writers share.

What the model holds twice under one id was a reference in the text, and is written as one again.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from haclusterd.formats.cib_xml.tree import Element
from haclusterd.model import scores
from haclusterd.model.configuration import AttributeSet, PairNote
from haclusterd.model.rules import (
    AttributeExpression,
    Condition,
    DateExpression,
    OperationExpression,
    ResourceExpression,
    Rule,
)
from haclusterd.wire.xml_text import escape

Attributes = Mapping[str, str | None]
"""Attributes without a value are left out."""

_ENTITIES = {'"': "&quot;", "'": "&apos;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that no XML document can have, not even as references (XML 1.0, "Characters")."""
_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9._-]")


def element(tag: str, attributes: Attributes, inside: Iterable[str] = (), text: str = "") -> Iterator[str]:
    """Yield the lines of an element; one with a text has nothing else inside."""
    words = "".join(f" {name}={quoted(value)}" for name, value in attributes.items() if value is not None)
    lines = [f"  {line}" for line in inside]
    if text:
        yield f"<{tag}{words}>{escape(readable(text), {})}</{tag}>"
        return
    if not lines:
        yield f"<{tag}{words}/>"
        return
    yield f"<{tag}{words}>"
    yield from lines
    yield f"</{tag}>"


def write_elements(root: Element) -> str:
    """Write a tree of elements."""
    return "\n".join(_lines_of(root)) + "\n"


def _lines_of(each: Element) -> Iterator[str]:
    return element(each.tag, each.attributes, (line for child in each.children for line in _lines_of(child)))


def quoted(value: str) -> str:
    """Return an attribute's value in double quotes, which is what programs that search XML by patterns look for.

    What agents say, as the reason of a failure, may have characters that would make the whole document unreadable.
    """
    return f'"{escape(readable(value), _ENTITIES)}"'


def readable(text: str) -> str:
    """Return a text with U+FFFD in place of what no XML document can have."""
    return _NOT_IN_XML.sub("\ufffd", text)


def flag(value: bool | None, *, default: bool | None = None) -> str | None:
    """Write a boolean; None when it is the default."""
    return None if value is None or value is default else str(value).lower()


def number(value: int | None) -> str | None:
    """Write a whole number."""
    return None if value is None else str(value)


class BlockWriter:
    """Writes blocks and rules of one document, and knows which ids it has written."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._written: dict[tuple[str, str], object] = {}

    def fresh(self, wanted: str) -> str:
        """Return an id for an element that has none in the model."""
        plain = _NOT_IN_IDS.sub("_", wanted)
        plain = plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}"
        chosen, count = plain, 1
        while chosen in self._ids:
            count += 1
            chosen = f"{plain}-{count}"
        self._ids.add(chosen)
        return chosen

    def sets(self, tag: str, blocks: tuple[AttributeSet, ...]) -> Iterator[str]:
        """Yield blocks of name-value pairs."""
        for block in blocks:
            if self.is_repeated(tag, block.id, block):
                yield from element(tag, {"id-ref": block.id})
                continue
            score = scores.render(block.score) if block.score else None
            inside = [] if block.rule is None else list(self.rule(block.rule))
            notes = {note.name: note for note in block.notes}
            for name, value in block.pairs:
                inside += element("nvpair", self._pair(block.id, name, value, notes.get(name)))
            for name in block.valueless:
                inside += element("nvpair", {"id": self.fresh(f"{block.id}-{name}"), "name": name})
            yield from element(tag, {"id": block.id, "score": score}, inside)

    def _pair(self, block: str, name: str, value: str, note: PairNote | None) -> Mapping[str, str | None]:
        if note is not None and note.is_reference:
            return {"id-ref": note.id, "name": name if note.says_name else None}
        wanted = f"{block}-{name}" if note is None else note.id
        return {"id": self.fresh(wanted), "name": name, "value": value}

    def rule(self, rule: Rule) -> Iterator[str]:
        """Yield a rule with its conditions."""
        if rule.id and self.is_repeated("rule", rule.id, rule):
            yield from element("rule", {"id-ref": rule.id})
            return
        identifier = rule.id or self.fresh("rule")
        attributes = {
            "id": identifier,
            "boolean-op": "or" if rule.is_any else None,
            "score": None if rule.score is None else scores.render(rule.score),
            "score-attribute": rule.score_attribute,
            "role": rule.role,
        }
        yield from element(
            "rule", attributes, (line for each in rule.conditions for line in self._of(each, identifier))
        )

    def _of(self, condition: Condition, parent: str) -> Iterator[str]:
        if isinstance(condition, Rule):
            return self.rule(condition)
        identifier = self.fresh(f"{parent}-expr")
        match condition:
            case AttributeExpression():
                return element("expression", {"id": identifier, **_attribute(condition)})
            case DateExpression():
                return self._date(condition, identifier)
            case ResourceExpression(standard, provider, type_):
                agent = {"class": standard, "provider": provider, "type": type_}
                return element("rsc_expression", {"id": identifier, **agent})
            case OperationExpression(name, interval):
                return element("op_expression", {"id": identifier, "name": name, "interval": interval})

    def _date(self, condition: DateExpression, identifier: str) -> Iterator[str]:
        inside: list[str] = []
        for tag, parts in (("duration", condition.duration), ("date_spec", condition.spec)):
            if parts:
                inside += element(tag, {"id": self.fresh(f"{identifier}-{tag}"), **dict(parts)})
        attributes = {
            "id": identifier,
            "operation": condition.operation,
            "start": condition.start,
            "end": condition.end,
        }
        return element("date_expression", attributes, inside)

    def is_repeated(self, tag: str, identifier: str, content: object) -> bool:
        """Tell whether the same has been written already; an id occurs in a document once."""
        self._ids.add(identifier)
        if (tag, identifier) in self._written:
            return self._written[tag, identifier] == content
        self._written[tag, identifier] = content
        return False


def _attribute(condition: AttributeExpression) -> dict[str, str | None]:
    return {
        "attribute": condition.attribute,
        "operation": condition.operation,
        "value": condition.value,
        "value-source": condition.value_source,
        "type": condition.type,
    }
