"""How neighbours change the scores of a resource, directly and along chains of colocations.

Pacemaker's "colocated node scores": when a primary is placed, the scores of everything that wants to run with it are
added to its own, each weighted by the colocation's score over INFINITY, and those of their dependents in turn. Weights
are numbers of 32 bits, as Pacemaker's are. A neighbour that would leave no node to go to does not count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from struct import Struct

from haclusterd.model.ids import NodeName
from haclusterd.model.ocf import Role
from haclusterd.model.records import dataclass, field
from haclusterd.model.scores import INFINITY, add
from haclusterd.scheduler.assign.placing import Placing, Table
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import UNAME, ColocationPair, Resource
from haclusterd.scheduler.model.node_values import folded, is_by_host, value_on
from haclusterd.scheduler.scores.colocation_lists import this_with, with_this
from haclusterd.scheduler.scores.influence import has_influence

PREFERS = " prefers"
"""How the words for what a neighbour adds to a score end."""
_FLOAT = Struct("f")
_LOST = -100 * INFINITY
"""A score that was positive, and that a sum that may not become negative would have made so; in the end 1."""


@dataclass(slots=True)
class NeighbourScores:
    """What a walk along colocations does to one table of scores."""

    placing: Placing
    target: Resource
    """Whose scores they are."""
    table: Table
    """Changed in place."""
    is_nonnegative: bool = False
    """Positive scores may not become negative."""
    follows_primaries: bool = False
    """Walk to what the neighbours want to run with, instead of to what wants to run with them."""
    changes: list[tuple[NodeName, int, ColocationPair]] = field(default_factory=list)
    """What was added and for which colocation; only when the target explains its scores."""
    _live: list[NodeName] = field(init=False)
    """The nodes that can still be gained: -INFINITY stays what it is."""
    _chain_starts: list[Resource] = field(default_factory=list)
    """The first resources of the chains that were added as a whole on the way to the present resource."""

    def __post_init__(self) -> None:
        self._live = [name for name, value in self.table.items() if value > -INFINITY]

    def add(self, source: Resource, colocation: ColocationPair, *, is_dropped_if_useless: bool = True) -> None:
        """Add the scores of one neighbour, and of every neighbour behind it.

        A walk with a list instead of calls: chains of colocations are as long as groups are. A resource on the way to
        the present one is not counted again. One that is reached on several ways counts on each; there may be more ways
        than anybody can walk, and those that are left when the plan's steps are used up do not count.
        """
        waiting = [_Step(source, colocation, _narrowed(colocation.score / INFINITY))]
        is_first = True
        while waiting:
            step = waiting.pop()
            here = step.source
            if step.is_done:
                here.assignment.updating_scores = False
                if step.is_whole_chain:
                    self._chain_starts.pop()
                self._settle_lost()
                continue
            if here.variant is Variant.GROUP:
                here = here.children[0]
            is_counted = here.assignment.updating_scores or (self._chain_starts and self._is_in_added_chain(here))
            if is_counted or self._has_used_up_steps():
                continue
            end = self._add_chain(here, step)
            is_whole_chain = end is not None
            if is_whole_chain:
                self._chain_starts.append(here)
            if end is None:
                is_useful = self._add_scores(here, step, is_kept=is_first and not is_dropped_if_useless)
                is_first = False
                if not is_useful:
                    continue
                end = here
            is_first = False
            end.assignment.updating_scores = True
            waiting.append(_Step(end, step.colocation, step.factor, is_done=True, is_whole_chain=is_whole_chain))
            waiting.extend(reversed(list(self._further(end, step.factor))))

    def _has_used_up_steps(self) -> bool:
        """Count a step; tell whether all walks of the plan together have taken as many as they may."""
        self.placing.steps_left -= 1
        return self.placing.steps_left < 0

    def _add_scores(self, here: Resource, step: _Step, *, is_kept: bool) -> bool:
        """Add what one neighbour prefers; tell whether a node is left, without which those behind it add nothing."""
        changes = self._changed_scores(here, step)
        is_useful = self._leaves_a_node(changes)
        if is_useful or is_kept:
            self._keep(changes, step.colocation)
            if not is_useful:
                self._settle_lost()
        return is_useful

    def _is_in_added_chain(self, here: Resource) -> bool:
        return any(self.placing.chains.is_after(here, first) for first in self._chain_starts)

    def _add_chain(self, here: Resource, step: _Step) -> Resource | None:
        """Add what a whole chain prefers at once, where only one node is left; return the chain's end."""
        if step.factor != 1.0 or self.is_nonnegative or self.follows_primaries:
            return None
        if self.target.assignment.addends is not None or self.placing.are_any_nameless:
            return None
        if len(self._live) != 1 or here.variant is not Variant.PRIMITIVE or step.colocation.attribute != UNAME:
            return None
        name = self._live[0]
        if name not in self.placing.available or is_by_host(here) or is_by_host(self.target):
            return None
        if step.colocation.is_configured and here.parent is not None:
            return None
        tail = self.placing.chains.tail(here, name)
        value = self.table[name]
        if tail is None or tail.end is here or value < 0 or tail.end.assignment.updating_scores:
            return None
        if value + tail.lowest < 0 or value + tail.turnover >= INFINITY:
            return None
        self.table[name] = value + tail.total
        return tail.end

    def _further(self, here: Resource, factor: float) -> Iterable[_Step]:
        if self.follows_primaries:
            for item in this_with(here):
                yield _Step(item.primary, item, _weight(factor, item.score))
        else:
            for item in with_this(here):
                if has_influence(item, item.primary):
                    yield _Step(item.dependent, item, _weight(factor, item.score))

    def _changed_scores(self, source: Resource, step: _Step) -> dict[NodeName, int]:
        """Return the scores that one neighbour changes."""
        scores, colocation, factor = _scores_of(source, step.colocation), step.colocation, step.factor
        best = self._by_value(source, scores, colocation.attribute)
        available = self.placing.available
        changes: dict[NodeName, int] = {}
        for name in self._live:
            value = self.table[name]
            if best is not None:
                there = folded(value_on(self.placing.nodes[name], colocation.attribute, self.target))
                score = best.get(there, -INFINITY)
            else:
                score = scores.get(name, -INFINITY) if name in available else -INFINITY
            if factor < 0 and score < 0 and not _is_repelled(colocation, score):
                continue
            new = add(value, _weighted(score, factor))
            if self.is_nonnegative and new < 0 and value >= 0:
                new = _LOST if value > 0 else value
            if new != value:
                changes[name] = new
        return changes

    def _by_value(self, source: Resource, scores: Table, attribute: str) -> dict[str | None, int] | None:
        """The best of the neighbour's scores for each value of the attribute; None where nodes are just themselves."""
        are_themselves = attribute == UNAME and not self.placing.are_any_nameless
        if are_themselves and not is_by_host(source) and not is_by_host(self.target):
            return None
        best: dict[str | None, int] = {}
        for name, score in scores.items():
            if name in self.placing.available:
                value = folded(value_on(self.placing.nodes[name], attribute, source))
                best[value] = max(best.get(value, -INFINITY), score)
        return best

    def _leaves_a_node(self, changes: dict[NodeName, int]) -> bool:
        available, table = self.placing.available, self.table
        return any(changes.get(name, table[name]) >= 0 and name in available for name in self._live)

    def _keep(self, changes: dict[NodeName, int], colocation: ColocationPair) -> None:
        if self.target.assignment.addends is not None:
            for name, new in changes.items():
                self.changes.append((name, new - max(self.table[name], -INFINITY), colocation))
        self.table.update(changes)
        if any(value <= -INFINITY for value in changes.values()):
            self._live = [name for name in self._live if self.table[name] > -INFINITY]

    def _settle_lost(self) -> None:
        if self.is_nonnegative:
            for name, value in self.table.items():
                if value == _LOST:
                    self.table[name] = 1


