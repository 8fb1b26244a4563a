"""How assignments wait for each other: each is a generator that yields what must be assigned before it is resumed.

Chains of dependencies may be as long as a group, so they are in a list (`Assigner.assign`), not on the call stack.
"""

from collections.abc import Iterator

from haclusterd.model.records import dataclass
from haclusterd.scheduler.model.entities import Node, Resource


@dataclass(frozen=True, slots=True)
class Wanted:
    """A resource that is to be assigned now."""

    resource: Resource
    prefer: Node | None = None
    """The node to choose, if it is as good as the best."""
    is_trial: bool = False
    """That it gets no node has no consequence yet."""


Steps = Iterator[Wanted]


def remember_scores(resource: Resource) -> None:
    """Keep the scores by which a resource, and what is inside it, is about to be placed, for who wants to see them."""
    if resource.assignment.addends is not None:
        resource.assignment.considered = dict(resource.assignment.allowed)
        for child in resource.children:
            remember_scores(child)
