"""Chains of resources of which each wants to be where the one before it is, and nothing else wants to be there.

Members of a group are such a chain. When the first of them has its node, each of the others is pulled there by all that
follow it: walking the rest of the chain for each member would take time with the square of its length. Here the rest of
a chain is summed up once for a node. Invariant: a sum is used only while no resource in it has changed its scores;
every resource that is about to be assigned has to be reported here (`changed`).
"""

from __future__ import annotations

from haclusterd.model.ids import NodeName
from haclusterd.model.records import dataclass
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import UNAME, ColocationPair, Resource
from haclusterd.scheduler.scores.colocation_lists import with_this
from haclusterd.scheduler.scores.influence import has_influence


@dataclass(frozen=True, slots=True)
class Tail:
    """The rest of a chain: what it adds to the score of one node."""

    end: Resource
    total: int
    lowest: int
    """The smallest sum on the way; what is below zero would end the walk early."""
    turnover: int
    """The sum of all that is added or taken, without signs: how near to infinity the way may lead."""


class _Chain:
    """One chain, and its tails for the nodes that were asked for, from the last member backwards."""

    def __init__(self, members: list[Resource]) -> None:
        self.members = members
        self.first_unchanged = 0
        self._tails: dict[NodeName, list[Tail | None]] = {}

    def tail(self, index: int, node: NodeName) -> Tail | None:
        """Return the tail that begins with a member; None where a score is infinite."""
        tails = self._tails.get(node)
        if tails is None:
            tails = self._tails[node] = self._summed(node)
        return tails[index]

    def _summed(self, node: NodeName) -> list[Tail | None]:
        tails: list[Tail | None] = [None] * len(self.members)
        after: Tail | None = Tail(self.members[-1], 0, 0, 0)
        for index in range(len(self.members) - 1, -1, -1):
            score = self.members[index].assignment.allowed.get(node, -INFINITY)
            if after is None or abs(score) >= INFINITY:
                break
            lowest = score + min(0, after.lowest)
            after = tails[index] = Tail(after.end, score + after.total, lowest, abs(score) + after.turnover)
        return tails


class DependentChains:
    """The chains that were found so far in one plan."""

    def __init__(self) -> None:
        self._places: dict[int, tuple[_Chain, int]] = {}

    def changed(self, resource: Resource) -> None:
        """Take note that a resource's scores are about to change."""
        place = self._places.get(id(resource))
        if place is not None:
            chain, index = place
            chain.first_unchanged = max(chain.first_unchanged, index + 1)

    def tail(self, resource: Resource, node: NodeName) -> Tail | None:
        """Return what a resource and all that follow it in its chain add to a node; None when that is not known."""
        place = self._places.get(id(resource))
        if place is None or place[1] < place[0].first_unchanged:
            place = self._found(resource)
        return place[0].tail(place[1], node)

    def is_after(self, resource: Resource, first: Resource) -> bool:
        """Tell whether a resource is in the tail that begins with another one."""
        here, there = self._places.get(id(resource)), self._places.get(id(first))
        return here is not None and there is not None and here[0] is there[0] and here[1] >= there[1]

    def _found(self, resource: Resource) -> tuple[_Chain, int]:
        members = [resource]
        seen = {id(resource)}
        following = next_in_chain(resource)
        while following is not None and id(following) not in seen:
            members.append(following)
            seen.add(id(following))
            following = next_in_chain(following)
        if following is not None:
            members = [resource]
        chain = _Chain(members)
        for index, member in enumerate(members):
            self._places[id(member)] = chain, index
        return chain, 0


def next_in_chain(resource: Resource) -> Resource | None:
    """Return the only resource that wants, and must, be where this one is; None when there is not just one."""
    items = with_this(resource)
    if len(items) != 1 or not _is_link(items[0]):
        return None
    dependent = items[0].dependent
    return dependent.children[0] if dependent.variant is Variant.GROUP else dependent


def _is_link(item: ColocationPair) -> bool:
    if item.score < INFINITY or item.attribute != UNAME or not has_influence(item, item.primary):
        return False
    if item.dependent.variant > Variant.GROUP:
        return False
    if item.dependent.definition.uses_host_attributes or item.primary.definition.uses_host_attributes:
        return False
    return not item.is_configured or item.dependent.parent is None
