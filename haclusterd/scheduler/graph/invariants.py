"""Phase: what must be true of every graph, whatever was decided; a graph that breaks it never leaves this room.

Nothing that a lost node may still run starts on another node without its fencing before it, and nothing waits for
itself (architecture: decision 5; safety.md §1). Here the question is asked again from the CIB, independently of the
phases.
"""

from collections.abc import Mapping, Sequence

from haclusterd.model.activity import possibly_active, possibly_promoted
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.copies import Copies
from haclusterd.model.graph import ActionKind, GraphAction, TransitionGraph
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import ACTIVATING, ActionName
from haclusterd.scheduler.model.settings import Settings


def check_graph(graph: TransitionGraph, cib: Cib, settings: Settings) -> None:
    """Raise AssertionError when the graph is not safe to walk.

    A plan for a CIB of Pacemaker obeys Pacemaker's rules (`requires=nothing`) and is never walked.
    """
    fencings = _fences_above(graph)
    options = settings.options
    if not settings.is_fencing_enabled or not options.rules.fence_before_recovery or options.is_pacemaker_compatible:
        return
    lost = _lost_and_not_fenced(cib)
    if not lost:
        return
    copies = Copies(cib.configuration, sum(not member.is_witness for member in cib.members.values()))
    check = _Check(graph, cib, fencings, copies)
    for action in graph.actions.values():
        if action.kind is ActionKind.RESOURCE and action.name in ACTIVATING and action.resource is not None:
            check.second_copy(action, action.resource, lost)


class _Check:
    """Asks of each action that makes a resource active whether one copy too many could be active then."""

    def __init__(
        self, graph: TransitionGraph, cib: Cib, fencings: tuple[Mapping[int, int], Mapping[int, int]], copies: Copies
    ) -> None:
        self._above, self._bits = fencings
        self._copies = copies
        self._graph = graph
        actions = graph.actions.values()
        self._fences = {action.node: action.id for action in actions if action.kind is ActionKind.FENCE}
        self._status = dict(sorted(cib.status.nodes.items()))
        self._active = {name: possibly_active(status) for name, status in self._status.items()}
        self._making: dict[tuple[ResourceId, bool], set[NodeName]] = {}
        for action in actions:
            if action.kind is ActionKind.RESOURCE and action.name in ACTIVATING and action.resource is not None:
                key = action.resource, action.name == ActionName.PROMOTE
                self._making.setdefault(key, set()).add(action.node or NodeName(""))

    def second_copy(self, action: GraphAction, resource: ResourceId, lost: Sequence[NodeName]) -> None:
        """Require that what a lost node may run is fenced first, unless it may be active there as well."""
        is_promotion = action.name == ActionName.PROMOTE
        most = self._copies.most_promoted(resource) if is_promotion else self._copies.most(resource)
        holding = {name for name in self._status if self._holds(name, resource, is_promotion=is_promotion)}
        making = self._making.get((resource, is_promotion), set())
        if most > 1 and len(holding | making) > most:
            holding -= self._ended_before(action, resource, is_promotion=is_promotion).difference(lost)
        if most > 1 and len(holding | making) <= most:
            return
        for node in lost:
            if node in holding and node != action.node:
                fence = self._fences.get(node)
                assert fence is not None, f"{action.key} on {action.node} while {node}, lost and not fenced, may run it"
                assert self._bits[fence] & self._above[action.id], (
                    f"{action.key} on {action.node} does not wait for the fencing of {node}"
                )

    def _ended_before(self, action: GraphAction, resource: ResourceId, *, is_promotion: bool) -> set[NodeName]:
        """Return the nodes on which the graph ends what they hold before it begins an action."""
        ending = (ActionName.STOP, ActionName.DEMOTE) if is_promotion else (ActionName.STOP,)
        found: set[NodeName] = set()
        seen, waiting = {action.id}, list(action.inputs)
        while waiting:
            number = waiting.pop()
            if number not in seen:
                seen.add(number)
                before = self._graph.actions[number]
                waiting.extend(before.inputs)
                is_of_agent = before.kind is ActionKind.RESOURCE and before.resource == resource
                if is_of_agent and before.name in ending and before.node is not None:
                    found.add(before.node)
        return found

    def _holds(self, node: NodeName, resource: ResourceId, *, is_promotion: bool) -> bool:
        if is_promotion:
            return possibly_promoted(self._status[node], resource)
        return resource in self._active[node]


def _fences_above(graph: TransitionGraph) -> tuple[dict[int, int], dict[int, int]]:
    """Return for each action the fencings it waits for, and for each fencing itself, as bits.

    Inputs have smaller ids, so there is no circle.
    """
    above: dict[int, int] = {}
    bits: dict[int, int] = {}
    for number, action in graph.actions.items():
        if action.kind is ActionKind.FENCE:
            bits[number] = 1 << len(bits)
        found = 0
        for before in action.inputs:
            assert before in above, f"action {number} waits for {before}, which comes later or not at all"
            found |= above[before] | bits.get(before, 0)
        above[number] = found
    return above, bits


def _lost_and_not_fenced(cib: Cib) -> list[NodeName]:
    lost = []
    for name in sorted(cib.status.nodes):
        status = cib.status.nodes[name]
        member = cib.members.get(name)
        is_dead = status.incarnation is not None and status.fenced_incarnation == status.incarnation
        if status.state is NodeState.LOST and member is not None and not member.is_witness and not is_dead:
            lost.append(name)
    return lost
