"""Objects of the crm language: node, primitive, rsc_template, group, clone, ms, tag, monitor (cli.md §4.4).

What follows the head of each is read alike: its description, blocks and operations (`read_tail`).
"""

from collections.abc import Collection, Mapping

from haclusterd.formats.agent_names import read_agent
from haclusterd.formats.crm.blocks import (
    Block,
    finish,
    open_block,
    read_block,
    read_block_rule,
    read_given_id,
    read_pair,
    section_word,
)
from haclusterd.formats.crm.cursor import Cursor
from haclusterd.formats.crm.operations import Op, finish_operations, read_op
from haclusterd.formats.crm.tokens import Token
from haclusterd.formats.statements import REFERENCE, AddOperation, Define
from haclusterd.model import durations
from haclusterd.model.configuration import (
    AttributeSet,
    Clone,
    Group,
    NodeEntry,
    Operation,
    Primitive,
    Resource,
    Tag,
    Template,
)
from haclusterd.model.ids import NCNAME, AgentReference, NodeName, ResourceId
from haclusterd.model.operations import read_role
from haclusterd.model.records import dataclass, field
from haclusterd.model.scores import parse as parse_score
from haclusterd.model.words import bad_character
from haclusterd.reports.codes import Code

UNKNOWN_AGENT = AgentReference("ocf", "unknown", "unknown")
"""Of a primitive whose agent is its template's, until the template is known."""

PROMOTABLE = "promotable"
OLD_PROMOTABLE_META = {"master-max": "promoted-max", "master-node-max": "promoted-node-max"}

_NODE_TYPES = ("normal", "member", "remote")
_NODE_SCORE = "$score="


@dataclass(slots=True)
class Tail:
    """Everything after an object's head."""

    description: str = ""
    blocks: list[Block] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    operations_id: str = ""


def read_node(cursor: Cursor) -> Define:
    """Read `node [ID:|$id=ID] UNAME[:TYPE] [$score=SCORE] [attributes ...] [utilization ...]`."""
    first = cursor.take("a node name")
    given_id, token = _node_id(cursor, first)
    name, colon, node_type = token.text.partition(":")
    cursor.check_node_name(name, token)
    if colon:
        _check_node_type(cursor, token, node_type)
    cursor.mark("node", name, at=token)
    score, following = 0, cursor.peek()
    if following is not None and following.text.startswith(_NODE_SCORE):
        cursor.take("a score")
        score = cursor.value("score", following.text.removeprefix(_NODE_SCORE), following, parse_score, 0)
    tail = read_tail(cursor, ("attributes", "utilization"), implicit="attributes")
    made = finish(cursor, name, tail.blocks, "node", name)
    entry = NodeEntry(
        name=NodeName(name),
        attributes=made["attributes"],
        utilization=made["utilization"],
        description=tail.description,
        is_remote=node_type.lower() == "remote",
        score=score,
        id="" if given_id in (None, name) else str(given_id),
    )
    return _define(cursor, entry)


def _node_id(cursor: Cursor, first: Token) -> tuple[str | None, Token]:
    """Return the given id, if any, and the token of the name."""
    given: str | None = None
    if first.text.lower().startswith("$id="):
        given = first.text.partition("=")[2]
    elif first.text.endswith(":"):
        given = first.text[:-1]
    if given is None:
        return None, first
    if not given or bad_character(given):
        raise cursor.refuse(Code.BAD_ID, first, id=given)
    return given, cursor.take("a node name")


def _check_node_type(cursor: Cursor, token: Token, node_type: str) -> None:
    if node_type.lower() == "ping":
        raise cursor.not_yet("a ping node", token, "ask by an agent who is reached: ocf:pacemaker:ping")
    if node_type.lower() not in _NODE_TYPES:
        raise cursor.refuse(
            Code.BAD_VALUE, token, name="node type", problem=f"{node_type!r} is not one of: {', '.join(_NODE_TYPES)}"
        )


def read_primitive(cursor: Cursor, known_agents: Collection[AgentReference]) -> Define:
    """Read `primitive ID AGENT|@TEMPLATE [params ...] [meta ...] [utilization ...] {op ...}`."""
    id_ = cursor.id("the primitive's id")
    cursor.mark("resource", id_, at=cursor.line.tokens[1])
    agent, template = _read_agent(cursor, "resource", id_, known_agents)
    tail = _resource_tail(cursor)
    made = finish(cursor, id_, tail.blocks, "resource", id_)
    primitive = Primitive(
        id=ResourceId(id_),
        agent=agent,
        parameters=made["params"],
        meta=made["meta"],
        utilization=made["utilization"],
        operations=finish_operations(cursor, id_, tail.ops, "resource"),
        description=tail.description,
        template=template,
        operations_id=tail.operations_id,
    )
    return _define(cursor, primitive)


