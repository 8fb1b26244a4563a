"""From which nodes a fence device may be used: where location constraints do not keep it away.

Source: Pacemaker Explained, "Fencing": a device that is not allowed on a node is not used there. A node counts as
allowed when the scores of all constraints that mean the device, or what contains it, come to no less than 0 there.
Dates do not count, because whoever fences must not depend on a clock: verification refuses them.
"""

from collections.abc import Iterable, Iterator, Mapping

from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Configuration, Location, Primitive
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.patterns import compile_pattern
from haclusterd.model.rules import Rule
from haclusterd.model.scores import add, parse
from haclusterd.scheduler.dates import EffectiveTime
from haclusterd.scheduler.entities import NodeKind
from haclusterd.scheduler.nodes import node_attributes
from haclusterd.scheduler.options import DEFAULT_OPTIONS
from haclusterd.scheduler.rules import RuleContext, evaluate, substituted
from haclusterd.scheduler.settings import unpack_settings

Submatches = tuple[str, ...]
_NO_DATE = WallTime(0)


def executors_of(cib: Cib, device: ResourceId, nodes: Iterable[NodeName]) -> list[NodeName]:
    """Return which of some nodes may use a device."""
    meant = list(_meaning(cib.configuration, device))
    if not meant:
        return list(nodes)
    settings = unpack_settings(cib.configuration, _NO_DATE, DEFAULT_OPTIONS)
    allowed = []
    for node in nodes:
        attributes = node_attributes(cib, node, NodeKind.MEMBER, settings)
        score = 0
        for location, stated, submatches in meant:
            score = add(score, _score(location, stated, node, attributes, submatches))
        if score >= 0:
            allowed.append(node)
    return allowed


def meant_devices(configuration: Configuration, location: Location) -> list[ResourceId]:
    """Return the fence devices that a constraint means."""
    return [
        device.id
        for device in configuration.fence_devices()
        if any(each is location for each, _, _ in _meaning(configuration, device.id))
    ]


def _meaning(configuration: Configuration, device: ResourceId) -> Iterator[tuple[Location, int, Submatches]]:
    """Yield the constraints that mean a device, each with its score for it and what its pattern matched."""
    own, top = _names(configuration, device)
    for location in configuration.constraints.values():
        if not isinstance(location, Location):
            continue
        if location.pattern:
            found = _matched(location.pattern, top)
            if found is not None:
                yield location, location.score, found
        elif location.sets:
            for each in location.sets:
                if own.intersection(each.members):
                    yield location, location.score if each.score is None else each.score, ()
        elif location.resource in own:
            yield location, location.score, ()


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


def _score(
    location: Location, stated: int, node: NodeName, attributes: Mapping[str, str], submatches: Submatches
) -> int:
    if not location.rules:
        return stated if location.node.lower() == node.lower() else 0
    context = RuleContext(EffectiveTime(_NO_DATE), attributes, submatches=submatches)
    score = 0
    for rule in location.rules:
        if evaluate(rule, context):
            score = add(score, _worth(rule, attributes, submatches))
    return score


def _worth(rule: Rule, attributes: Mapping[str, str], submatches: Submatches) -> int:
    if rule.score_attribute is None:
        return rule.score or 0
    try:
        return parse(attributes.get(substituted(rule.score_attribute, submatches), ""))
    except ValueError:
        return 0
