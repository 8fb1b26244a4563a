"""What would have to change for a resource to go to another node than the one it goes to.

A computed answer, not advice: what forbids the node (and with whom it is bound), what keeps the node itself from being
used, and how many points its score lacks, ties as they would be broken. Works only on resources that kept what their
scores are the sum of.
"""

from collections.abc import Iterator

from haclusterd.model.ocf import Role
from haclusterd.model.scores import INFINITY, add, render
from haclusterd.scheduler.assign.instance_order import CANNOT_RUN
from haclusterd.scheduler.assign.neighbour_scores import PREFERS
from haclusterd.scheduler.assign.promotion_scores import PROMOTION_SCORE
from haclusterd.scheduler.model.entities import ColocationPair, Node, Resource

_MOST_WORDS = 4


def to_win(resource: Resource, node: Node) -> tuple[str, ...]:
    """Say what would have to change for a node to be chosen; nothing of the node that was."""
    if node is resource.assignment.node and resource.assignment.next_role is not Role.STOPPED:
        return ()
    if not resource.is_managed:
        return (f"{resource.id} would have to be managed: it stays where it is",)
    return tuple(_changes(resource, node))


def _changes(resource: Resource, node: Node) -> Iterator[str]:
    objection = node.objection()
    if objection:
        yield f"{node.name} would have to be usable: {objection}"
    score = resource.assignment.allowed.get(node.name)
    if score is None:
        yield f"a location constraint would have to allow {node.name} (symmetric-cluster=false)"
        return
    addends = (resource.assignment.addends or {}).get(node.name, [])
    for source in dict.fromkeys(source for value, source in addends if value <= -INFINITY):
        if not (objection and source.endswith((PREFERS, CANNOT_RUN))):
            yield _without(resource, node, source)
    rest = 0
    for value, _ in addends:
        if value > -INFINITY:
            rest = add(rest, value)
    yield from _points(resource, node, rest)


def _without(resource: Resource, node: Node, source: str) -> str:
    """What would have to be so that a ban no longer holds."""
    colocation = _colocation(resource, source)
    if colocation is None:
        return f"no longer so: {source}"
    primary = colocation.primary
    bond = f"{colocation.id} keeps them {'apart' if colocation.score < 0 else 'together'}"
    if colocation.score < 0:
        return f"{primary.id} would have to leave {node.name} ({bond})"
    if primary.assignment.node is None and not primary.children:
        return f"{primary.id} would have to run ({bond})"
    return f"{primary.id} would have to run on {node.name} ({bond})"


def _colocation(resource: Resource, source: str) -> ColocationPair | None:
    identifier = source.partition(":")[0]
    around = resource
    while True:
        for colocation in around.scores.this_with:
            if colocation.id == identifier:
                return colocation
        if around.parent is None:
            return None
        around = around.parent


def _points(resource: Resource, node: Node, score: int) -> Iterator[str]:
    """How many points are missing, and against what."""
    wanted = resource.assignment.winning_scores.get(node.name)
    if wanted is None or score >= wanted:
        return
    winner = resource.assignment.node
    if winner is None:
        yield f"its score, {render(score)}, would have to be {render(wanted)} or more"
        return
    rival = f"{winner.name} has {render(resource.assignment.allowed.get(winner.name, 0))}{_made_of(resource, winner)}"
    if wanted >= INFINITY:
        yield f"{rival}: no number of points wins against INFINITY"
    else:
        points = _points_more(wanted - score)
        tie = _tie(resource, winner) if score == resource.assignment.allowed.get(winner.name) else ""
        yield f"{points}: {node.name} has {render(score)}{_made_of(resource, node)}, {rival}{tie}"


def _tie(resource: Resource, winner: Node) -> str:
    if winner in resource.found.active_nodes and resource.assignment.allowed.get(winner.name, 0) > 0:
        return "; with equal scores it stays"
    return "; of equal scores the node with fewer resources wins, then the name"


def _points_more(number: int) -> str:
    return f"{number} point{'' if number == 1 else 's'} more"


def _made_of(resource: Resource, node: Node) -> str:
    found = [(value, source) for value, source in (resource.assignment.addends or {}).get(node.name, []) if value > 0]
    found.sort(key=lambda item: -item[0])
    if not found:
        return ""
    words = [f"{render(value)} {source}" for value, source in found[:_MOST_WORDS]]
    more = len(found) - len(words)
    return f" ({', '.join(words)}{f' and {more} more' if more else ''})"


def to_be_promoted(instance: Resource, clone: Resource) -> tuple[str, ...]:
    """Say what would have to change for an instance of a promotable clone to be promoted."""
    if instance.assignment.next_role is Role.PROMOTED:
        return ()
    place = instance.place()
    if place is None:
        return (f"{instance.id} would have to run somewhere",)
    score = instance.assignment.promotion_priority
    bans = [source for value, source in instance.assignment.promotion_addends if value <= -INFINITY]
    other_bans = dict.fromkeys(source for source in bans if not source.startswith(PROMOTION_SCORE))
    if other_bans:
        return tuple(f"no longer so: {source}" for source in other_bans)
    if score < 0:
        return (f"its promotion score, {render(score)}, would have to be 0 or more",)
    promoted = [each for each in clone.children if each.assignment.next_role is Role.PROMOTED]
    if len(promoted) < clone.definition.promoted_max or not promoted:
        return (f"{place.name} would have to be usable for the promoted role",)
    last = min(promoted, key=lambda each: each.assignment.promotion_priority)
    if last.assignment.promotion_priority >= INFINITY:
        return (f"{last.id} has INFINITY: no number of points wins against it",)
    enough = last.assignment.promotion_priority
    return (f"{_points_more(enough - score + 1)}: it has {render(score)}, {last.id} has {render(enough)}",)
