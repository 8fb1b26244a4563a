"""Constraints that contradict each other: nothing that they name could ever run.

Groups count as what they mean: members start one after the other, each on the node of the one before it.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from haclusterd.commands.verify_containment import kind_of
from haclusterd.commands.verify_judgement import Judgement
from haclusterd.model.configuration import (
    Colocation,
    Configuration,
    Group,
    Location,
    Ordering,
    OrderingKind,
    contained,
)
from haclusterd.model.ids import ConstraintId, NodeName, ResourceId
from haclusterd.model.scores import INFINITY
from haclusterd.reports.codes import Code

CIRCLES_MAX = 20
"""Circles that are reported at once; more of them say nothing new."""

Vertex = tuple[str, str]
"""A resource, or one end of a group: ("begin", id), ("end", id), ("self", id)."""


@dataclass(slots=True)
class _Graph:
    """Who needs whom; each edge knows which constraint or group it comes from."""

    edges: dict[Vertex, dict[Vertex, str]] = field(default_factory=dict)

    def add(self, source: Vertex, target: Vertex, cause: str) -> None:
        self.edges.setdefault(source, {}).setdefault(target, cause)
        self.edges.setdefault(target, {})

    def remove(self, vertices: Sequence[Vertex]) -> None:
        for vertex in vertices:
            del self.edges[vertex]
        for targets in self.edges.values():
            for vertex in vertices:
                targets.pop(vertex, None)

    def chain(self, sources: Sequence[Vertex], targets: Sequence[Vertex]) -> list[str] | None:
        """Return the causes on a shortest way from a source to a target, each once; None when there is no way."""
        came_from: dict[Vertex, Vertex | None] = dict.fromkeys(sources)
        queue = deque(sources)
        while queue:
            vertex = queue.popleft()
            if vertex in targets:
                return self._causes(vertex, came_from)
            for target in self.edges.get(vertex, {}):
                if target not in came_from:
                    came_from[target] = vertex
                    queue.append(target)
        return None

    def _causes(self, vertex: Vertex, came_from: Mapping[Vertex, Vertex | None]) -> list[str]:
        causes: list[str] = []
        while (before := came_from[vertex]) is not None:
            causes.append(self.edges[before][vertex])
            vertex = before
        return list(dict.fromkeys(reversed(causes)))


def check_constraints(judgement: Judgement) -> None:
    """Judge orders, colocations and locations against each other."""
    _check_orders(judgement)
    _check_colocations(judgement)
    _check_locations(judgement)


def _check_orders(judgement: Judgement) -> None:
    """Report circles of mandatory orders of starts."""
    graph = _order_graph(judgement.configuration)
    for _ in range(CIRCLES_MAX):
        circle = _find_circle(graph)
        if not circle:
            return
        ends = zip(circle, [*circle[1:], circle[0]], strict=True)
        causes = {graph.edges[source][target] for source, target in ends}
        constraints = [id_ for id_ in judgement.configuration.constraints if id_ in causes]
        if constraints:
            path = ("constraint", constraints[-1])
            shown = _spell(circle)
            judgement.note(Code.ORDER_CYCLE, path, circle=shown, constraints=", ".join(constraints))
        # Else groups alone make it: a member stands in two of them or twice in one, which is reported as such.
        graph.remove(circle)


def _spell(circle: Sequence[Vertex]) -> str:
    names = [name for name, _ in groupby(vertex[1] for vertex in (*circle, circle[0]))]
    return " -> ".join(names)


def _order_graph(configuration: Configuration) -> _Graph:
    """Return the graph of starts: an edge from what starts first to what then starts."""
    graph = _Graph()
    for resource in configuration.resources.values():
        inside = contained(resource)
        if not inside:
            continue
        cause = f"{kind_of(resource)} {resource.id}"
        before: Vertex = ("begin", resource.id)
        for child in inside:
            graph.add(before, _begin(configuration, child), cause)
            before = _end(configuration, child)
        graph.add(before, ("end", resource.id), cause)
    for constraint in configuration.constraints.values():
        if isinstance(constraint, Ordering) and constraint.kind is OrderingKind.MANDATORY:
            for first, then in _ordered_pairs(constraint):
                graph.add(_end(configuration, first), _begin(configuration, then), constraint.id)
    return graph


_STARTS = (None, "start")


def _ordered_pairs(constraint: Ordering) -> Iterator[tuple[ResourceId, ResourceId]]:
    """Yield what starts after what; where any of a set will do, nothing is sure."""
    if not constraint.sets:
        is_of_starts = constraint.first_action == "start" and constraint.then_action in _STARTS
        if is_of_starts and constraint.first != constraint.then:
            yield constraint.first, constraint.then
        return
    for each in constraint.sets:
        if each.is_sequential is not False and each.action in _STARTS:
            yield from pairwise(each.members)
    for earlier, later in pairwise(constraint.sets):
        is_sure = earlier.require_all is not False and earlier.action in _STARTS and later.action in _STARTS
        if is_sure and earlier.members and later.members:
            last = earlier.members[-1:] if earlier.is_sequential is not False else earlier.members
            first = later.members[:1] if later.is_sequential is not False else later.members
            yield from ((one, other) for one in last for other in first)


def _begin(configuration: Configuration, resource: ResourceId) -> Vertex:
    return ("begin" if _is_collective(configuration, resource) else "self", resource)


def _end(configuration: Configuration, resource: ResourceId) -> Vertex:
    return ("end" if _is_collective(configuration, resource) else "self", resource)


def _is_collective(configuration: Configuration, resource: ResourceId) -> bool:
    found = configuration.resources.get(resource)
    return found is not None and bool(contained(found))


def _find_circle(graph: _Graph) -> list[Vertex]:
    """Return the vertices of one circle in order; none when there is no circle."""
    sources: dict[Vertex, list[Vertex]] = {vertex: [] for vertex in graph.edges}
    open_targets = {vertex: len(targets) for vertex, targets in graph.edges.items()}
    for vertex, targets in graph.edges.items():
        for target in targets:
            sources[target].append(vertex)
    leaves = [vertex for vertex, count in open_targets.items() if count == 0]
    while leaves:
        leaf = leaves.pop()
        del open_targets[leaf]
        for source in sources[leaf]:
            open_targets[source] -= 1
            if open_targets[source] == 0:
                leaves.append(source)
    # Whatever is left leads to something that is left, so that a walk must come round.
    if not open_targets:
        return []
    step = next(iter(open_targets))
    walk: dict[Vertex, int] = {}
    while step not in walk:
        walk[step] = len(walk)
        step = next(target for target in graph.edges[step] if target in open_targets)
    return list(walk)[walk[step] :]


def _check_colocations(judgement: Judgement) -> None:
    """Report what must never run with something that it must run with."""
    configuration = judgement.configuration
    _check_colocations_in_groups(judgement)
    graph = _colocation_graph(configuration)
    for constraint in configuration.constraints.values():
        if not isinstance(constraint, Colocation) or constraint.score > -INFINITY or not _is_plain(constraint):
            continue
        chain = _chain_between(graph, configuration, constraint)
        if chain is not None:
            judgement.note(
                Code.COLOCATION_CONTRADICTION,
                ("constraint", constraint.id),
                dependent=constraint.dependent,
                primary=constraint.primary,
                constraints=", ".join((constraint.id, *chain)),
            )


def _check_colocations_in_groups(judgement: Judgement) -> None:
    """Report members that are placed with a later member, or their whole group: each would have to follow the other.

    The group places its members in their order; such a constraint pulls against that for ever.
    """
    places = {
        member: (group.id, number)
        for group in judgement.configuration.groups()
        for number, member in enumerate(group.members)
    }
    for constraint in judgement.configuration.constraints.values():
        if not isinstance(constraint, Colocation) or constraint.sets or constraint.score <= -INFINITY:
            continue
        group, number = places.get(constraint.dependent, (None, 0))
        other_group, other_number = places.get(constraint.primary, (None, 0))
        is_later = other_group == group and other_number > number
        if group is not None and (is_later or constraint.primary == group):
            judgement.note(
                Code.COLOCATION_WITHIN_GROUP, ("constraint", constraint.id), id=constraint.id, group=group,
                dependent=constraint.dependent, primary=constraint.primary,
            )  # fmt: skip


def _is_plain(constraint: Colocation) -> bool:
    if constraint.sets:
        return False
    has_roles = constraint.dependent_role is not None or constraint.primary_role is not None
    return constraint.dependent != constraint.primary and not has_roles and constraint.node_attribute is None


def _colocation_graph(configuration: Configuration) -> _Graph:
    """Return who needs whom on its node. ("begin", G): what a whole group needs; ("end", G): where a group is."""
    graph = _Graph()
    for group in configuration.groups():
        cause = f"group {group.id}"
        for earlier, later in pairwise(group.members):
            graph.add(("self", later), ("self", earlier), cause)
        for member in group.members:
            graph.add(("self", member), ("begin", group.id), cause)
        if group.members:
            graph.add(("end", group.id), ("self", group.members[-1]), cause)
    for constraint in configuration.constraints.values():
        if isinstance(constraint, Colocation) and constraint.score >= INFINITY and _is_plain(constraint):
            source, target = _begin(configuration, constraint.dependent), _end(configuration, constraint.primary)
            graph.add(source, target, constraint.id)
    return graph


def _chain_between(graph: _Graph, configuration: Configuration, constraint: Colocation) -> list[str] | None:
    """Return the causes that bind the two together, in either direction; None when nothing does."""
    dependents = _members(configuration, constraint.dependent)
    primaries = _members(configuration, constraint.primary)
    chain = graph.chain(dependents, primaries)
    return chain if chain is not None else graph.chain(primaries, dependents)


def _members(configuration: Configuration, id_: ResourceId) -> list[Vertex]:
    resource = configuration.resources.get(id_)
    members = resource.members if isinstance(resource, Group) else (id_,)
    return [("self", member) for member in members]


def _check_locations(judgement: Judgement) -> None:
    """Warn of preferences that a ban overrules, and of resources that are banned from every node."""
    bans: dict[ResourceId, dict[NodeName, ConstraintId]] = {}
    locations = [each for each in judgement.configuration.constraints.values() if isinstance(each, Location)]
    for location in locations:
        if location.score <= -INFINITY and location.resource and location.node:
            bans.setdefault(location.resource, {}).setdefault(location.node, location.id)
    for location in locations:
        ban = bans.get(location.resource, {}).get(location.node)
        if ban is not None and location.score > 0:
            judgement.note(Code.LOCATION_NO_EFFECT, ("constraint", location.id), id=location.id, other=ban)
    nodes = judgement.nodes()
    for resource, banned in bans.items():
        if nodes and all(node in banned for node in nodes):
            constraints = list(dict.fromkeys(banned[node] for node in nodes))
            path = ("constraint", constraints[-1])
            judgement.note(Code.NO_NODE_ALLOWED, path, resource=resource, constraints=", ".join(constraints))