@dataclass(slots=True)
class _Step:
    """One neighbour whose scores are added; `is_done` when it and everything behind it are."""

    source: Resource
    colocation: ColocationPair
    factor: float
    is_done: bool = False
    is_whole_chain: bool = False


def add_scores_of_dependents(
    primary: Resource, items: Iterable[ColocationPair], placing: Placing, *, is_nonnegative: bool = False
) -> None:
    """Add to a primary's scores what its dependents prefer, one after the other, where they have influence."""
    assignment = primary.assignment
    for colocation in items:
        if not has_influence(colocation, primary):
            continue
        neighbours = NeighbourScores(placing, primary, dict(assignment.allowed), is_nonnegative)
        neighbours.add(colocation.dependent, colocation)
        before = assignment.allowed
        if neighbours.table == before:
            continue
        for name, value in neighbours.table.items():
            if value <= -INFINITY and before[name] > -INFINITY:
                assignment.banned_by.setdefault(name, _words(colocation))
        assignment.allowed = neighbours.table
        if assignment.addends is not None:
            for name, change, cause in _addends(neighbours, colocation, before):
                within = max(-INFINITY, min(INFINITY, change))
                assignment.addends.setdefault(name, []).append((within, _words(cause)))


def _addends(
    neighbours: NeighbourScores, colocation: ColocationPair, before: Table
) -> Iterable[tuple[NodeName, int, ColocationPair]]:
    """What was added, neighbour by neighbour; as one sum where a score was kept from becoming negative."""
    settled = {name for name, _, _ in neighbours.changes if neighbours.table[name] == 1 and neighbours.is_nonnegative}
    yield from (each for each in neighbours.changes if each[0] not in settled)
    for name in sorted(settled):
        yield name, 1 - before[name], colocation


