"""A configuration as policy YAML; reading it back makes an equal configuration, in the same order.

Ids that reading would make again are left out, and a block that is the only one of its kind is written as a plain
mapping. Values are written as they are spelled (`true`, `8080` without quotes), `${` as `$${`.
"""

from collections.abc import Mapping, Sequence

import yaml

from haclusterd.formats.generated_ids import DEFAULT_SET_IDS, are_natural, block_base, natural_operations
from haclusterd.model import durations, scores
from haclusterd.model.configuration import (
    AttributeSet,
    Colocation,
    Configuration,
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

_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("bool", "int", "float", "timestamp"))
"""Of what YAML takes for these, reading takes the spelling; so they need no quotes."""

_Tree = str | None | Sequence["_Tree"] | Mapping[str, "_Tree"]


class _Inline(dict[str, "_Tree"]):
    """A mapping to be written on one line."""


class _InlineList(list["_Tree"]):
    """A list to be written on one line."""


class _Dumper(yaml.SafeDumper):
    """Writes texts as they are spelled, without anchors."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  -- PyYAML's signature
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002  -- PyYAML's
        super().increase_indent(flow, indentless=False)


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    detected = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]  # PyYAML's stubs
    tag = detected if detected in _PLAIN_TAGS else "tag:yaml.org,2002:str"
    # Line separators of Unicode would be folded in any other style.
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar(tag, text, style=style)


def _represent_inline(dumper: _Dumper, mapping: _Inline) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", mapping.items(), flow_style=True)


def _represent_inline_list(dumper: _Dumper, items: _InlineList) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=True)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(_Inline, _represent_inline)
_Dumper.add_representer(_InlineList, _represent_inline_list)


def dump_policy(configuration: Configuration) -> str:
    """Write the whole configuration; empty text for an empty one."""
    document: dict[str, _Tree] = {}
    if configuration.nodes:
        document["nodes"] = {name: _node(entry) or None for name, entry in configuration.nodes.items()}
    for key, section, sets in (
        ("properties", "properties", configuration.properties),
        ("resource-defaults", "resource_defaults", configuration.resource_defaults),
        ("operation-defaults", "operation_defaults", configuration.operation_defaults),
    ):
        if sets:
            document[key] = _blocks(sets, DEFAULT_SET_IDS[section])
    if configuration.resources:
        document["resources"] = [_resource(resource) for resource in configuration.resources.values()]
    if configuration.constraints:
        document["constraints"] = [_constraint(constraint) for constraint in configuration.constraints.values()]
    if not document:
        return ""
    return str(yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110))


def _value(text: str) -> str:
    return text.replace("${", "$${")


def _pairs(block: AttributeSet) -> dict[str, _Tree]:
    return {name: _value(value) for name, value in block.pairs}


def _blocks(sets: Sequence[AttributeSet], base: str) -> _Tree:
    if len(sets) == 1 and sets[0].id == base and sets[0].score == 0:
        return _pairs(sets[0])
    with_ids = not are_natural([block.id for block in sets], [base] * len(sets))
    blocks: list[_Tree] = []
    for block in sets:
        written: dict[str, _Tree] = {"id": block.id} if with_ids else {}
        if block.score:
            written["score"] = scores.render(block.score)
        written["values"] = _pairs(block)
        blocks.append(written)
    return blocks


def _add_blocks(tree: dict[str, _Tree], owner: str, **sections: tuple[str, Sequence[AttributeSet]]) -> None:
    """Add the kinds of blocks that are there: key=(section of the generated id, blocks)."""
    for key, (section, sets) in sections.items():
        if sets:
            tree[key] = _blocks(sets, block_base(owner, section))


def _node(entry: NodeEntry) -> dict[str, _Tree]:
    tree: dict[str, _Tree] = {"description": _value(entry.description)} if entry.description else {}
    sections = {"attributes": ("attributes", entry.attributes), "utilization": ("utilization", entry.utilization)}
    _add_blocks(tree, entry.name, **sections)
    return tree


def _resource(resource: Resource) -> dict[str, _Tree]:
    if isinstance(resource, Group):
        tree: dict[str, _Tree] = {"group": resource.id, "members": _InlineList(resource.members)}
    else:
        kind = "fence-device" if resource.agent.standard == "stonith" else "primitive"
        tree = {kind: resource.id, "agent": str(resource.agent)}
    if resource.description:
        tree["description"] = _value(resource.description)
    _add_blocks(tree, resource.id, parameters=("params", resource.parameters), meta=("meta", resource.meta))
    if isinstance(resource, Primitive):
        _add_blocks(tree, resource.id, utilization=("utilization", resource.utilization))
        if resource.operations:
            with_ids = not natural_operations(resource.id, resource.operations)
            tree["operations"] = [{o.name: _operation(o, with_id=with_ids)} for o in resource.operations]
    return tree


def _operation(operation: Operation, *, with_id: bool) -> _Tree:
    values = {
        "id": operation.id if with_id else None,
        "interval": durations.render(operation.interval_ms) if operation.interval_ms else None,
        "timeout": None if operation.timeout_ms is None else durations.render(operation.timeout_ms),
        "role": operation.role,
        "on-fail": None if operation.on_fail is None else _value(operation.on_fail),
        "start-delay": durations.render(operation.start_delay_ms) if operation.start_delay_ms else None,
        "enabled": None if operation.is_enabled else "false",
        "requires": None if operation.requires is None else _value(operation.requires),
    }
    tree: dict[str, _Tree] = _Inline({key: value for key, value in values.items() if value is not None})
    _add_blocks(tree, operation.id, parameters=("params", operation.parameters), meta=("meta", operation.meta))
    return tree


def _constraint(constraint: Constraint) -> dict[str, _Tree]:
    match constraint:
        case Location(id_, resource, node, score):
            return {"location": id_, "resource": resource, "node": node, "score": scores.render(score)}
        case Colocation():
            return _colocation(constraint)
        case Ordering():
            return _order(constraint)


def _given(values: Mapping[str, str | None]) -> dict[str, _Tree]:
    return {key: value for key, value in values.items() if value is not None}


def _colocation(constraint: Colocation) -> dict[str, _Tree]:
    attribute, influence = constraint.node_attribute, constraint.influence
    return _given(
        {
            "colocation": constraint.id,
            "resource": constraint.dependent,
            "with": constraint.primary,
            "score": scores.render(constraint.score),
            "role": constraint.dependent_role,
            "with-role": constraint.primary_role,
            "node-attribute": None if attribute is None else _value(attribute),
            "influence": None if influence is None else str(influence).lower(),
        }
    )


def _order(constraint: Ordering) -> dict[str, _Tree]:
    return _given(
        {
            "order": constraint.id,
            "first": constraint.first,
            "then": constraint.then,
            "kind": None if constraint.kind is OrderingKind.MANDATORY else str(constraint.kind),
            "first-action": None if constraint.first_action == "start" else constraint.first_action,
            "then-action": constraint.then_action,
            "symmetrical": None if constraint.is_symmetrical else "false",
            "require-all": None if constraint.require_all else "false",
        }
    )
