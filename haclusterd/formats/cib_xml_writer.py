"""A configuration as CIB XML, which Pacemaker and its tools read (`crm configure show xml`).

What is written and read again is the same configuration.
"""

from collections.abc import Iterator, Mapping
from xml.sax.saxutils import quoteattr

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
)

_SCHEMA = "pacemaker-3.0"


def write_configuration(configuration: Configuration) -> str:
    """Write the section `configuration` inside a `cib`."""
    lines = [f'<cib validate-with="{_SCHEMA}" epoch="0" num_updates="0" admin_epoch="0">', "  <configuration>"]
    lines += _section("crm_config", _sets("cluster_property_set", configuration.properties))
    lines += _section("nodes", (line for node in configuration.nodes.values() for line in _node(node)))
    lines += _section("resources", _resources(configuration))
    lines += _section("constraints", map(_constraint, configuration.constraints.values()))
    for tag, blocks in (("rsc_defaults", configuration.resource_defaults),
                        ("op_defaults", configuration.operation_defaults)):  # fmt: skip
        if blocks:
            lines += _section(tag, _sets("meta_attributes", blocks))
    lines += ["  </configuration>", "  <status/>", "</cib>"]
    return "\n".join(lines) + "\n"


def _section(tag: str, inside: Iterator[str]) -> list[str]:
    return [f"    {line}" for line in _element(tag, {}, inside)]


def _element(tag: str, attributes: Mapping[str, str | None], inside: Iterator[str]) -> Iterator[str]:
    """Yield the lines of an element; attributes without a value are left out."""
    words = _words(attributes)
    lines = [f"  {line}" for line in inside]
    if not lines:
        yield f"<{tag}{words}/>"
        return
    yield f"<{tag}{words}>"
    yield from lines
    yield f"</{tag}>"


def _words(attributes: Mapping[str, str | None]) -> str:
    return "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items() if value is not None)


def _sets(tag: str, blocks: tuple[AttributeSet, ...]) -> Iterator[str]:
    for block in blocks:
        score = scores.render(block.score) if block.score else None
        pairs = (
            f"<nvpair{_words({'id': f'{block.id}-{name}', 'name': name, 'value': value})}/>"
            for name, value in block.pairs
        )
        yield from _element(tag, {"id": block.id, "score": score}, pairs)


def _node(node: NodeEntry) -> Iterator[str]:
    attributes = {"id": node.name, "uname": node.name, "description": node.description or None}
    inside = [*_sets("instance_attributes", node.attributes), *_sets("utilization", node.utilization)]
    yield from _element("node", attributes, iter(inside))


def _resources(configuration: Configuration) -> Iterator[str]:
    parents = configuration.parents()
    for resource in configuration.resources.values():
        if isinstance(resource, Group):
            yield from _group(configuration, resource)
        elif resource.id not in parents:
            yield from _primitive(resource)


def _group(configuration: Configuration, group: Group) -> Iterator[str]:
    inside = [*_sets("meta_attributes", group.meta), *_sets("instance_attributes", group.parameters)]
    for member in group.members:
        found = configuration.resources.get(member)
        if isinstance(found, Primitive):
            inside += _primitive(found)
    yield from _element("group", {"id": group.id, "description": group.description or None}, iter(inside))


def _primitive(primitive: Primitive) -> Iterator[str]:
    agent = primitive.agent
    attributes = {
        "id": primitive.id, "class": agent.standard, "provider": agent.provider, "type": agent.type,
        "description": primitive.description or None,
    }  # fmt: skip
    inside = [
        *_sets("meta_attributes", primitive.meta),
        *_sets("instance_attributes", primitive.parameters),
        *_sets("utilization", primitive.utilization),
    ]
    if primitive.operations:
        inside += _element("operations", {}, (line for each in primitive.operations for line in _operation(each)))
    yield from _element("primitive", attributes, iter(inside))


def _operation(operation: Operation) -> Iterator[str]:
    attributes = {
        "id": operation.id,
        "name": operation.name,
        "interval": durations.render(operation.interval_ms),
        "timeout": None if operation.timeout_ms is None else durations.render(operation.timeout_ms),
        "role": operation.role,
        "on-fail": operation.on_fail,
        "start-delay": durations.render(operation.start_delay_ms) if operation.start_delay_ms else None,
        "enabled": None if operation.is_enabled else "false",
        "requires": operation.requires,
    }
    inside = [
        *_sets("meta_attributes", operation.meta),
        *_sets("instance_attributes", operation.parameters),
    ]
    yield from _element("op", attributes, iter(inside))


def _constraint(constraint: Constraint) -> str:
    if isinstance(constraint, Location):
        return f"<rsc_location{_words(_location(constraint))}/>"
    if isinstance(constraint, Colocation):
        return f"<rsc_colocation{_words(_colocation(constraint))}/>"
    return f"<rsc_order{_words(_ordering(constraint))}/>"


def _location(location: Location) -> dict[str, str | None]:
    score = scores.render(location.score)
    return {"id": location.id, "rsc": location.resource, "node": location.node, "score": score}


def _colocation(colocation: Colocation) -> dict[str, str | None]:
    return {
        "id": colocation.id,
        "rsc": colocation.dependent,
        "with-rsc": colocation.primary,
        "score": scores.render(colocation.score),
        "rsc-role": colocation.dependent_role,
        "with-rsc-role": colocation.primary_role,
        "node-attribute": colocation.node_attribute,
        "influence": None if colocation.influence is None else str(colocation.influence).lower(),
    }


def _ordering(ordering: Ordering) -> dict[str, str | None]:
    return {
        "id": ordering.id,
        "first": ordering.first,
        "then": ordering.then,
        "first-action": None if ordering.first_action == "start" else ordering.first_action,
        "then-action": ordering.then_action,
        "kind": None if ordering.kind is OrderingKind.MANDATORY else str(ordering.kind),
        "symmetrical": None if ordering.is_symmetrical else "false",
        "require-all": None if ordering.require_all else "false",
    }
