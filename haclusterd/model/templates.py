"""Templates: a primitive made from one is what the template says, then what it says itself (Pacemaker Explained)."""

from collections.abc import Iterator

from haclusterd.model.configuration import Configuration, Operation, Primitive
from haclusterd.model.records import replace

_SAME_ROLE = frozenset({None, "Started", "Slave", "Unpromoted"})


def expanded(primitive: Primitive, configuration: Configuration) -> Primitive:
    """Return a primitive with its template's words before its own; itself when it has none (or a missing one).

    Blocks of equal score count from the last to the first, so the primitive's own win. An operation of the template is
    left out when the primitive has one of the same name and role.
    """
    template = configuration.templates.get(primitive.template) if primitive.template is not None else None
    if template is None:
        return primitive
    own = {_operation_key(operation) for operation in primitive.operations}
    inherited = tuple(each for each in template.operations if _operation_key(each) not in own)
    return replace(
        primitive,
        agent=template.agent,
        parameters=template.parameters + primitive.parameters,
        meta=template.meta + primitive.meta,
        utilization=template.utilization + primitive.utilization,
        operations=inherited + primitive.operations,
    )


def fence_devices(configuration: Configuration) -> Iterator[Primitive]:
    """Yield the primitives that are fence devices, with their templates' words."""
    return (expanded(device, configuration) for device in configuration.fence_devices())


def _operation_key(operation: Operation) -> tuple[str, str]:
    role = operation.role or ""
    return operation.name, "" if operation.role in _SAME_ROLE else role
