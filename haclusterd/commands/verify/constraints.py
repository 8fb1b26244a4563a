"""Constraints that contradict each other: nothing that they name could ever run.

Groups count as what they mean: members start one after the other, each on the node of the one before it.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from haclusterd.commands.verify.containment import kind_of
from haclusterd.commands.verify.judgement import Judgement
from haclusterd.formats.constraint_words import KINDS
from haclusterd.model.configuration import (
    Clone,
    Colocation,
    Configuration,
    Group,
    Location,
    Ordering,
    OrderingKind,
    contained,
)
from haclusterd.model.ids import ConstraintId, NodeName, ResourceId
from haclusterd.model.properties import collective_flag
from haclusterd.model.records import dataclass, field, replace
from haclusterd.model.scores import INFINITY
from haclusterd.reports.codes import Code

CIRCLES_MAX = 20
"""Circles that are reported at once; more of them say nothing new."""

PAIRS_MAX = 100
"""More pairs of two sets than these are related by way of a vertex between them."""

Vertex = tuple[str, str]
"""A resource, one end of a group, or a promotion: ("begin", id), ("end", id), ("self", id), ("promote", id)."""


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

    def forget(self, cause: str) -> None:
        for targets in self.edges.values():
            for target in [target for target, known in targets.items() if known == cause]:
                del targets[target]

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


@dataclass(frozen=True, slots=True)
class Circle:
    """Orders of which each thing that they name waits for the next."""

    constraints: tuple[ConstraintId, ...]
    """In the order of the configuration."""
    shown: str
    """What it goes through: `a -> b -> a`."""
    resources: frozenset[str]
    is_mandatory: bool
    """Whether none of them could start even alone."""
    is_of_stops: bool = False
    """Whether they wait for each other when they are to stop, and not when they are to start."""


def circles(configuration: Configuration) -> Iterator[Circle]:
    """Yield circles of orders, those of starts and promotions that are wholly mandatory first; at most CIRCLES_MAX.

    Optional and serialized orders count when both actions are in one plan, which is so when everything starts. Stops
    and demotions come last: only circles that starts do not make too.
    Pacemaker accepts such orders, and what they name then waits for ever; so does the scheduler here.
    """
    mandatory = _order_graph(configuration, (OrderingKind.MANDATORY,), _COMING)
    found = list(_circles_in(mandatory, configuration, is_mandatory=True))
    kinds = tuple(OrderingKind)
    every = _circles_in(_order_graph(configuration, kinds, _COMING), configuration, is_mandatory=False)
    stops = _circles_in(_order_graph(configuration, kinds, _GOING), configuration, is_mandatory=False)
    for circle in (*every, *(_of_stops(circle) for circle in stops)):
        if not any(set(circle.constraints) <= set(known.constraints) for known in found):
            found.append(circle)
    yield from found[:CIRCLES_MAX]


def _of_stops(circle: Circle) -> Circle:
    """Return a circle of the graph of stops, shown in the order in which they would stop."""
    shown = " -> ".join(reversed(circle.shown.split(" -> ")))
    return replace(circle, shown=shown, is_of_stops=True)


def _circles_in(graph: _Graph, configuration: Configuration, *, is_mandatory: bool) -> Iterator[Circle]:
    for _ in range(CIRCLES_MAX):
        circle = _find_circle(graph)
        if not circle:
            return
        ends = zip(circle, [*circle[1:], circle[0]], strict=True)
        causes = {graph.edges[source][target] for source, target in ends}
        constraints = tuple(id_ for id_ in configuration.constraints if id_ in causes)
        # Without constraints groups alone make it: a member is in two of them or twice in one, reported as such.
        if constraints:
            names = frozenset(name for _, name in circle)
            yield Circle(constraints, _spell(circle), names, is_mandatory)
            graph.forget(constraints[-1])
        else:
            graph.remove(circle)


def _check_orders(judgement: Judgement) -> None:
    """Refuse circles of mandatory orders of starts; warn of the others."""
    for circle in circles(judgement.configuration):
        waiting = Code.STOPS_WAIT if circle.is_of_stops else Code.ORDERS_WAIT
        judgement.note(
            Code.ORDER_CYCLE if circle.is_mandatory else waiting,
            judgement.written(
                *(("constraint", id_) for id_ in reversed(circle.constraints)),
                *(("resource", name) for name in sorted(circle.resources)),
            ),
            circle=circle.shown,
            constraints=", ".join(circle.constraints),
        )


def _spell(circle: Sequence[Vertex]) -> str:
    things = [name for kind, name in circle if kind != "between"]
    names = [name for name, _ in groupby((*things, things[0]))]
    return " -> ".join(names)


def _order_graph(
    configuration: Configuration, kinds: tuple[OrderingKind, ...], actions: frozenset[str]
) -> _Graph:
    """Return the graph of starts, and of promotions where not only mandatory orders are asked for; or that of stops.

    An edge goes from what comes first to what then comes; in the graph of stops, from what stops later.
    """
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
        # What holds for a time only need not hold together with the others; a plan names what it leaves out.
        if not isinstance(constraint, Ordering) or constraint.lifetime:
            continue
        for number, related in enumerate(_steps(configuration, constraint, actions)):
            if related[2] in kinds:
                _relate(graph, configuration, related, constraint.id, number)
    return graph


@dataclass(frozen=True, slots=True)
class _Step:
    """What is done with some resources: `start` or `promote`."""

    action: str
    resources: tuple[ResourceId, ...]


_COMING = frozenset({"start", "promote"})
_GOING = frozenset({"stop", "demote"})
_UNDOES = {"start": "stop", "stop": "start", "promote": "demote", "demote": "promote"}


def _steps(
    configuration: Configuration, constraint: Ordering, wanted: frozenset[str]
) -> Iterator[tuple[_Step, _Step, OrderingKind]]:
    """Yield what comes before what, in words of starts: a stop that comes first is a start that comes last.

    `wanted`: whose order is asked for. That of the others counts where it is symmetrical: it holds in reverse then.
    """
    for earlier, later, kind in _stated(configuration, constraint):
        actions = {earlier.action, later.action}
        is_undone = constraint.is_symmetrical and kind is not OrderingKind.SERIALIZE
        if actions <= _COMING and (actions <= wanted or is_undone):
            yield earlier, later, kind
        elif actions <= _GOING and (actions <= wanted or is_undone):
            yield _undone(later), _undone(earlier), OrderingKind.OPTIONAL


def _undone(step: _Step) -> _Step:
    return _Step(_UNDOES[step.action], step.resources)


def _stated(
    configuration: Configuration, constraint: Ordering
) -> Iterator[tuple[_Step, _Step, OrderingKind]]:
    """Yield what a constraint puts before what; where any of a set will do, nothing is sure."""
    own = constraint.kind
    if not constraint.sets:
        first_action, then_action = constraint.first_action, constraint.then_action or constraint.first_action
        first, then = _tagged(configuration, (constraint.first,)), _tagged(configuration, (constraint.then,))
        yield _Step(first_action, first), _Step(then_action, then), own
        return
    for each in constraint.sets:
        kind, action = KINDS.get((each.kind or "").lower(), own), each.action or "start"
        # Serialized, each comes before all after it; a chain says as much about circles.
        if kind is OrderingKind.SERIALIZE or each.is_sequential is not False:
            for one, other in pairwise(_tagged(configuration, each.members)):
                yield _Step(action, (one,)), _Step(action, (other,)), kind
    for earlier, later in pairwise(constraint.sets):
        if earlier.require_all is False:
            continue
        last = earlier.members[-1:] if earlier.is_sequential is not False else earlier.members
        begin = later.members[:1] if later.is_sequential is not False else later.members
        actions = earlier.action or "start", later.action or "start"
        yield _Step(actions[0], _tagged(configuration, last)), _Step(actions[1], _tagged(configuration, begin)), own


def _tagged(configuration: Configuration, names: Sequence[ResourceId]) -> tuple[ResourceId, ...]:
    """Put the resources that a tag stands for in its place."""
    tags = configuration.tags
    return tuple(ResourceId(each) for name in names for each in (tags[name].references if name in tags else (name,)))


def _relate(
    graph: _Graph, configuration: Configuration, related: tuple[_Step, _Step, OrderingKind], id_: str, number: int
) -> None:
    """Put every resource of the one step before every one of the other; not before itself."""
    earlier, later, kind = related
    for step in (earlier, later):
        for resource in step.resources if step.action == "promote" else ():
            graph.add(_end(configuration, resource), ("promote", resource), id_)
    pairs = len(earlier.resources) * len(later.resources)
    if pairs > PAIRS_MAX and set(earlier.resources).isdisjoint(later.resources):
        between: Vertex = ("between", f"{id_} {number}")
        for first in earlier.resources:
            graph.add(_after(configuration, first, earlier.action), between, id_)
        for then in later.resources:
            graph.add(between, _before(configuration, then, later.action), id_)
        return
    for first in earlier.resources:
        for then in later.resources:
            # To start after the whole group that it is in does not bind a member (Pacemaker 2.1.5, run so).
            is_bound = kind is OrderingKind.MANDATORY or not _is_within(configuration, then, first)
            if first != then and is_bound:
                graph.add(_after(configuration, first, earlier.action), _before(configuration, then, later.action), id_)


def _is_within(configuration: Configuration, inner: ResourceId, outer: ResourceId) -> bool:
    pending, seen = [outer], {outer}
    while pending:
        found = configuration.resources.get(pending.pop())
        inside = () if found is None else contained(found)
        pending += [child for child in inside if child not in seen]
        seen.update(inside)
    return inner != outer and inner in seen


def _after(configuration: Configuration, resource: ResourceId, action: str) -> Vertex:
    return ("promote", resource) if action == "promote" else _end(configuration, resource)


def _before(configuration: Configuration, resource: ResourceId, action: str) -> Vertex:
    return ("promote", resource) if action == "promote" else _begin(configuration, resource)


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
    _check_members_apart(judgement)
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
        if collective_flag(judgement.configuration, group, "collocated")
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


def _check_members_apart(judgement: Judgement) -> None:
    """Warn of what must be with all of a group, or of a clone's, whose members may be on different nodes."""
    configuration = judgement.configuration
    apart: dict[ResourceId, ResourceId] = {}
    for top in configuration.resources.values():
        inner = configuration.resources.get(top.child) if isinstance(top, Clone) else top
        if isinstance(inner, Group) and not collective_flag(configuration, inner, "collocated"):
            apart[top.id] = inner.id
    for constraint in configuration.constraints.values() if apart else ():
        if isinstance(constraint, Colocation) and constraint.score >= INFINITY and constraint.primary in apart:
            judgement.note(
                Code.COLOCATION_WITH_MEMBERS_APART, ("constraint", constraint.id), id=constraint.id,
                group=apart[constraint.primary], dependent=constraint.dependent,
            )  # fmt: skip


def _is_plain(constraint: Colocation) -> bool:
    if constraint.sets:
        return False
    if constraint.lifetime:
        return False
    has_roles = constraint.dependent_role is not None or constraint.primary_role is not None
    return constraint.dependent != constraint.primary and not has_roles and constraint.node_attribute is None


def _colocation_graph(configuration: Configuration) -> _Graph:
    """Return who needs whom on its node. ("begin", G): what a whole group needs; ("end", G): where a group is."""
    graph = _Graph()
    for group in configuration.groups():
        if not collective_flag(configuration, group, "collocated"):
            continue
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
