"""Policy YAML into statements: the schema of docs/reference/policy-yaml.md, one function a kind of object."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from haclusterd.formats.agent_names import read_agent
from haclusterd.formats.crm_sets import read_action
from haclusterd.formats.crm_operations import ACTION
from haclusterd.formats.generated_ids import DEFAULT_SET_IDS, allocate, block_base, operation_base
from haclusterd.formats.policy_fields import Fields, Findings, as_map, as_text, read_blocks, read_id
from haclusterd.formats.statements import Define, MergeSet, Statement
from haclusterd.formats.yaml_tree import Map, Tree
from haclusterd.model import durations, scores
from haclusterd.model.configuration import (
    AttributeSet,
    Colocation,
    Constraint,
    Group,
    Location,
    NodeEntry,
    Operation,
    Ordering,
    OrderingKind,
    Primitive,
    Resource,
)
from haclusterd.model.ids import NCNAME, NODE_NAME, AgentReference, ConstraintId, NodeName, ResourceId
from haclusterd.model.operations import read_role
from haclusterd.model.properties import read_boolean
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem

SECTIONS = {
    "properties": "properties",
    "resource-defaults": "resource_defaults",
    "operation-defaults": "operation_defaults",
}
TOP_KEYS = ("nodes", *SECTIONS, "resources", "constraints")

_OPERATION_KEYS = (
    "id", "interval", "timeout", "role", "on-fail", "start-delay", "enabled", "requires", "parameters", "meta",
)  # fmt: skip


def read_statements(tree: Tree, known_agents: Collection[AgentReference]) -> tuple[list[Statement], list[ReportItem]]:
    """Return what a whole document asks for, in its own order within each section."""
    findings = Findings()
    top = Fields(findings, "policy", tree, TOP_KEYS)
    statements: list[Statement] = list(_nodes(findings, top))
    for item in top.items("resources"):
        statements += _object(findings, item, "resources", _resource_readers(known_agents))
    for item in top.items("constraints"):
        statements += _object(findings, item, "constraints", _CONSTRAINT_READERS)
    for key, section in SECTIONS.items():
        statements += _section(findings, top, key, section)
    return statements, findings.reports


def _section(findings: Findings, top: Fields, key: str, section: str) -> Iterator[MergeSet]:
    local = Findings(findings.reports)
    blocks = read_blocks(local, top.tree(key), key, DEFAULT_SET_IDS[section], section)
    for block in blocks:
        yield MergeSet(section, block, top.map.key_places[key], bool(block.score), local.places)


def _nodes(findings: Findings, top: Fields) -> Iterator[Define]:
    tree = top.tree("nodes")
    if tree is None:
        return
    nodes = as_map(findings, tree, "nodes")
    for name, entry in nodes.entries.items():
        local, place, where = Findings(findings.reports), nodes.key_places[name], f"node {name}"
        local.places["node", name] = place
        if not NODE_NAME.match(name):
            remedy = "at most 63 letters, digits, '.', '-' and '_'"
            local.note(Code.BAD_ID, place, remedy=remedy, id=name)
        fields = Fields(local, where, entry, ("description", "attributes", "utilization"))
        attributes = read_blocks(
            local, fields.tree("attributes"), where, block_base(name, "attributes"), "node", name, "attributes"
        )
        utilization = read_blocks(
            local, fields.tree("utilization"), where, block_base(name, "utilization"), "node", name, "utilization"
        )
        made = NodeEntry(NodeName(name), attributes, utilization, fields.text("description") or "")
        yield Define(made, place, local.places)


_ObjectReader = Callable[[Fields, str], Resource | Constraint]


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of object in a list: `- KIND: ID` and its other keys."""

    section: str
    """First word of its path."""
    read: _ObjectReader
    keys: tuple[str, ...]
    required: tuple[str, ...]


