"""Embedded XML in crm statements: `xml <primitive .../>`, any one element of a configuration (cli.md §4.4)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from haclusterd.formats.cib_xml.document import read_cib
from haclusterd.formats.cib_xml.tree import parse_tree
from haclusterd.formats.crm.cursor import Cursor, RefusedError
from haclusterd.formats.statements import Define, DefineLevels, Statement
from haclusterd.model.configuration import Configuration
from haclusterd.reports.codes import Code
from haclusterd.reports.items import Place, ReportItem

XML = "xml"

_SECTIONS: Mapping[str, str] = {
    "node": "nodes",
    **dict.fromkeys(("primitive", "template", "group", "clone", "master", "bundle"), "resources"),
    **dict.fromkeys(("rsc_location", "rsc_colocation", "rsc_order", "rsc_ticket"), "constraints"),
    "tag": "tags",
    "fencing-level": "fencing-topology",
}
_FOUND_LATER = frozenset({Code.UNKNOWN_RESOURCE})
"""What one element cannot know: other statements may define it."""


def read_xml(cursor: Cursor) -> Sequence[Statement]:
    """Read `xml ELEMENT`; an element with others in it makes one statement for each object."""
    place, at = cursor.line.place, cursor.line.tokens[0]
    element = cursor.line.text.strip()[len(XML) :].strip()
    root = parse_tree(element, place.file)
    if isinstance(root, ReportItem):
        cursor.reports.append(replace(root, place=place))
        raise RefusedError
    section = _SECTIONS.get(root.tag)
    if section is None:
        raise cursor.refuse(Code.UNEXPECTED, at, construct=XML, found=root.tag)
    text = f"<cib><configuration><{section}>{element}</{section}></configuration></cib>"
    reading = read_cib(text, place.file)
    cursor.reports += [replace(each, place=place) for each in reading.reports if each.code not in _FOUND_LATER]
    return tuple(_statements(reading.cib.configuration, place, cursor.line.comments))


def _statements(made: Configuration, place: Place, comments: tuple[str, ...]) -> list[Statement]:
    found: list[Statement] = [
        Define(each, place, comments=comments)
        for each in (*made.nodes.values(), *made.templates.values(), *made.resources.values(),
                     *made.constraints.values(), *made.tags.values())
    ]  # fmt: skip
    if made.fencing_levels:
        found.append(DefineLevels(made.fencing_levels, place, comments=comments))
    return found
