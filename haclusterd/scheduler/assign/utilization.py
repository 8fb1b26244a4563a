"""Capacities of nodes, and what resources take of them (Pacemaker Explained, "Utilization and Placement Strategy").

Only nodes that can hold a resource together with everything that must run beside it are used; when none can, the one
that can hold it alone and has most left is preferred. An attribute that a node does not have is a capacity of 0.
"""

from collections.abc import Iterator, Mapping

from haclusterd.model.ids import NodeName
from haclusterd.model.ocf import Role
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import ColocationPair, Node, Resource
from haclusterd.scheduler.scores.colocation_lists import this_with, with_this

Amounts = Mapping[str, int]


def compare_capacities(first: Node, second: Node) -> int:
    """Compare what is left of two nodes: negative when the first is ahead in more attributes."""
    ahead = 0
    for name in {**first.free, **second.free}:
        left, right = first.free.get(name, 0), second.free.get(name, 0)
        ahead += (left > right) - (left < right)
    return (ahead < 0) - (ahead > 0)


def consume(node: Node, resource: Resource) -> None:
    """Take what a resource needs from a node; what the node does not say is not counted."""
    for name, amount in resource.definition.utilization.items():
        if name in node.free:
            node.free[name] -= amount


def give_back(node: Node, resource: Resource) -> None:
    """Return what a resource needed."""
    for name, amount in resource.definition.utilization.items():
        if name in node.free:
            node.free[name] += amount


def make_room(resource: Resource, nodes: Mapping[NodeName, Node], available: set[NodeName]) -> Node | None:
    """Forbid the nodes that cannot hold a resource with its company; return the node to prefer when none can."""
    company = company_of(resource)
    if not any(each.definition.utilization for each in parts_of(company)):
        return None
    wanted = _needed(company)
    usable = [name for name, score in resource.assignment.allowed.items() if score >= 0 and name in available]
    holding = {name for name in usable if _fits(nodes[name], wanted)}
    if holding:
        _forbid(resource, nodes, [name for name in usable if name not in holding], wanted, "with its company ")
        return None
    most_free: Node | None = None
    for name in usable:
        if most_free is None or compare_capacities(nodes[name], most_free) < 0:
            most_free = nodes[name]
    too_small = [name for name in usable if not _fits(nodes[name], resource.definition.utilization)]
    _forbid(resource, nodes, too_small, resource.definition.utilization, "")
    return most_free


def _forbid(
    resource: Resource, nodes: Mapping[NodeName, Node], names: list[NodeName], wanted: Mapping[str, int], company: str
) -> None:
    for name in names:
        left = nodes[name].free
        short = [
            f"{amount} {each}, {left.get(each, 0)} left"
            for each, amount in sorted(wanted.items())
            if left.get(each, 0) < amount
        ]
        resource.assignment.add(name, -INFINITY, f"utilization: {company}it takes {'; '.join(short)}")


def _fits(node: Node, wanted: Amounts) -> bool:
    return all(amount <= node.free.get(name, 0) for name, amount in wanted.items())


def company_of(resource: Resource) -> list[Resource]:
    """Return a resource and everything that must run where it does, directly or along chains."""
    found: dict[int, Resource] = {id(resource): resource}
    waiting = [resource]
    while waiting:
        here = waiting.pop()
        for other in _neighbours(here):
            if id(other) not in found:
                found[id(other)] = other
                waiting.append(other)
    return list(found.values())


def _neighbours(resource: Resource) -> Iterator[Resource]:
    if resource.variant is Variant.GROUP and resource.definition.is_collocated:
        yield from resource.children
    for item in this_with(resource):
        if _binds(item):
            yield item.primary
    for item in with_this(resource):
        is_of_clone = resource.variant is Variant.CLONE and item.dependent.variant is not Variant.CLONE
        if _binds(item) and not is_of_clone:
            yield item.dependent


def _binds(item: ColocationPair) -> bool:
    """Whether a colocation ties places, rather than roles."""
    if item.score < INFINITY:
        return False
    dependent, primary = item.dependent, item.primary
    if item.dependent_role not in (Role.UNKNOWN, dependent.assignment.next_role):
        return False
    return item.primary_role in (Role.UNKNOWN, primary.assignment.next_role)


def parts_of(company: list[Resource]) -> Iterator[Resource]:
    """Yield the primitives that a company is made of: of a clone one instance, of a bundle the first container."""
    known = {id(each) for each in company}
    for resource in company:
        if resource.assignment.is_assigned:
            continue
        if resource.variant is Variant.PRIMITIVE:
            yield resource
        elif resource.variant is Variant.GROUP:
            if not any(id(member) in known for member in resource.children):
                yield from resource.children
        elif resource.variant is Variant.CLONE:
            if resource.children and not any(id(child) in known for child in resource.children):
                yield from resource.children[0].leaves()
        elif resource.replicas:
            yield resource.replicas[0].container


def _needed(company: list[Resource]) -> Amounts:
    total: dict[str, int] = {}
    for part in parts_of(company):
        for name, amount in part.definition.utilization.items():
            total[name] = total.get(name, 0) + amount
    return total
