"""From which nodes a fence device may be used: where location constraints do not keep it away.

Source: Pacemaker Explained, "Fencing": a device that is not allowed on a node is not used there. A node counts as
allowed when the scores of all constraints that mean the device, or what contains it, come to no less than 0 there. In
a cluster with symmetric-cluster=false some constraint must give it a score there. What is said of the roles Promoted
and Stopped is not said of a device, which is neither (as in `location_constraints`).
Dates of these constraints do not count, because who fences must not depend on a clock: verification refuses them.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import reduce

from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.configuration import Configuration, Location, Primitive, effective
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.patterns import compile_pattern
from haclusterd.model.records import dataclass
from haclusterd.model.rules import Rule
from haclusterd.model.scores import add, parse
from haclusterd.model.watchdog import WATCHDOG
from haclusterd.scheduler.model.dates import EffectiveTime
from haclusterd.scheduler.model.entities import NodeKind
from haclusterd.scheduler.model.options import DEFAULT_OPTIONS
from haclusterd.scheduler.model.rules import RuleContext, evaluate, substituted
from haclusterd.scheduler.model.settings import unpack_settings
from haclusterd.scheduler.unpack.fencing_capability import fencing_levels, watchdog_levels
from haclusterd.scheduler.unpack.nodes import node_attributes

Level = tuple[ResourceId, ...]
"""Devices that must all succeed."""
Submatches = tuple[str, ...]
_NO_DATE = WallTime(0)
_OTHER_ROLES = ("promoted", "master", "stopped")
"""Roles that no fence device has."""


def levels_for(cib: Cib, status: NodeStatus) -> tuple[Level, ...]:
    """Return the fencing levels of a node, in the order of the topology; the watchdog comes last."""
    entry = cib.in_force.nodes.get(status.name)
    attributes = {**(effective(entry.attributes) if entry is not None else {}), **status.attributes}
    return fencing_levels(cib.in_force, status.name, attributes) + watchdog_levels(cib.in_force, status)


def able_to_use(cib: Cib, target: NodeName, level: Level, *, is_unfencing: bool = False) -> list[NodeName]:
    """Return the online nodes that may call all devices of a level; for fencing, without the target.

    Location constraints concern devices only: every node may conclude that a watchdog has done its work.
    """
    nodes = sorted(
        name
        for name, status in cib.status.nodes.items()
        if status.state is NodeState.ONLINE and (is_unfencing or name != target)
    )
    for device in level:
        nodes = nodes if device == WATCHDOG else executors_of(cib, device, nodes)
    return nodes


@dataclass(frozen=True, slots=True)
class _Meant:
    """A constraint that means a device, and what it says of it in particular."""

    location: Location
    score: int
    role: str | None
    submatches: Submatches = ()
    """What its pattern matched."""


def executors_of(cib: Cib, device: ResourceId, nodes: Iterable[NodeName]) -> list[NodeName]:
    """Return which of some nodes may use a device."""
    cib = cib.as_in_force()
    meant = list(_meaning(cib.configuration, device))
    settings = unpack_settings(cib.configuration, _NO_DATE, DEFAULT_OPTIONS)
    if not meant:
        return list(nodes) if settings.is_symmetric else []
    allowed = []
    for node in nodes:
        attributes = node_attributes(cib, node, NodeKind.MEMBER, settings)
        scores = [score for each in meant for score in _scores(each, node, attributes)]
        if reduce(add, scores, 0) >= 0 and (scores or settings.is_symmetric):
            allowed.append(node)
    return allowed


def is_named_by_location(configuration: Configuration, device: ResourceId) -> bool:
    """Tell whether some constraint says anything of a device."""
    return next(_meaning(configuration, device), None) is not None


def meant_devices(configuration: Configuration, location: Location) -> list[ResourceId]:
    """Return the fence devices that a constraint means."""
    return [
        device.id
        for device in configuration.fence_devices()
        if any(each.location is location for each in _meaning(configuration, device.id))
    ]


def _meaning(configuration: Configuration, device: ResourceId) -> Iterator[_Meant]:
    """Yield the constraints that mean a device."""
    own, top = _names(configuration, device)
    for location in configuration.constraints.values():
        if not isinstance(location, Location):
            continue
        if location.pattern:
            found = _matched(location.pattern, top)
            if found is not None:
                yield _Meant(location, location.score, location.role, found)
        elif location.sets:
            for each in location.sets:
                if own.intersection(each.members):
                    score = location.score if each.score is None else each.score
                    yield _Meant(location, score, each.role or location.role)
        elif location.resource in own:
            yield _Meant(location, location.score, location.role)


def _names(configuration: Configuration, device: ResourceId) -> tuple[set[str], ResourceId]:
    """Return under which names constraints may mean a device, and the outermost resource that contains it."""
    own: set[str] = {device}
    parents, top = configuration.parents(), device
    while top in parents and parents[top] not in own:
        top = parents[top]
        own.add(top)
    found = configuration.resources.get(device)
    if isinstance(found, Primitive) and found.template is not None:
        own.add(found.template)
    own |= {id_ for id_, tag in configuration.tags.items() if own.intersection(tag.references)}
    return own, top


def _matched(pattern: str, name: str) -> Submatches | None:
    """Return what a pattern matched; None: it does not mean that resource."""
    is_inverted = pattern.startswith("!")
    try:
        found = compile_pattern(pattern.removeprefix("!")).search(name)
    except ValueError:
        return None
    if is_inverted:
        return () if found is None else None
    return found


def _scores(meant: _Meant, node: NodeName, attributes: Mapping[str, str]) -> Iterator[int]:
    """Yield what a constraint is worth on a node; nothing where it says nothing of the node."""
    location = meant.location
    if not location.rules:
        if location.node.lower() == node.lower() and not _is_of_another_role(meant.role):
            yield meant.score
        return
    context = RuleContext(EffectiveTime(_NO_DATE), attributes, submatches=meant.submatches)
    for rule in location.rules:
        if not _is_of_another_role(rule.role or meant.role) and evaluate(rule, context):
            yield from _worth(rule, attributes, meant.submatches)


def _is_of_another_role(role: str | None) -> bool:
    return (role or "").lower() in _OTHER_ROLES


def _worth(rule: Rule, attributes: Mapping[str, str], submatches: Submatches) -> Iterator[int]:
    if rule.score_attribute is None:
        yield rule.score or 0
        return
    with suppress(ValueError):
        yield parse(attributes.get(substituted(rule.score_attribute, submatches), ""))
