"""What one entry of the log can hold: what an agent is given, and the names of blocks under rules on dates.

An order holds the parameters and meta-attributes of its resource. A larger order can never be made, so the resource
could be neither started nor stopped. Names become those of environment variables; a name that none can have would fail
each action, also the stop of what runs. A judgement of rules names all blocks that are in force; without it nothing is
planned or fenced.
"""

from collections.abc import Iterable, Mapping

from haclusterd.commands.verify.judgement import Judgement, pairs
from haclusterd.model.configuration import AttributeSet, Clone, Primitive, Resource, Template, primitives_of
from haclusterd.model.dated_blocks import dated_blocks
from haclusterd.model.ids import ResourceId
from haclusterd.model.properties import collective_flag, collective_meta
from haclusterd.model.templates import expanded
from haclusterd.model.words import bytes_in_log, unfit_for_name
from haclusterd.reports.codes import Code

GIVEN_BYTES_MAX = 48 * 1024
"""Of one action. The rest of the 64 KiB of an entry is for what a clone's notifications tell of other instances."""
ORDER_BYTES_MAX = 60 * 1024
"""Of that and of the notifications of a unique clone, each of whose instances has a name of its own."""
_LISTS = 3
"""In so many lists stands an instance that moves, with its node: what is active, what is stopped, what is started."""
DATED_BYTES_MAX = 60 * 1024
"""Of the names of all blocks under rules on dates, with their places (`model.dated_blocks`)."""
_AROUND_BYTES = 3
"""Two quotes and a comma."""


def check_sizes(judgement: Judgement) -> None:
    """Judge names and sizes of what agents are given, and how many blocks there are under rules on dates."""
    configuration = judgement.configuration
    _check_dated(judgement)
    for kind, owners in (("resource", configuration.resources), ("template", configuration.templates)):
        for owner in owners.values():
            _check_names(judgement, kind, owner)
    parents = configuration.parents()
    for primitive in configuration.primitives():
        containers = [configuration.resources[name] for name in _above(primitive.id, parents)]
        _check_primitive(judgement, primitive, containers)


def _check_dated(judgement: Judgement) -> None:
    names = dated_blocks(judgement.configuration)
    if sum(bytes_in_log(name) + _AROUND_BYTES for name in names) > DATED_BYTES_MAX:
        what = f"the names of all {len(names)} blocks under rules on dates together"
        remedy = "give a template such a block, and make the resources from it; or name resources and blocks shorter"
        judgement.note(Code.TOO_LARGE, (), remedy=remedy, what=what, limit=f"{DATED_BYTES_MAX // 1024} KiB")


def _check_names(judgement: Judgement, kind: str, owner: Resource | Template) -> None:
    for section, blocks in (("params", owner.parameters), ("meta", owner.meta)):
        for name, _ in pairs(blocks):
            _check_name(judgement, name, owner.id, (kind, owner.id, section, name))
    for index, operation in enumerate(owner.operations if isinstance(owner, Primitive | Template) else ()):
        for name, _ in pairs(operation.parameters):
            _check_name(judgement, name, owner.id, (kind, owner.id, "operation", str(index), "params", name))


def _check_name(judgement: Judgement, name: str, owner: str, path: tuple[str, ...]) -> None:
    if not name:
        problem = "an attribute without a name"
        judgement.note(Code.BAD_VALUE, path, remedy="give it a name, or remove it", name=owner, problem=problem)
        return
    character = unfit_for_name(name)
    if character is not None:
        what = f"{owner}: the name {name!r}"
        judgement.note(Code.BAD_CHARACTER, path, remedy="give it another name", name=what, character=character)


def _above(resource: ResourceId, parents: Mapping[ResourceId, ResourceId]) -> list[ResourceId]:
    """Return what contains a resource, the nearest first."""
    found: list[ResourceId] = []
    while resource in parents and parents[resource] not in found:
        resource = parents[resource]
        found.append(resource)
    return found


def _check_primitive(judgement: Judgement, primitive: Primitive, containers: list[Resource]) -> None:
    whole = expanded(primitive, judgement.configuration)
    shared = [block for each in containers for block in each.parameters]
    parameters = _largest((*shared, *whole.parameters))
    meta = _largest((*judgement.configuration.resource_defaults,
                     *(block for each in containers for block in each.meta), *whole.meta))  # fmt: skip
    of_one_operation = [_largest(operation.parameters) for operation in whole.operations]
    most = max(of_one_operation, key=_total, default={})
    # With parameters of its own an order holds the resource's twice: as the action gets them, and as they last.
    size = _total(meta) + _total({**parameters, **most}) + (_total(parameters) if most else 0)
    if size > GIVEN_BYTES_MAX:
        given = {**meta, **parameters, **most}
        name = max(given, key=lambda each: (given[each], each))
        path = judgement.written(
            ("resource", primitive.id, "params", name), ("resource", primitive.id, "meta", name),
            ("resource", primitive.id),
        )  # fmt: skip
        what = f"{primitive.id}: what its agent is given, most of it in {name},"
        remedy = "put it into a file on each node, and configure the file's path"
        judgement.note(Code.TOO_LARGE, path, remedy=remedy, what=what, limit=f"{GIVEN_BYTES_MAX // 1024} KiB")
        return
    for clone in containers:
        if isinstance(clone, Clone) and size + _notified_bytes(judgement, clone) > ORDER_BYTES_MAX:
            path = judgement.written(("resource", clone.id, "meta", "clone-max"), ("resource", clone.id))
            what = f"{clone.id}: what each instance is notified of, the names of all instances and of their nodes,"
            remedy = "lower clone-max, or leave notify out"
            judgement.note(Code.TOO_LARGE, path, remedy=remedy, what=what, limit=f"{ORDER_BYTES_MAX // 1024} KiB")


def _notified_bytes(judgement: Judgement, clone: Clone) -> int:
    """Return how many bytes the notifications of a unique clone take, where all its instances move at once."""
    configuration = judgement.configuration
    meta = collective_meta(configuration, clone)
    is_notified = all(collective_flag(configuration, clone, name) for name in ("notify", "globally-unique"))
    if not is_notified or judgement.is_foreign or not meta.get("clone-max", "").isdecimal():
        return 0
    longest_node = max(map(len, judgement.nodes()), default=0)
    last = int(meta["clone-max"]) - 1
    names = (f"{primitive}:{last}" for primitive in primitives_of(configuration, clone.id))
    return _LISTS * (last + 1) * sum(len(name) + longest_node + 2 for name in names)


def _largest(blocks: Iterable[AttributeSet]) -> dict[str, int]:
    """Return by name how many bytes an attribute takes, name included: under rules any of its values may count."""
    sizes: dict[str, int] = {}
    for block in blocks:
        for name, value in block.pairs:
            sizes[name] = max(sizes.get(name, 0), bytes_in_log(name) + bytes_in_log(value))
    return sizes


def _total(sizes: Mapping[str, int]) -> int:
    return sum(sizes.values())
