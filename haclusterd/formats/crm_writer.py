"""A configuration as crm text (cli.md §3.6, `show`).

Invariant: the text reads back as an equal configuration. Ids that reading would make again
are left out. SORTED is the order people know (ids sorted within their kind); DOCUMENT keeps the configuration's own
order, on which the scheduler's results depend: use it wherever the text is to be read again.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from haclusterd.formats.crm_blocks import SECTION_WORDS
from haclusterd.formats.crm_operations import LATER_ATTRIBUTES
from haclusterd.formats.crm_tokens import quote, quote_value
from haclusterd.formats.generated_ids import are_natural, block_base, natural_operations
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
    Primitive,
    Resource,
)
from haclusterd.model.operations import operation_row
from haclusterd.model.scores import INFINITY

_NEXT = " \\\n\t"


class Arrangement(StrEnum):
    """In which order objects are written."""

    SORTED = "sorted"
    DOCUMENT = "document"


def show(configuration: Configuration, *, arrangement: Arrangement = Arrangement.SORTED) -> str:
    """Write the configuration; empty text for an empty one."""
    statements = [
        *(_node(entry) for entry in _arranged_nodes(configuration, arrangement)),
        *(_resource(resource) for resource in _arranged_resources(configuration, arrangement)),
        *(_constraint(constraint) for constraint in _arranged_constraints(configuration, arrangement)),
        *(_section("property", block) for block in configuration.properties),
        *(_section("rsc_defaults", block) for block in configuration.resource_defaults),
        *(_section("op_defaults", block) for block in configuration.operation_defaults),
    ]
    return "".join(f"{text}\n" for text in statements)


def _arranged_nodes(configuration: Configuration, arrangement: Arrangement) -> Iterable[NodeEntry]:
    entries = configuration.nodes.values()
    return entries if arrangement is Arrangement.DOCUMENT else sorted(entries, key=lambda entry: entry.name)


def _arranged_resources(configuration: Configuration, arrangement: Arrangement) -> Iterable[Resource]:
    resources = configuration.resources.values()
    if arrangement is Arrangement.DOCUMENT:
        return resources
    return sorted(resources, key=lambda resource: (isinstance(resource, Group), resource.id))


def _arranged_constraints(configuration: Configuration, arrangement: Arrangement) -> Iterable[Constraint]:
    constraints = configuration.constraints.values()
    if arrangement is Arrangement.DOCUMENT:
        return constraints
    return sorted(constraints, key=lambda constraint: (type(constraint).__name__, constraint.id))


def _node(entry: NodeEntry) -> str:
    head = f"node {entry.name}{_description(entry.description)}"
    return head + _blocks(entry.name, (("attributes", entry.attributes), ("utilization", entry.utilization)))


def _resource(resource: Resource) -> str:
    if isinstance(resource, Group):
        members = " ".join(quote(member, keywords=SECTION_WORDS) for member in resource.members)
        head = f"group {resource.id} {members}{_description(resource.description)}"
        return head + _blocks(resource.id, (("params", resource.parameters), ("meta", resource.meta)))
    head = f"primitive {resource.id} {quote(str(resource.agent))}{_description(resource.description)}"
    blocks = (("params", resource.parameters), ("meta", resource.meta), ("utilization", resource.utilization))
    return head + _blocks(resource.id, blocks) + _operations(resource)


def _description(text: str) -> str:
    return f" description={quote_value(text)}" if text else ""


_Sections = Sequence[tuple[str, tuple[AttributeSet, ...]]]


def _are_natural(owner: str, sections: _Sections) -> bool:
    ids = [block.id for _, sets in sections for block in sets]
    return are_natural(ids, [block_base(owner, section) for section, sets in sections for _ in sets])


def _blocks(owner: str, sections: _Sections) -> str:
    with_ids = not _are_natural(owner, sections)
    return "".join(
        _NEXT + " ".join((section, *_body(block, with_id=with_ids))) for section, sets in sections for block in sets
    )


def _body(block: AttributeSet, *, with_id: bool) -> list[str]:
    words = [f"$id={block.id}"] if with_id else []
    words += [f"{_score(block.score)}:"] if block.score else []
    return words + _pairs(block)


def _pairs(block: AttributeSet) -> list[str]:
    return [f"{name}={quote_value(value)}" for name, value in block.pairs]


def _score(score: int) -> str:
    return {INFINITY: "inf", -INFINITY: "-inf"}.get(score, scores.render(score))


def _operations(primitive: Primitive) -> str:
    with_ids = not natural_operations(primitive.id, primitive.operations)
    return "".join(_NEXT + _operation(operation, with_id=with_ids) for operation in primitive.operations)


def _operation(operation: Operation, *, with_id: bool) -> str:
    words = ["op", operation.name]
    words += [f"$id={operation.id}"] if with_id else []
    words += _operation_attributes(operation)
    sections: _Sections = (("params", operation.parameters), ("meta", operation.meta))
    with_ids = not _are_natural(operation.id, sections)
    parameters = list(operation.parameters)
    if parameters and not with_ids and _can_be_inline(parameters[0]):
        words += _pairs(parameters.pop(0))
    for block in parameters:
        words += ["op_params", *_body(block, with_id=with_ids)]
    for block in operation.meta:
        words += ["op_meta", *_body(block, with_id=with_ids)]
    return " ".join(words)


def _operation_attributes(operation: Operation) -> list[str]:
    values = {
        "interval": durations.render(operation.interval_ms) if operation.interval_ms else None,
        "timeout": None if operation.timeout_ms is None else durations.render(operation.timeout_ms),
        "role": operation.role,
        "on-fail": operation.on_fail,
        "start-delay": durations.render(operation.start_delay_ms) if operation.start_delay_ms else None,
        "enabled": None if operation.is_enabled else "false",
        "requires": operation.requires,
    }
    words = [f"{name}={quote_value(value)}" for name, value in values.items() if value is not None]
    return words if operation.interval_ms else [*words, "interval=0"]


def _can_be_inline(block: AttributeSet) -> bool:
    names = [name for name, _ in block.pairs]
    is_clear = all(operation_row(name) is None and name not in LATER_ATTRIBUTES for name in names)
    return bool(names) and block.score == 0 and is_clear


def _constraint(constraint: Constraint) -> str:
    match constraint:
        case Location():
            return f"location {constraint.id} {constraint.resource} {_score(constraint.score)}: {constraint.node}"
        case Colocation():
            return _colocation(constraint)
        case Ordering():
            return _order(constraint)


def _colocation(constraint: Colocation) -> str:
    dependent = _qualified(constraint.dependent, constraint.dependent_role)
    primary = _qualified(constraint.primary, constraint.primary_role)
    text = f"colocation {constraint.id} {_score(constraint.score)}: {dependent} {primary}"
    if constraint.node_attribute is not None:
        text += f" node-attribute={quote_value(constraint.node_attribute)}"
    if constraint.influence is not None:
        text += f" influence={str(constraint.influence).lower()}"
    return text


def _order(constraint: Ordering) -> str:
    first = _qualified(constraint.first, constraint.first_action if constraint.first_action != "start" else None)
    then = _qualified(constraint.then, constraint.then_action)
    text = f"order {constraint.id} {constraint.kind}: {first} {then}"
    text += "" if constraint.is_symmetrical else " symmetrical=false"
    return text if constraint.require_all else f"{text} require-all=false"


def _qualified(resource: str, qualifier: str | None) -> str:
    return resource if qualifier is None else f"{resource}:{qualifier}"


def _section(keyword: str, block: AttributeSet) -> str:
    text = f"{keyword} $id={block.id} {_score(block.score)}:" if block.score else f"{keyword} {block.id}:"
    for pair in _pairs(block):
        # At the beginning of a line a name such as #health-x would be a comment.
        text += f" {pair}" if pair.startswith("#") else _NEXT + pair
    return text
