"""How dependents pull on the resource they want to be with, directly and along chains of colocations.

Pacemaker's "colocated node scores": when a primary is placed, the scores of everything that wants to run with it are
added to its own, each weighted by the colocation's score over INFINITY, and those of their dependents in turn.
"""

import math
from dataclasses import dataclass

from haclusterd.model.ids import NodeName
from haclusterd.model.scores import INFINITY, add
from haclusterd.scheduler.colocation import any_available, attribute_of, replace_scores, with_this
from haclusterd.scheduler.entities import UNAME, Resource, Together, Variant
from haclusterd.scheduler.nodes import Node

Table = dict[NodeName, int]


def pull_by_dependent(primary: Resource, together: Together, nodes: dict[NodeName, Node]) -> None:
    """Add to a primary's scores what one dependent, and whoever depends on that, prefers."""
    if not together.has_influence():
        return
    factor = together.score / INFINITY
    table = _pulled(_Pull(together.dependent, together, factor), primary.allowed, nodes)
    if table is not primary.allowed:
        replace_scores(primary, table, f"{together.id}: what {together.dependent.id} prefers")


@dataclass(slots=True)
class _Pull:
    """One resource that pulls; `is_done` when it and everything behind it has."""

    source: Resource
    together: Together
    factor: float
    is_done: bool = False


def _pulled(first: _Pull, table: Table, nodes: dict[NodeName, Node]) -> Table:
    """Return the table after a dependent and its own dependents have pulled; the same object when nothing changed.

    A walk with a list instead of calls: chains of colocations are as long as groups are. A resource on the way to the
    present one does not pull again, and one whose pull would leave no node to go to does not pull at all.
    """
    waiting = [first]
    while waiting:
        pull = waiting.pop()
        source = pull.source.children[0] if pull.source.variant is Variant.GROUP else pull.source
        if pull.is_done:
            source.updating_scores = False
            continue
        if source.updating_scores:
            continue
        work = _merged(source, table, pull.together, pull.factor, nodes)
        if not any_available(work, nodes):
            continue
        table = work
        source.updating_scores = True
        waiting.append(_Pull(pull.source, pull.together, pull.factor, is_done=True))
        waiting.extend(
            _Pull(further.dependent, further, pull.factor * further.score / INFINITY)
            for further in reversed(with_this(source))
            if further.has_influence()
        )
    return table


def _merged(source: Resource, table: Table, together: Together, factor: float, nodes: dict[NodeName, Node]) -> Table:
    scores = _scores_of(source, together)
    by_value = None if together.attribute == UNAME else _best_by_value(scores, together.attribute, nodes)
    work = dict(table)
    for name, value in table.items():
        node = nodes[name]
        if by_value is not None:
            score = by_value.get(_folded(attribute_of(node, together.attribute)), -INFINITY)
        else:
            score = scores.get(name, -INFINITY) if node.is_available else -INFINITY
        if factor < 0 and score < 0 and not _is_repelled(together, score):
            continue
        change = _rounded(factor * score)
        if change == 0 and score != 0:
            change = 1 if factor > 0 else -1
        if change:
            work[name] = add(value, change)
    return work


def _scores_of(source: Resource, together: Together) -> Table:
    """What a later member of a group prefers includes what its group does: only the first member carries that."""
    group = source.parent
    if group is None or together.dependent is not source or source is group.children[0] or not together.is_configured:
        return source.allowed
    return {name: add(score, group.allowed.get(name, 0)) for name, score in source.allowed.items()}


def _best_by_value(scores: Table, attribute: str, nodes: dict[NodeName, Node]) -> dict[str | None, int]:
    best: dict[str | None, int] = {}
    for name, score in scores.items():
        node = nodes[name]
        if node.is_available:
            value = _folded(attribute_of(node, attribute))
            best[value] = max(best.get(value, -INFINITY), score)
    return best


def _folded(value: str | None) -> str | None:
    return value.lower() if value is not None else None


def _is_repelled(together: Together, score: int) -> bool:
    """A dependent that must not be there, and can be nowhere else, may push a primary that is not sticky away."""
    if together.primary.stickiness >= -score or not together.has_influence():
        return False
    return sum(1 for value in together.dependent.allowed.values() if value >= 0) == 1


def _rounded(value: float) -> int:
    """Round half away from zero."""
    return math.floor(value + 0.5) if value >= 0 else math.ceil(value - 0.5)
