"""Phase: what must be true of every graph, whatever was decided; a graph that breaks it never leaves this room.

Nothing that a lost node may still run starts elsewhere without its fencing before it, and nothing waits for itself
(architecture: decision 5; safety.md §1). Here the question is asked again from the CIB, independently of the phases.
"""

from haclusterd.model.activity import possibly_active
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.graph import ActionKind, TransitionGraph
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import ACTIVATING
from haclusterd.scheduler.settings import Settings


def check_graph(graph: TransitionGraph, cib: Cib, settings: Settings) -> None:
    """Raise AssertionError when the graph is not safe to walk."""
    above = _ancestors(graph)
    if not settings.is_fencing_enabled or not settings.options.rules.fence_before_recovery:
        return
    holders = _possible_holders(cib)
    if not holders:
        return
    fences = {action.node: action.id for action in graph.actions.values() if action.kind is ActionKind.FENCE}
    for action in graph.actions.values():
        if action.kind is not ActionKind.RESOURCE or action.name not in ACTIVATING or action.resource is None:
            continue
        for node in holders.get(action.resource, ()):
            fence = fences.get(node)
            assert fence is not None, f"{action.key} on {action.node} while {node}, lost and not fenced, may run it"
            assert fence in above[action.id], f"{action.key} on {action.node} does not wait for the fencing of {node}"


def _ancestors(graph: TransitionGraph) -> dict[int, set[int]]:
    """Return what each action waits for; inputs always have smaller ids, so there is no circle."""
    above: dict[int, set[int]] = {}
    for number, action in graph.actions.items():
        found: set[int] = set()
        for before in action.inputs:
            assert before in above, f"action {number} waits for {before}, which comes later or not at all"
            found |= above[before]
            found.add(before)
        above[number] = found
    return above


def _possible_holders(cib: Cib) -> dict[ResourceId, list[NodeName]]:
    holders: dict[ResourceId, list[NodeName]] = {}
    for name in sorted(cib.status.nodes):
        status = cib.status.nodes[name]
        member = cib.members.get(name)
        if status.state is not NodeState.LOST or member is None or member.is_witness:
            continue
        if status.incarnation is not None and status.fenced_incarnation == status.incarnation:
            continue
        for resource in sorted(possibly_active(status)):
            holders.setdefault(resource, []).append(name)
    return holders
