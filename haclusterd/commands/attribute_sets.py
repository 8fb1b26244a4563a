"""Blocks of name-value pairs: where they stand, and one name in them, set or taken out."""

from collections.abc import Iterator

from haclusterd.formats.generated_ids import allocate, block_base
from haclusterd.model.configuration import AttributeSet, Configuration, Operation, Primitive, effective, has_no_rule
from haclusterd.model.records import replace

Blocks = tuple[AttributeSet, ...]


def every_block(configuration: Configuration) -> Iterator[tuple[Blocks, str, tuple[str, ...]]]:
    """Yield all blocks, each kind with what to call its place and with the path of what it belongs to."""
    yield configuration.properties, "properties", ("properties",)
    yield configuration.resource_defaults, "resource defaults", ("resource_defaults",)
    yield configuration.operation_defaults, "operation defaults", ("operation_defaults",)
    for node in configuration.nodes.values():
        yield node.attributes + node.utilization, f"node {node.name}", ("node", node.name)
    for resource in configuration.resources.values():
        path = ("resource", resource.id)
        if isinstance(resource, Primitive):
            yield resource.parameters + resource.meta + resource.utilization, resource.id, path
            yield from _of_operations(resource.operations, resource.id, path)
        else:
            yield resource.parameters + resource.meta, resource.id, path
    for template in configuration.templates.values():
        path = ("template", template.id)
        yield template.parameters + template.meta + template.utilization, template.id, path
        yield from _of_operations(template.operations, template.id, path)


def _of_operations(
    operations: tuple[Operation, ...], owner: str, path: tuple[str, ...]
) -> Iterator[tuple[Blocks, str, tuple[str, ...]]]:
    for index, operation in enumerate(operations):
        own = (*path, "operation", str(index))
        yield operation.parameters + operation.meta, f"{owner}: {operation.name}", own


def with_value(
    sets: tuple[AttributeSet, ...], *, owner: str, section: str, name: str, value: str
) -> tuple[AttributeSet, ...]:
    """Return the blocks with `name` meaning `value`; themselves where it means that already while no rule holds.

    Otherwise it is replaced wherever it stands. Where it stands in no block without a rule, it is added to the first of
    these, else to a new one: in a block with a rule it would mean something only while that rule holds. `owner` and
    `section` (params, meta, attributes) give a new block its id.
    """
    if effective(sets).get(name) == value:
        return sets
    after = [block if block.get(name) is None else with_pair(block, name, value) for block in sets]
    if name in effective(sets):
        return tuple(after)
    plain = next((number for number, block in enumerate(after) if has_no_rule(block)), None)
    if plain is not None:
        after[plain] = with_pair(after[plain], name, value)
        return tuple(after)
    *_, fresh = allocate([*((block.id, "") for block in sets), (None, block_base(owner, section))])
    return (*after, AttributeSet(fresh, ((name, value),)))


def without(sets: tuple[AttributeSet, ...], name: str, *, keeps_empty: bool = False) -> tuple[AttributeSet, ...]:
    """Return the blocks without `name`; a block that becomes empty goes, unless it is kept as Pacemaker's tools do."""
    kept = (replace(block, pairs=tuple(pair for pair in block.pairs if pair[0] != name)) for block in sets)
    both = zip(kept, sets, strict=True)
    return tuple(block for block, before in both if block.pairs or keeps_empty or not before.pairs)


def with_pair(block: AttributeSet, name: str, value: str) -> AttributeSet:
    """Return a block with `name` having `value` in it."""
    if block.get(name) is None:
        return replace(block, pairs=(*block.pairs, (name, value)))
    return replace(block, pairs=tuple((key, value if key == name else old) for key, old in block.pairs))