def _object(findings: Findings, item: Tree, where: str, kinds: Mapping[str, _Kind]) -> list[Define]:
    """Read one item of a list; the key that says its kind carries its id."""
    entries = as_map(findings, item, f"each item of {where}").entries
    named = [kind for kind in kinds if kind in entries]
    if len(named) != 1:
        if isinstance(item, Map):
            problem = f"an item of {where} needs exactly one of the keys {', '.join(kinds)}"
            findings.note(
                Code.SYNTAX, item.place, remedy="begin it with, say, - " + f"{next(iter(kinds))}: ID", problem=problem
            )
        return []
    kind = kinds[named[0]]
    local = Findings(findings.reports)
    head = entries[named[0]]
    text = as_text(local, head, named[0])
    if text is None:
        return []
    fields = Fields(local, f"{named[0]} {text}", item, (named[0], *kind.keys), kind.required)
    id_ = fields.value(named[0], read_id)
    if id_ is None:
        return []
    place = head.place
    local.places[kind.section, id_] = place
    return [Define(kind.read(fields, id_), place, local.places)]


def _resource_readers(known_agents: Collection[AgentReference]) -> Mapping[str, _Kind]:
    def primitive(fields: Fields, id_: str) -> Primitive:
        return _primitive(fields, id_, known_agents)

    keys = ("agent", "description", "parameters", "meta", "utilization", "operations")
    return {
        "primitive": _Kind("resource", primitive, keys, ("agent",)),
        "fence-device": _Kind("resource", primitive, keys, ("agent",)),
        "group": _Kind("resource", _group, ("members", "description", "parameters", "meta"), ("members",)),
    }


def _primitive(fields: Fields, id_: str, known_agents: Collection[AgentReference]) -> Primitive:
    fields.mark("agent", "resource", id_, "agent")
    agent = fields.value("agent", lambda text: _agent(fields, text, known_agents))
    return Primitive(
        id=ResourceId(id_),
        agent=agent or AgentReference("ocf", "unknown", "unknown"),
        parameters=_blocks(fields, id_, "parameters", "params"),
        meta=_blocks(fields, id_, "meta", "meta"),
        utilization=_blocks(fields, id_, "utilization", "utilization"),
        operations=_operations(fields, id_),
        description=fields.text("description") or "",
    )


def _agent(fields: Fields, text: str, known_agents: Collection[AgentReference]) -> AgentReference:
    """Read an agent; a fence device is the one thing that has an agent of class stonith."""
    agent = read_agent(text, known_agents)
    is_device = "fence-device" in fields.map.entries
    if is_device != (agent.standard == "stonith"):
        wanted = "a fence device needs an agent of class stonith" if is_device else "write it as - fence-device: ID"
        raise ValueError(f"{text!r}: {wanted}")
    return agent


def _group(fields: Fields, id_: str) -> Group:
    members: list[ResourceId] = []
    for item in fields.items("members"):
        text = as_text(fields.findings, item, f"{fields.where}: members")
        if text is None:
            continue
        if not NCNAME.match(text):
            fields.findings.note(Code.BAD_ID, item.place, id=text)
        fields.findings.places["resource", id_, "member", text] = item.place
        members.append(ResourceId(text))
    parameters, meta = _blocks(fields, id_, "parameters", "params"), _blocks(fields, id_, "meta", "meta")
    return Group(ResourceId(id_), tuple(members), parameters, meta, fields.text("description") or "")


def _blocks(fields: Fields, id_: str, key: str, section: str) -> tuple[AttributeSet, ...]:
    base = block_base(id_, section)
    return read_blocks(fields.findings, fields.tree(key), f"{fields.where}: {key}", base, "resource", id_, section)


def _operations(fields: Fields, id_: str) -> tuple[Operation, ...]:
    """Read `- ACTION: {interval: ..., timeout: ...}` items."""
    findings = fields.findings
    read: list[tuple[str, str, Fields]] = []
    for item in fields.items("operations"):
        entries = as_map(findings, item, f"{fields.where}: operation").entries
        action = next(iter(entries), "")
        if not isinstance(item, Map):
            continue
        if len(entries) != 1 or not ACTION.match(action):
            remedy = "write it as - monitor: {interval: 10s}"
            findings.note(Code.SYNTAX, item.place, remedy=remedy, problem="an operation needs exactly one action")
            continue
        where = f"{fields.where}: {action}"
        read.append((str(len(read)), action, Fields(findings, where, entries[action], _OPERATION_KEYS)))
        findings.places["resource", id_, "operation", read[-1][0]] = item.place
    intervals = [operation.value("interval", durations.parse) or 0 for _, _, operation in read]
    ids = allocate(
        [
            (operation.value("id", read_id), operation_base(id_, action, interval))
            for (_, action, operation), interval in zip(read, intervals, strict=True)
        ]
    )
    return tuple(
        _operation(operation, action, own_id, interval, ("resource", id_, "operation", index))
        for (index, action, operation), own_id, interval in zip(read, ids, intervals, strict=True)
    )