def read_template(cursor: Cursor, known_agents: Collection[AgentReference]) -> Define:
    """Read `rsc_template ID AGENT [params ...] [meta ...] [utilization ...] {op ...}`."""
    id_ = cursor.id("the template's id")
    cursor.mark("template", id_, at=cursor.line.tokens[1])
    agent, template = _read_agent(cursor, "template", id_, known_agents)
    if template is not None:
        raise cursor.refuse(
            Code.UNEXPECTED, cursor.line.tokens[2], remedy="a template has an agent of its own",
            construct=cursor.construct, found=f"@{template}",
        )  # fmt: skip
    tail = _resource_tail(cursor)
    made = finish(cursor, id_, tail.blocks, "template", id_)
    return _define(
        cursor,
        Template(
            id=ResourceId(id_),
            agent=agent,
            parameters=made["params"],
            meta=made["meta"],
            utilization=made["utilization"],
            operations=finish_operations(cursor, id_, tail.ops, "template"),
            description=tail.description,
            operations_id=tail.operations_id,
        ),
    )


def _read_agent(
    cursor: Cursor, kind: str, id_: str, known_agents: Collection[AgentReference]
) -> tuple[AgentReference, ResourceId | None]:
    """Return the agent, or the template from which it is taken later."""
    token = cursor.take("an agent, as in ocf:heartbeat:IPaddr2, or @TEMPLATE")
    cursor.mark(kind, id_, "agent", at=token)
    if token.text.startswith("@"):
        template = token.text[1:]
        if not NCNAME.match(template):
            raise cursor.refuse(Code.BAD_ID, token, id=template)
        return UNKNOWN_AGENT, ResourceId(template)
    return cursor.value("agent", token.text, token, lambda text: read_agent(text, known_agents), UNKNOWN_AGENT), None


def _resource_tail(cursor: Cursor) -> Tail:
    return read_tail(cursor, ("params", "meta", "utilization"), implicit="params", has_operations=True)


def read_group(cursor: Cursor) -> Define:
    """Read `group ID MEMBER... [params ...] [meta ...]`."""
    id_ = cursor.id("the group's id")
    cursor.mark("resource", id_, at=cursor.line.tokens[1])
    members: list[ResourceId] = []
    while True:
        token = cursor.peek()
        if token is None or section_word(token) is not None or "=" in token.text:
            break
        member = ResourceId(cursor.id("a member"))
        cursor.mark("resource", id_, "member", member, at=token)
        members.append(member)
    if not members:
        raise cursor.expected("the id of a primitive")
    made, description = _read_params_and_meta(cursor, id_)
    return _define(cursor, Group(ResourceId(id_), tuple(members), made["params"], made["meta"], description))


def read_clone(cursor: Cursor) -> Define:
    """Read `clone ID RSC [params ...] [meta ...]`."""
    id_, child = _read_clone_head(cursor)
    made, description = _read_params_and_meta(cursor, id_)
    return _define(cursor, Clone(ResourceId(id_), child, made["params"], made["meta"], description))


def read_promotable_clone(cursor: Cursor) -> Define:
    """Read `ms ID RSC [params ...] [meta ...]`: it is kept as a clone that is promotable."""
    id_, child = _read_clone_head(cursor)
    tail = read_tail(cursor, ("params", "meta"), implicit="params")
    for block in tail.blocks:
        if block.section == "meta":
            block.pairs = {OLD_PROMOTABLE_META.get(name, name): value for name, value in block.pairs.items()}
            block.notes = {}
    metas = [block for block in tail.blocks if block.section == "meta" and not block.reference and block.rule is None]
    if not any(PROMOTABLE in block.pairs for block in metas):
        if not metas:
            metas = [Block("meta")]
            tail.blocks.append(metas[0])
        metas[0].pairs[PROMOTABLE] = "true"
    cursor.note(
        Code.STORED_AS, cursor.line.tokens[0], what=f"{cursor.construct} {id_}",
        stored=f"clone {id_} with meta {PROMOTABLE}=true",
    )  # fmt: skip
    made = finish(cursor, id_, tail.blocks, "resource", id_)
    return _define(cursor, Clone(ResourceId(id_), child, made["params"], made["meta"], tail.description))


def _read_clone_head(cursor: Cursor) -> tuple[str, ResourceId]:
    id_ = cursor.id("the clone's id")
    cursor.mark("resource", id_, at=cursor.line.tokens[1])
    token = cursor.peek()
    child = cursor.id("the id of a primitive or group")
    assert token is not None
    cursor.mark("resource", id_, "member", child, at=token)
    return id_, ResourceId(child)


