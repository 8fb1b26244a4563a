"""Policy YAML into statements: the schema of docs/reference/policy-yaml.md, section by section."""

from collections.abc import Collection, Iterator, Mapping

from haclusterd.formats.generated_ids import DEFAULT_SET_IDS, block_base
from haclusterd.formats.policy.access import GROUPS, ROLE_KINDS, ROLES, TARGETS, read_holders
from haclusterd.formats.policy.alerts import ALERT_KINDS
from haclusterd.formats.policy.blocks import read_blocks
from haclusterd.formats.policy.constraints import CONSTRAINT_KINDS, read_tags, read_topology
from haclusterd.formats.policy.fields import Fields, Findings, as_map, as_text, read_id
from haclusterd.formats.policy.resources import Kind, resource_kinds, template_kinds
from haclusterd.formats.policy.rules import choice
from haclusterd.formats.policy.yaml_tree import Map, Tree
from haclusterd.formats.statements import Define, MergeSet, Statement
from haclusterd.model import scores
from haclusterd.model.configuration import AttributeSet, NodeEntry
from haclusterd.model.ids import CONFIGURED_NODE_NAME, AgentReference, NodeName
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem

SECTIONS = {
    "properties": "properties",
    "resource-defaults": "resource_defaults",
    "operation-defaults": "operation_defaults",
}
TOP_KEYS = (
    "nodes", *SECTIONS, "templates", "resources", "tags", "constraints", "fencing-topology", "alerts",
    ROLES, TARGETS, GROUPS,
)  # fmt: skip

_NODE_KEYS = ("id", "description", "type", "score", "attributes", "utilization")


def read_statements(tree: Tree, known_agents: Collection[AgentReference]) -> tuple[list[Statement], list[ReportItem]]:
    """Return what a whole document asks for, in its own order within each section."""
    findings = Findings()
    top = Fields(findings, "policy", tree, TOP_KEYS)
    statements: list[Statement] = list(_nodes(findings, top))
    for item in top.items("templates"):
        statements += _object(findings, item, "templates", template_kinds(known_agents))
    for item in top.items("resources"):
        statements += _object(findings, item, "resources", resource_kinds(known_agents))
    tags = top.tree("tags")
    statements += read_tags(findings, tags) if tags is not None else ()
    for item in top.items("constraints"):
        statements += _object(findings, item, "constraints", CONSTRAINT_KINDS)
    statements += read_topology(findings, top, "fencing-topology")
    for item in top.items("alerts"):
        statements += _object(findings, item, "alerts", ALERT_KINDS)
    for item in top.items(ROLES):
        statements += _object(findings, item, ROLES, ROLE_KINDS)
    for key in (TARGETS, GROUPS):
        statements += read_holders(findings, top, key)
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
        if not CONFIGURED_NODE_NAME.match(name):
            remedy = "at most 255 letters, digits, '.', '-' and '_'"
            local.note(Code.BAD_ID, place, remedy=remedy, id=name)
        fields = Fields(local, where, entry, _NODE_KEYS)
        attributes = read_blocks(
            local, fields.tree("attributes"), where, block_base(name, "attributes"), "node", name, "attributes"
        )
        utilization = read_blocks(
            local, fields.tree("utilization"), where, block_base(name, "utilization"), "node", name, "utilization"
        )
        yield Define(_node(fields, name, attributes, utilization), place, local.places)


def _node(
    fields: Fields, name: str, attributes: tuple[AttributeSet, ...], utilization: tuple[AttributeSet, ...]
) -> NodeEntry:
    return NodeEntry(
        name=NodeName(name),
        attributes=attributes,
        utilization=utilization,
        description=fields.text("description") or "",
        is_remote=fields.value("type", choice(("member", "remote"))) == "remote",
        score=fields.value("score", scores.parse) or 0,
        id=fields.text("id") or "",
    )


def _object(findings: Findings, item: Tree, where: str, kinds: Mapping[str, Kind]) -> list[Define]:
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