def _operation(fields: Fields, action: str, id_: str, interval_ms: int, path: tuple[str, ...]) -> Operation:
    for key in _OPERATION_KEYS:
        fields.mark(key, *path, key)
    enabled = fields.value("enabled", read_boolean)
    return Operation(
        id=id_,
        name=action,
        interval_ms=interval_ms,
        timeout_ms=fields.value("timeout", durations.parse),
        role=fields.value("role", read_role),
        on_fail=fields.text("on-fail"),
        start_delay_ms=fields.value("start-delay", durations.parse) or 0,
        is_enabled=enabled is not False,
        requires=fields.text("requires"),
        parameters=_operation_blocks(fields, id_, "parameters", "params", path),
        meta=_operation_blocks(fields, id_, "meta", "meta", path),
    )


def _operation_blocks(
    fields: Fields, id_: str, key: str, section: str, path: tuple[str, ...]
) -> tuple[AttributeSet, ...]:
    base = block_base(id_, section)
    return read_blocks(fields.findings, fields.tree(key), f"{fields.where}: {key}", base, *path, section)


def _mark_all(fields: Fields, id_: str, **parts: str) -> None:
    for part, key in parts.items():
        fields.mark(key, "constraint", id_, part)


def _location(fields: Fields, id_: str) -> Location:
    _mark_all(fields, id_, resource="resource", node="node", score="score")
    return Location(
        id=ConstraintId(id_),
        resource=ResourceId(fields.value("resource", read_id) or ""),
        node=NodeName(fields.text("node") or ""),
        score=fields.value("score", scores.parse) or 0,
    )


def _colocation(fields: Fields, id_: str) -> Colocation:
    _mark_all(fields, id_, dependent="resource", primary="with", score="score")
    return Colocation(
        id=ConstraintId(id_),
        score=fields.value("score", scores.parse) or 0,
        dependent=ResourceId(fields.value("resource", read_id) or ""),
        primary=ResourceId(fields.value("with", read_id) or ""),
        dependent_role=fields.value("role", read_role),
        primary_role=fields.value("with-role", read_role),
        node_attribute=fields.text("node-attribute"),
        influence=fields.value("influence", read_boolean),
    )


def _order(fields: Fields, id_: str) -> Ordering:
    _mark_all(fields, id_, first="first", then="then")
    symmetrical, require_all = fields.value("symmetrical", read_boolean), fields.value("require-all", read_boolean)
    return Ordering(
        id=ConstraintId(id_),
        first=ResourceId(fields.value("first", read_id) or ""),
        then=ResourceId(fields.value("then", read_id) or ""),
        kind=fields.value("kind", _kind) or OrderingKind.MANDATORY,
        first_action=fields.value("first-action", read_action) or "start",
        then_action=fields.value("then-action", read_action),
        is_symmetrical=symmetrical is not False,
        require_all=require_all is not False,
    )


def _kind(text: str) -> OrderingKind:
    for kind in OrderingKind:
        if kind.lower() == text.lower():
            return kind
    raise ValueError(f"{text!r} is not one of: {', '.join(OrderingKind)}")


_CONSTRAINT_READERS: Mapping[str, _Kind] = {
    "location": _Kind("constraint", _location, ("resource", "node", "score"), ("resource", "node", "score")),
    "colocation": _Kind(
        "constraint",
        _colocation,
        ("resource", "with", "score", "role", "with-role", "node-attribute", "influence"),
        ("resource", "with", "score"),
    ),
    "order": _Kind(
        "constraint",
        _order,
        ("first", "then", "kind", "first-action", "then-action", "symmetrical", "require-all"),
        ("first", "then"),
    ),
}