def _words(colocation: ColocationPair) -> str:
    return f"{colocation.id}: what {colocation.dependent.id}{PREFERS}"


def all_scores(source: Resource, placing: Placing) -> Table:
    """Return a resource's scores with those of everything it is to run with, and what that is to run with."""
    if source.variant is Variant.GROUP:
        source = source.children[-1]
    neighbours = NeighbourScores(placing, source, dict(source.assignment.allowed), follows_primaries=True)
    source.assignment.updating_scores = True
    if placing.any_usable(neighbours.table):
        for item in this_with(source):
            neighbours.add(item.primary, item)
    source.assignment.updating_scores = False
    return neighbours.table


def _scores_of(source: Resource, colocation: ColocationPair) -> Table:
    """What a later member of a group prefers includes what its group does: only the first member carries that."""
    group = source.parent
    if group is None or group.variant is not Variant.GROUP or not group.scores.locations:
        return source.assignment.allowed
    if colocation.dependent is not source or source is group.children[0] or not colocation.is_configured:
        return source.assignment.allowed
    table = dict(source.assignment.allowed)
    for location in group.scores.locations:
        if location.role in (Role.UNKNOWN, group.assignment.next_role):
            for name, score in location.scores.items():
                table[name] = add(table[name], score) if name in table else score
    return table


def _is_repelled(colocation: ColocationPair, score: int) -> bool:
    """A dependent that must not be there, and can be nowhere else, may push a primary that is not sticky away."""
    if colocation.primary.definition.stickiness >= -score or not has_influence(colocation, colocation.primary):
        return False
    return sum(1 for value in colocation.dependent.assignment.allowed.values() if value >= 0) == 1


def _weight(factor: float, score: int) -> float:
    if factor in (1.0, -1.0) and abs(score) >= INFINITY:
        return factor if score > 0 else -factor
    return _narrowed(_narrowed(factor * score) / INFINITY)


def _weighted(score: int, factor: float) -> int:
    """A score times a factor: rounded half away from zero, and never to nothing."""
    if factor == 1.0:
        return score
    if factor == -1.0:
        return -score
    value = _narrowed(factor * score)
    rounded = math.floor(value + 0.5) if value >= 0 else math.ceil(value - 0.5)
    if rounded == 0 and score != 0:
        return 1 if factor > 0 else -1
    return rounded


def _narrowed(value: float) -> float:
    return float(_FLOAT.unpack(_FLOAT.pack(value))[0])
