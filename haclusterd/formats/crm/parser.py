"""The crm language's statements: which word begins which, and what cannot be used yet (cli.md §4.4).

Every statement of the language is known here. Those that cannot be used yet are refused by name: a configuration is
never read with something left out.
"""

from collections.abc import Callable, Collection, Sequence

from haclusterd.formats.crm.blocks import attribute_set, read_block, section_word
from haclusterd.formats.crm.bundles import read_bundle
from haclusterd.formats.crm.constraints import read_colocation, read_location, read_order, read_ticket
from haclusterd.formats.crm.cursor import Cursor, RefusedError
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
from haclusterd.formats.crm.xml import XML, read_xml
from haclusterd.formats.generated_ids import DEFAULT_SET_IDS
from haclusterd.formats.statements import MergeSet, Statement
from haclusterd.model.ids import NCNAME, AgentReference
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem
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
}

_AGENT_READERS: dict[str, Callable[[Cursor, Collection[AgentReference]], Statement]] = {
    "primitive": read_primitive,
    "rsc_template": read_template,
}

_ACCESS = "leave it out; control-group-permission says what group haclient may do, crm api token what programs may"
NOT_YET = {
    "role": ("an ACL role", _ACCESS),
    "user": ("an ACL user", _ACCESS),
    "acl_target": ("an ACL target", _ACCESS),
    "acl_group": ("an ACL group", _ACCESS),
    "alert": ("an alert", "leave it out, and watch: crm history events --follow"),
    "schema": ("a schema", "leave it out: there is one language, and no schema to choose"),
}
"""Statements of crmsh that cannot be used, what they are, and what to do instead."""

KEYWORDS = frozenset({XML, *_AGENT_READERS, *SECTIONS, *_READERS, *NOT_YET, *ALIASES})


def read_statement(
    line: Line, known_agents: Collection[AgentReference]
) -> tuple[Sequence[Statement], list[ReportItem]]:
    """Read one statement (embedded XML can be several); none when it is refused. With an error it is not to be used."""
    cursor = Cursor(line)
    try:
        made = read_xml(cursor) if cursor.construct == XML else (_dispatch(cursor, known_agents),)
    except RefusedError:
        made = ()
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
        raise cursor.refuse(Code.UNKNOWN_KEYWORD, head, remedy=did_you_mean(keyword, KEYWORDS), word=head.text)
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
