"""Clones with `gpu-gang=all`, once it is known what relations require and prevent (docs/design/0015-devices.md).

`assign/gangs.py` decides where the instances of a gang run, and which stop with one that moves or failed. What comes
first in an order, a node that is to be unfenced or a parameter with another value on one node touches one instance
later than that: then the others do what it does.
"""

from collections.abc import Iterator

from haclusterd.scheduler.actions.flags import block, forbid, join
from haclusterd.scheduler.actions.withdrawal import withdraw
from haclusterd.scheduler.model.entities import Action, Resource
from haclusterd.scheduler.model.tasks import START


def hold_together(gang: Resource) -> list[Action]:
    """Let all instances of a gang start, restart or stop where one of them does; return the actions that this changed.

    Nothing starts where one that has to start cannot, or where one runs that is not managed; what runs stops then. A
    member of a group that runs in no instance, as one with target-role=Stopped, keeps no other member from running.
    """
    leaves = [leaf for child in gang.children if not child.found.is_removed for leaf in child.leaves()]
    placed = {leaf.base_id for leaf in leaves if leaf.assignment.node is not None}
    apart = (leaf for leaf in leaves if leaf.assignment.node is None and leaf.base_id in placed)
    nowhere = next((leaf for leaf in apart if leaf.is_managed), None)
    if nowhere is not None:
        return _stop_all(leaves, nowhere)
    starts = [(leaf, start) for leaf in leaves for start in _starts(leaf)]
    first = next((leaf for leaf, start in starts if not start.is_optional), None)
    if first is None:
        return []
    reason = f"its gang starts together, and {first.id} has to start"
    changed = [start for leaf, start in starts if leaf.is_managed and join(start, reason)]
    stuck = next((start for _, start in starts if not start.is_optional and not start.is_runnable), None)
    if stuck is not None:
        return [*changed, *(start for _, start in starts if not start.is_optional and forbid(start, stuck))]
    kept = [leaf.id for leaf in leaves if not leaf.is_managed and leaf.found.active_nodes]
    possible = [start for _, start in starts if kept and start.is_runnable]
    for start in possible:
        block(start, f"its gang starts together, and {kept[0]} is not managed")
    return [*changed, *possible]


def _starts(leaf: Resource) -> Iterator[Action]:
    """Yield the starts of a leaf where it is to run."""
    for start in leaf.actions.get((START, 0), ()):
        if start.node is leaf.assignment.node:
            yield start


def _stop_all(leaves: list[Resource], nowhere: Resource) -> list[Action]:
    changed = []
    for leaf in leaves:
        if leaf.is_managed and leaf.assignment.node is not None:
            changed += withdraw(leaf)
            leaf.assignment.ban_everywhere(f"gpu-gang: {nowhere.id} has no place")
    return changed