def _read_params_and_meta(cursor: Cursor, id_: str) -> tuple[Mapping[str, tuple[AttributeSet, ...]], str]:
    tail = read_tail(cursor, ("params", "meta"), implicit="params")
    return finish(cursor, id_, tail.blocks, "resource", id_), tail.description


def read_tag(cursor: Cursor) -> Define:
    """Read `tag ID[:] OBJECT...`."""
    token = cursor.take("the tag's id")
    id_ = token.text.removesuffix(":")
    if not NCNAME.match(id_):
        raise cursor.refuse(Code.BAD_ID, token, id=id_)
    cursor.mark("tag", id_, at=token)
    references = []
    while not cursor.is_at_end:
        at = cursor.peek()
        references.append(cursor.id("an object"))
        assert at is not None
        cursor.mark("tag", id_, references[-1], at=at)
    if not references:
        raise cursor.expected("the id of an object")
    return _define(cursor, Tag(id_, tuple(references)))


def _define(cursor: Cursor, made: NodeEntry | Resource | Template | Tag) -> Define:
    return Define(made, cursor.line.place, cursor.places, cursor.line.comments, cursor.pairs)


def read_monitor(cursor: Cursor) -> AddOperation:
    """Read `monitor RSC[:ROLE] INTERVAL[:TIMEOUT]`."""
    token = cursor.take("a resource")
    resource, colon, role = token.text.partition(":")
    if not NCNAME.match(resource):
        raise cursor.refuse(Code.BAD_ID, token, id=resource)
    timing = cursor.take("INTERVAL[:TIMEOUT]")
    interval, has_timeout, timeout = timing.text.partition(":")
    cursor.end()
    operation = Operation(
        id="",
        name="monitor",
        interval_ms=cursor.value("interval", interval, timing, durations.parse, 0),
        timeout_ms=cursor.value("timeout", timeout, timing, durations.parse, 0) if has_timeout else None,
        role=cursor.value("role", role, token, read_role, "") if colon else None,
        spelled=durations.spellings(interval=interval, timeout=timeout or None),
    )
    cursor.mark("resource", resource, at=token)
    return AddOperation(ResourceId(resource), operation, cursor.line.place, cursor.places, cursor.line.comments)


def read_tail(cursor: Cursor, sections: Collection[str], *, implicit: str, has_operations: bool = False) -> Tail:
    """Read up to the end; what comes before the first section word is a block of the section `implicit`."""
    tail = Tail()
    _read_implicit(cursor, tail, implicit)
    while not cursor.is_at_end:
        token = cursor.take("a section")
        word = section_word(token)
        if word == "op" and has_operations:
            tail.ops.append(read_op(cursor))
        elif word == "operations" and has_operations:
            _read_operations_id(cursor, tail)
        elif word in sections:
            assert word is not None
            tail.blocks.append(read_block(cursor, word))
        else:
            raise cursor.refuse(Code.UNEXPECTED, token, construct=cursor.construct, found=token.text)
    return tail


def _read_implicit(cursor: Cursor, tail: Tail, implicit: str) -> None:
    """Read what comes before the first section word: the description, and a block that no word opens."""
    block: Block | None = None
    while True:
        token = cursor.peek()
        word = section_word(token)
        if token is None or word not in (None, "rule"):
            return
        if token.text.startswith("description="):
            cursor.take("a description")
            tail.description = _description(cursor, token)
        elif block is None:
            block = open_block(cursor, implicit)
            tail.blocks.append(block)
        elif word == "rule":
            read_block_rule(cursor, block)
        else:
            cursor.take("a pair")
            read_pair(cursor, block, token)


def _read_operations_id(cursor: Cursor, tail: Tail) -> None:
    """Read `operations $id=ID`, a name for references, or `operations $id-ref=ID`, those of another resource."""
    token = cursor.take("$id=ID or $id-ref=ID")
    text = token.text.lower()
    if text.startswith(REFERENCE):
        tail.ops.append(Op(token, given_id=REFERENCE + read_given_id(cursor, token)))
    elif text.startswith("$id="):
        tail.operations_id = read_given_id(cursor, token)
    else:
        cursor.back()
        raise cursor.expected("$id=ID or $id-ref=ID")


def _description(cursor: Cursor, token: Token) -> str:
    text = token.text.partition("=")[2]
    character = bad_character(text)
    if character:
        cursor.note(Code.BAD_CHARACTER, token, name="description", character=character)
    return text
