"""Clones whose instances run all or not at all (`gpu-gang=all`, docs/design/0015-devices.md).

Programs such as torchrun wait for each other at their start and end together: an instance alone holds its devices for
nothing, and one that starts again finds the others in the middle of their work.
"""

from collections.abc import Iterator

from haclusterd.scheduler.assign.placing import Placing
from haclusterd.scheduler.model.entities import Resource


def settle_gang(clone: Resource, placing: Placing) -> None:
    """Take all instances back where not all can start; else let them start together when one of them must start.

    What is not managed stays as it is: where it runs, the others cannot start together with it.
    """
    instances = [child for child in clone.children if not child.found.is_removed]
    placed = [child for child in instances if child.assignment.node is not None]
    wanted = clone.definition.clone_max
    if len(placed) < wanted:
        _take_back(placed, placing, f"{len(placed)} of {wanted} instances of {clone.id} have a place")
        return
    waits = [leaf.assignment.device_wait for leaf in _leaves(placed) if leaf.assignment.device_wait]
    fresh = [leaf for leaf in _leaves(placed) if leaf.is_managed and _must_start(leaf)]
    kept = [leaf for leaf in _leaves(placed) if not leaf.is_managed]
    if fresh and kept:
        _take_back(placed, placing, f"{fresh[0].id} has to start together with {kept[0].id}, which is not managed")
        return
    for leaf in _leaves(placed):
        if waits:
            leaf.assignment.device_wait = waits[0]
        if fresh and leaf not in fresh:
            leaf.assignment.device_change = f"its gang starts together, and {fresh[0].id} has to start"


def _take_back(instances: list[Resource], placing: Placing, reason: str) -> None:
    for instance in instances:
        leaves = list(instance.leaves())
        for leaf in leaves:
            leaf.assignment.ban_everywhere(f"gpu-gang: {reason}", placing.nodes)
        if all(leaf.is_managed for leaf in leaves):
            placing.take_none(instance)


def _leaves(instances: list[Resource]) -> Iterator[Resource]:
    for instance in instances:
        yield from instance.leaves()


def _must_start(leaf: Resource) -> bool:
    found = leaf.found
    if leaf.assignment.node is None:
        return False  # A member of a group that is to run nowhere.
    is_lost = found.is_failed and not found.ignores_failure
    return is_lost or bool(leaf.assignment.device_change) or leaf.assignment.node not in found.active_nodes
