"""Objects of the crm language: node, primitive, group, monitor (cli.md §4.4)."""

from collections.abc import Collection
from dataclasses import dataclass, field

from haclusterd.formats.agent_names import read_agent
from haclusterd.formats.crm_blocks import Block, finish, open_block, read_block, read_pair, section_word
from haclusterd.formats.crm_cursor import Cursor
from haclusterd.formats.crm_operations import Op, finish_operations, read_op
from haclusterd.formats.crm_tokens import Token
from haclusterd.formats.statements import AddOperation, Define
from haclusterd.model import durations
from haclusterd.model.configuration import Group, NodeEntry, Operation, Primitive
from haclusterd.model.ids import NCNAME, AgentReference, NodeName, ResourceId
from haclusterd.model.operations import read_role
from haclusterd.model.words import bad_character
from haclusterd.reports.codes import Code

_NODE_TYPES = ("normal", "member")
_LATER_NODE_TYPES = ("ping", "remote")


@dataclass(slots=True)
class _Tail:
    """Everything after an object's head."""

    description: str = ""
    blocks: list[Block] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)


def read_node(cursor: Cursor) -> Define:
    """Read `node [ID:] UNAME[:TYPE] [attributes ...] [utilization ...]`."""
    first = cursor.take("a node name")
    given_id, token = _node_id(cursor, first)
    name, colon, node_type = token.text.partition(":")
    cursor.check_node_name(name, token)
    if colon:
        _check_node_type(cursor, token, node_type)
    if given_id not in (None, name):
        raise cursor.not_yet(f"a node id that is not the node's name ({given_id})", first)
    cursor.mark("node", name, at=token)
    tail = _read_tail(cursor, ("attributes", "utilization"), implicit="attributes")
    made = finish(cursor, name, tail.blocks, "node", name)
    entry = NodeEntry(NodeName(name), made["attributes"], made["utilization"], tail.description)
    return Define(entry, cursor.line.place, cursor.places, cursor.line.comments)


def _node_id(cursor: Cursor, first: Token) -> tuple[str | None, Token]:
    """Return the given id, if any, and the token of the name."""
    if first.text.lower().startswith("$id="):
        return first.text.partition("=")[2], cursor.take("a node name")
    if first.text.endswith(":"):
        return first.text[:-1], cursor.take("a node name")
    return None, first


def _check_node_type(cursor: Cursor, token: Token, node_type: str) -> None:
    if node_type.lower() in _LATER_NODE_TYPES:
        raise cursor.not_yet(f"a {node_type.lower()} node", token)
    if node_type.lower() not in _NODE_TYPES:
        raise cursor.refuse(
            Code.BAD_VALUE, token, name="node type", problem=f"{node_type!r} is not one of: normal, member"
        )


def read_primitive(cursor: Cursor, known_agents: Collection[AgentReference]) -> Define:
    """Read `primitive ID AGENT [params ...] [meta ...] [utilization ...] {op ...}`."""
    id_ = cursor.id("the primitive's id")
    cursor.mark("resource", id_, at=cursor.line.tokens[1])
    token = cursor.take("an agent, as in ocf:heartbeat:IPaddr2")
    if token.text.startswith("@"):
        raise cursor.not_yet("a resource template", token)
    cursor.mark("resource", id_, "agent", at=token)
    unknown = AgentReference("ocf", "unknown", "unknown")
    agent = cursor.value("agent", token.text, token, lambda text: read_agent(text, known_agents), unknown)
    tail = _read_tail(cursor, ("params", "meta", "utilization"), implicit="params", has_operations=True)
    made = finish(cursor, id_, tail.blocks, "resource", id_)
    primitive = Primitive(
        id=ResourceId(id_),
        agent=agent,
        parameters=made["params"],
        meta=made["meta"],
        utilization=made["utilization"],
        operations=finish_operations(cursor, id_, tail.ops),
        description=tail.description,
    )
    return Define(primitive, cursor.line.place, cursor.places, cursor.line.comments)


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
    tail = _read_tail(cursor, ("params", "meta"), implicit="params")
    made = finish(cursor, id_, tail.blocks, "resource", id_)
    group = Group(ResourceId(id_), tuple(members), made["params"], made["meta"], tail.description)
    return Define(group, cursor.line.place, cursor.places, cursor.line.comments)


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
    )
    cursor.mark("resource", resource, at=token)
    return AddOperation(ResourceId(resource), operation, cursor.line.place, cursor.places, cursor.line.comments)


def _read_tail(cursor: Cursor, sections: Collection[str], *, implicit: str, has_operations: bool = False) -> _Tail:
    tail = _Tail()
    _read_implicit(cursor, tail, implicit)
    while not cursor.is_at_end:
        token = cursor.take("a section")
        word = section_word(token)
        if word == "op" and has_operations:
            tail.ops.append(read_op(cursor))
        elif word == "operations" and has_operations:
            raise cursor.not_yet("operations with an id", token)
        elif word == "rule":
            raise cursor.not_yet("rule", token)
        elif word in sections:
            assert word is not None
            tail.blocks.append(read_block(cursor, word))
        else:
            raise cursor.refuse(Code.UNEXPECTED, token, construct=cursor.construct, found=token.text)
    return tail


def _read_implicit(cursor: Cursor, tail: _Tail, implicit: str) -> None:
    """Read what stands before the first section word: the description, and a block that no word opens."""
    block: Block | None = None
    while True:
        token = cursor.peek()
        if token is None or section_word(token) is not None:
            return
        if token.text.startswith("description="):
            cursor.take("a description")
            tail.description = _description(cursor, token)
        elif block is None:
            block = open_block(cursor, implicit)
            tail.blocks.append(block)
        else:
            cursor.take("a pair")
            read_pair(cursor, block, token)


def _description(cursor: Cursor, token: Token) -> str:
    text = token.text.partition("=")[2]
    character = bad_character(text)
    if character:
        cursor.note(Code.BAD_CHARACTER, token, name="description", character=character)
    return text
