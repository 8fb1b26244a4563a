"""The crm language's statements: which word begins which, and what cannot be used yet (cli.md §4.4).

Every statement of the language is known here. Those that cannot be used yet are refused by name: a configuration is
never read with something left out. Embedded XML, `xml <primitive .../>`, is any one element of a configuration.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from haclusterd.formats.cib_xml.document import read_configuration
from haclusterd.formats.cib_xml.tree import parse_tree
from haclusterd.formats.crm.access import read_acl_group, read_role, read_target, read_user
from haclusterd.formats.crm.alerts import read_alert
from haclusterd.formats.crm.blocks import attribute_set, read_block, section_word
from haclusterd.formats.crm.bundles import read_bundle
from haclusterd.formats.crm.constraints import read_colocation, read_location, read_order, read_ticket
from haclusterd.formats.crm.cursor import Cursor, RefusedError
from haclusterd.formats.crm.mistakes import mistake
from haclusterd.formats.crm.objects import (
    read_clone,
    read_group,
    read_monitor,
    read_node,
    read_primitive,
    read_promotable_clone,
    read_tag,
    read_template,
)
from haclusterd.formats.crm.tokens import Line
from haclusterd.formats.crm.topology import read_topology
from haclusterd.formats.generated_ids import DEFAULT_SET_IDS
from haclusterd.formats.statements import Define, DefineLevels, MergeSet, Statement
from haclusterd.model.configuration import Configuration
from haclusterd.model.ids import NCNAME, AgentReference
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code
from haclusterd.reports.items import Place, ReportItem, has_errors
from haclusterd.reports.suggestions import did_you_mean

ALIASES = {"collocation": "colocation", "resource": "primitive", "ms": "ms", "master": "ms"}

SECTIONS = {"property": "properties", "rsc_defaults": "resource_defaults", "op_defaults": "operation_defaults"}

_READERS: dict[str, Callable[[Cursor], Statement]] = {
    "node": read_node,
    "group": read_group,
    "clone": read_clone,
    "ms": read_promotable_clone,
    "bundle": read_bundle,
    "tag": read_tag,
    "monitor": read_monitor,
    "location": read_location,
    "colocation": read_colocation,
    "order": read_order,
    "rsc_ticket": read_ticket,
    "fencing_topology": read_topology,
    "alert": read_alert,
    "role": read_role,
    "acl_target": read_target,
    "acl_group": read_acl_group,
}

_AGENT_READERS: dict[str, Callable[[Cursor, Collection[AgentReference]], Statement]] = {
    "primitive": read_primitive,
    "rsc_template": read_template,
}

NOT_YET = {
    "schema": ("a schema", "leave it out: there is one language, and no schema to choose"),
}
"""Statements of crmsh that cannot be used, what they are, and what to do instead."""

XML = "xml"
USER = "user"
"""One statement that makes two objects."""
KEYWORDS = frozenset({XML, USER, *_AGENT_READERS, *SECTIONS, *_READERS, *NOT_YET, *ALIASES})


def read_statement(
    line: Line, known_agents: Collection[AgentReference]
) -> tuple[Sequence[Statement], list[ReportItem]]:
    """Read one statement (embedded XML can be several); none when it is refused. With an error it is not to be used."""
    cursor = Cursor(line)
    try:
        several = _OF_SEVERAL.get(cursor.construct)
        made = several(cursor) if several is not None else (_dispatch(cursor, known_agents),)
    except RefusedError:
        made = ()
    if has_errors(cursor.reports):
        meant = mistake(line.tokens)
        if meant is not None:
            cursor.reports.clear()
            cursor.note(Code.EXPECTED, meant.at, remedy=meant.remedy, construct=cursor.construct,
                        expected=meant.expected, found=meant.found)  # fmt: skip
    return made, cursor.reports


def _dispatch(cursor: Cursor, known_agents: Collection[AgentReference]) -> Statement:
    keyword = ALIASES.get(cursor.construct, cursor.construct)
    head = cursor.line.tokens[0]
    if keyword in NOT_YET:
        what, remedy = NOT_YET[keyword]
        raise cursor.not_yet(what, head, remedy)
    if keyword in _AGENT_READERS:
        return _AGENT_READERS[keyword](cursor, known_agents)
    if keyword in SECTIONS:
        return _read_section(cursor, SECTIONS[keyword])
    reader = _READERS.get(keyword)
    if reader is None:
        remedy = did_you_mean(keyword, KEYWORDS, "all statements: crm help configure")
        if section_word(head) is not None:
            remedy = "it belongs to the statement before: end the line before with a backslash"
        raise cursor.refuse(Code.UNKNOWN_KEYWORD, head, remedy=remedy, word=head.text)
    return reader(cursor)


def _read_section(cursor: Cursor, section: str) -> MergeSet:
    """Read `property [SETID: | $id=ID [SCORE:]] [rule ...] {NAME=VALUE}`; defaults are written alike."""
    token = cursor.peek()
    set_id = None
    if token is not None and token.text.endswith(":") and NCNAME.match(token.text[:-1]):
        cursor.take("the id of the set")
        set_id = token.text[:-1]
    block = read_block(cursor, "attributes")
    if section_word(cursor.peek()) is not None:
        cursor.end()
    if block.reference:
        raise cursor.not_yet("$id-ref of a whole section", cursor.line.tokens[1], "write NAME=VALUE pairs")
    if not block.pairs and block.given_id is None and set_id is None and block.rule is None:
        raise cursor.expected("NAME=VALUE")
    for name, at in block.tokens.items():
        cursor.mark(section, name, at=at)
    id_ = block.given_id or set_id or DEFAULT_SET_IDS[section]
    return MergeSet(
        section,
        attribute_set(block, id_),
        cursor.line.place,
        block.has_score,
        cursor.places,
        cursor.line.comments,
    )



_SECTIONS: Mapping[str, str] = {
    "node": "nodes",
    **dict.fromkeys(("primitive", "template", "group", "clone", "master", "bundle"), "resources"),
    **dict.fromkeys(("rsc_location", "rsc_colocation", "rsc_order", "rsc_ticket"), "constraints"),
    "tag": "tags",
    "fencing-level": "fencing-topology",
    "alert": "alerts",
    **dict.fromkeys(("acl_role", "acl_target", "acl_group", "acl_user"), "acls"),
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
    reading = read_configuration(text, place.file, keeps_ids=True)
    cursor.reports += [replace(each, place=place) for each in reading.reports if each.code not in _FOUND_LATER]
    return tuple(_statements(reading.configuration, place, cursor.line.comments))


def _statements(made: Configuration, place: Place, comments: tuple[str, ...]) -> list[Statement]:
    found: list[Statement] = [
        Define(each, place, comments=comments)
        for each in (*made.nodes.values(), *made.templates.values(), *made.resources.values(),
                     *made.constraints.values(), *made.tags.values(), *made.alerts.values(),
                     *made.acl_roles.values(), *made.acl_targets.values(), *made.acl_groups.values())
    ]  # fmt: skip
    if made.fencing_levels:
        found.append(DefineLevels(made.fencing_levels, place, comments=comments))
    return found


_OF_SEVERAL: Mapping[str, Callable[[Cursor], Sequence[Statement]]] = {XML: read_xml, USER: read_user}
"""Words whose statement may make several objects."""
