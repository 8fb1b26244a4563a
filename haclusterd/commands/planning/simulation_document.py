"""A plan as the document of `crm simulate`: what would change, in which order, and what would run where afterwards.

The document is the one with which schedulers are compared (format `simulate/1`; docs/design/0006-cib-xml.md); what has
no place there (why nothing is done, what runs now) is beside it.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from haclusterd.cib.derived.wishes import node_flag
from haclusterd.commands.planning.recorded_transition import ended_on_guests
from haclusterd.commands.planning.simulated_state import (
    State,
    is_guest_fencing,
    is_node_fencing,
    state_after,
    state_before,
)
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.configuration import Clone, Group
from haclusterd.model.graph import ActionKind, BundlePart, Change, GraphAction, Placement, Plan
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, Role
from haclusterd.verbs.answers.simulation import (
    PlannedAction,
    PlannedChange,
    SimulatedResource,
    SimulatedState,
    Simulation,
)

if TYPE_CHECKING:
    from haclusterd.scheduler.graph.found_rows import FoundRow

_CALLS_NO_AGENT = frozenset({ActionName.CANCEL.value, "delete"})
_HIDDEN_PARTS = frozenset({BundlePart.ADDRESS, BundlePart.CONNECTION, BundlePart.CONTAINER})


def iso_8601(at: WallTime) -> str:
    """Write a moment as `2026-06-01T00:00:00Z`."""
    return datetime.fromtimestamp(at // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class SimulationDocument:
    """Reads a plan in the light of the CIB it was made for."""

    def __init__(
        self, cib: Cib, plan: Plan, now: WallTime, printed: "tuple[FoundRow, ...] | None" = None
    ) -> None:
        """`printed`: of a CIB of Pacemaker, what crm_simulate would print as active afterwards."""
        self._cib = cib
        self._plan = plan
        self._now = now
        self._printed = printed
        self._actions = [action for _, action in sorted(plan.graph.actions.items())]
        self._fences: list[GraphAction] = []
        self._fenced: set[NodeName] = set()
        self._stops: dict[ResourceId, dict[NodeName, GraphAction]] = {}
        for action in self._actions:
            if action.node is None:
                continue
            if action.kind is ActionKind.FENCE or is_guest_fencing(action):
                self._fences.append(action)
                if is_node_fencing(action):
                    self._fenced.add(action.node)
            elif action.name == ActionName.STOP and action.resource is not None:
                self._stops.setdefault(action.instance or action.resource, {})[action.node] = action

    def write(self) -> Simulation:
        """Return the document."""
        before, after = state_before(self._plan.placements), state_after(self._plan)
        rows = tuple(self._rows(after))
        nodes = self._nodes(is_after=True)
        return Simulation(
            format="simulate/1",
            date=iso_8601(self._now),
            before=SimulatedState(self._nodes(is_after=False), tuple(self._rows(before))),
            after=SimulatedState(nodes, rows),
            status=SimulatedState(nodes, rows if self._printed is None else tuple(self._printed_rows())),
            summary=self.summary(),
            actions=(*map(_action, self._actions), *self._beside()),
            warnings=tuple(self._plan.warnings),
        )

    def summary(self) -> tuple[PlannedChange, ...]:
        """Return what an administrator would call the changes."""
        return (*self._fencing(), *map(_change, self._plan.changes))

    # Nodes and what runs there

    def _nodes(self, *, is_after: bool) -> dict[str, str]:
        shown: dict[str, str] = {}
        for name, member in sorted(self._cib.members.items()):
            if not member.is_witness:
                status = self._cib.status.nodes.get(name) or NodeStatus(name)
                shown[name] = "offline" if is_after and name in self._fenced else self._node_words(status)
        return shown

    def _node_words(self, status: NodeStatus) -> str:
        if status.state is NodeState.LOST or status.is_condemned:
            return "unclean"
        if status.state is not NodeState.ONLINE:
            return "offline"
        for name in ("standby", "maintenance"):
            if node_flag(self._cib, status.name, name):
                return name
        return "leaving" if status.is_leaving else "online"

    def _rows(self, state: State) -> Iterator[SimulatedResource]:
        hosts = {
            placement.replica: state[name]
            for name, placement in self._plan.placements.items()
            if placement.part is BundlePart.CONTAINER
        }
        for name, placement in self._plan.placements.items():
            if placement.part in _HIDDEN_PARTS or (placement.guest_of is not None and placement.part is None):
                continue
            if state[name] or self._is_configured(placement):
                yield from _rows(placement, state[name], hosts)

    def _is_configured(self, placement: Placement) -> bool:
        """Tell whether it is not merely remembered: of a resource that was removed, only what runs is shown."""
        name = placement.base or placement.resource
        return placement.part is not None or name in self._cib.configuration.resources

    def _printed_rows(self) -> Iterator[SimulatedResource]:
        """Yield what crm_simulate prints, in the form in which the format compares it.

        docs/design/0006-cib-xml.md, "The document". A row that only informs has `nodes` in the place of `node`.
        """
        ended, begun = ended_on_guests(self._plan)
        for row in self._printed or ():
            for name in row.members or (row.resource,):
                if row.node in ended and (name.partition(":")[0], row.node) not in begun:
                    continue
                if row.is_held:
                    yield SimulatedResource(name, str(row.role), nodes=(row.node,), flags=("target-role",))
                else:
                    yield SimulatedResource(name, str(row.role), row.node)
            if row.node not in ended and not row.is_held:
                for name in self._left_out(row):
                    yield SimulatedResource(name, str(row.role), row.node, flags=("left-out",))

    def _left_out(self, row: "FoundRow") -> Iterator[str]:
        """Yield the members of a cloned group that do not run in it, since their class cannot be promoted."""
        clone = self._cib.configuration.resources.get(ResourceId(row.resource)) if row.members else None
        child = self._cib.configuration.resources.get(clone.child) if isinstance(clone, Clone) else None
        if isinstance(child, Group):
            yield from (name for name in child.members if name not in row.members)

    # What an administrator would call the change

    def _fencing(self) -> Iterator[PlannedChange]:
        for action in self._fences:
            if action.reason:
                yield PlannedChange(action="fence", node=action.node, op=action.name, reason=action.reason)
        for node, task, reason in self._plan.impossible_fencing:
            yield PlannedChange(action="fence", node=node, op=task, reason=reason, impossible=True)

    # What the cluster does beside the graph

    def _beside(self) -> Iterator[PlannedAction]:
        """Failures are forgotten without an order, and a node that was emptied leaves by itself."""
        shown = {(each.name, each.resource, each.node) for each in self._actions if each.kind is ActionKind.CLUSTER}
        number = max(self._plan.graph.actions, default=0)
        for node, resource in self._plan.expired_failures:
            if ("clear_failcount", resource, node) not in shown:
                number += 1
                yield PlannedAction(
                    id=number, kind="cluster", task="clear_failcount", resource=resource, node=node, after=()
                )
        for name, status in sorted(self._cib.status.nodes.items()):
            if status.is_leaving and status.state is NodeState.ONLINE and name not in self._fenced:
                after = self._emptied(name)
                if after is not None and ("do_shutdown", None, name) not in shown:
                    number += 1
                    yield PlannedAction(id=number, kind="cluster", task="do_shutdown", node=name, after=after)

    def _emptied(self, node: NodeName) -> tuple[int, ...] | None:
        """Return the stops after which a node is empty; None when something stays there."""
        after: list[int] = []
        for placement in self._plan.placements.values():
            stop = self._stops.get(placement.resource, {}).get(node)
            if stop is not None:
                after.append(stop.id)
            elif node in placement.now_on and (placement.is_managed or placement.is_blocked):
                return None
        return tuple(sorted(after))


def _rows(
    placement: Placement, nodes: Mapping[NodeName, Role], hosts: Mapping[str, Mapping[NodeName, Role]]
) -> Iterator[SimulatedResource]:
    """Yield a row for each node where it is active; what runs in a container counts where the container does."""
    found = ((placement.is_failed, "failed"), (not placement.is_managed, "unmanaged"))
    flags = tuple(word for holds, word in found if holds)
    name = str(placement.resource)
    if placement.part is BundlePart.BARE_CONTAINER:
        name = placement.replica
    if placement.part is BundlePart.CHILD:
        name = placement.replica
        role = next(iter(nodes.values()), Role.STOPPED)
        nodes = dict.fromkeys(hosts.get(name, {}), role) if nodes else {}
    for node, role in nodes.items():
        yield SimulatedResource(name, str(role), node, flags=flags)
    if not nodes:
        yield SimulatedResource(name, "Stopped", flags=flags)


def _change(change: Change) -> PlannedChange:
    """Write one change; Pacemaker calls blocked only what something else keeps from being done."""
    has_roles = change.now_role.value > Role.STARTED.value or change.next_role.value > Role.UNPROMOTED.value
    return PlannedChange(
        action=str(change.kind),
        resource=change.resource,
        from_=change.origin,
        to=change.target,
        from_role=str(change.now_role) if has_roles else None,
        to_role=str(change.next_role) if has_roles else None,
        reason=change.reason or None,
        impossible=True if change.is_blocked else None,
        blocked=True if change.is_blocked and change.cause else None,
    )


def _action(action: GraphAction) -> PlannedAction:
    kind = ActionKind.FENCE if is_guest_fencing(action) else action.kind
    calls_agent = kind is ActionKind.RESOURCE and action.name not in _CALLS_NO_AGENT
    return PlannedAction(
        id=action.id,
        kind=str(kind),
        task=action.name,
        resource=action.resource,
        node=None if kind is ActionKind.PSEUDO else action.node,
        interval=action.interval_ms or None,
        notify=action.notification or None,
        timeout=action.timeout_ms if calls_agent else None,
        params=action.parameters if calls_agent else None,
        reason=action.reason,
        after=tuple(action.inputs),
    )
