"""A plan as the document of `crm simulate`: what would change, in which order, and what would run where afterwards.

The document is the one with which schedulers are compared (format `simulate/1`; docs/design/0006-cib-xml.md); what has
no place there (why nothing is done, what runs now) stands beside it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.configuration import effective
from haclusterd.model.graph import ActionKind, GraphAction, Placement, Plan
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.json_value import Json
from haclusterd.model.ocf import ActionName
from haclusterd.model.properties import read_boolean

Fields = dict[str, Json]


def iso_8601(at: WallTime) -> str:
    """Write a moment as `2026-06-01T00:00:00Z`."""
    return datetime.fromtimestamp(at // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class SimulationDocument:
    """Reads a plan in the light of the CIB it was made for."""

    def __init__(self, cib: Cib, plan: Plan, now: WallTime) -> None:
        self._cib = cib
        self._plan = plan
        self._now = now
        self._starts: dict[ResourceId, GraphAction] = {}
        self._stops: dict[ResourceId, dict[NodeName, GraphAction]] = {}
        self._fences: dict[NodeName, GraphAction] = {}
        for _, action in sorted(plan.graph.actions.items()):
            self._note(action)

    def _note(self, action: GraphAction) -> None:
        if action.kind is ActionKind.FENCE and action.node is not None:
            self._fences[action.node] = action
        elif action.resource is not None and action.node is not None:
            if action.name == ActionName.START and action.kind is ActionKind.RESOURCE:
                self._starts[action.resource] = action
            elif action.name == ActionName.STOP:
                self._stops.setdefault(action.resource, {})[action.node] = action

    def write(self) -> Fields:
        """Return the document."""
        return {
            "schema": "haclusterd.simulate/1",
            "format": "simulate/1",
            "date": iso_8601(self._now),
            "before": {"nodes": self._nodes(is_after=False), "resources": list(self._running_before())},
            "status": {"nodes": self._nodes(is_after=True), "resources": list(self._running_after())},
            "summary": [*self._fencing(), *self._changes()],
            "actions": [*map(_action, sorted(self._plan.graph.actions.values(), key=_number)), *self._beside()],
            "warnings": list(self._plan.warnings),
        }

    # Nodes and what runs there

    def _nodes(self, *, is_after: bool) -> Fields:
        shown: Fields = {}
        for name, member in sorted(self._cib.members.items()):
            if not member.is_witness:
                status = self._cib.status.nodes.get(name) or NodeStatus(name)
                is_fenced = is_after and name in self._fences
                shown[name] = "offline" if is_fenced else self._node_words(status)
        return shown

    def _node_words(self, status: NodeStatus) -> str:
        if status.state is NodeState.LOST:
            return "unclean"
        if status.state is not NodeState.ONLINE:
            return "offline"
        entry = self._cib.configuration.nodes.get(status.name)
        attributes = {**(effective(entry.attributes) if entry is not None else {}), **status.attributes}
        for name in ("standby", "maintenance"):
            if _is_true(attributes.get(name, "")):
                return name
        return "leaving" if status.is_leaving else "online"

    def _running_before(self) -> Iterator[Fields]:
        for placement in self._plan.placements.values():
            yield from _rows(placement, placement.now_on)

    def _running_after(self) -> Iterator[Fields]:
        for placement in self._plan.placements.values():
            stopped = self._stops.get(placement.resource, {})
            nodes = [node for node in placement.now_on if node not in stopped and node not in self._fences]
            start = self._starts.get(placement.resource)
            if start is not None and start.node is not None and start.node not in nodes:
                nodes.append(start.node)
            is_recovered = start is not None or not nodes
            yield from _rows(replace(placement, is_failed=placement.is_failed and not is_recovered), nodes)

    # What an administrator would call the change

    def _fencing(self) -> Iterator[Fields]:
        for node, action in self._fences.items():
            yield {"action": "fence", "node": node, "op": action.name, "reason": action.reason}

    def _changes(self) -> Iterator[Fields]:
        for placement in self._plan.placements.values():
            if placement.is_managed:
                yield from self._change(placement)

    def _change(self, placement: Placement) -> Iterator[Fields]:
        start = self._starts.get(placement.resource)
        if not placement.now_on:
            if placement.next_on is not None:
                yield self._started(placement, start)
            return
        stops = self._stops.get(placement.resource, {})
        current = placement.now_on[0]
        if start is None or start.node is None:
            yield from self._stopped(placement, stops)
            return
        is_moving = start.node != current
        action = "recover" if placement.is_failed else "move" if is_moving else "restart"
        stop = stops.get(current)
        reason = stop.reason if is_moving and stop is not None else start.reason
        origin = current if is_moving else start.node
        yield _entry(placement, action, origin=origin, target=start.node, reason=reason)

    def _started(self, placement: Placement, start: GraphAction | None) -> Fields:
        reason = placement.verdict if start is None else start.reason
        entry = _entry(placement, "start", target=placement.next_on, reason=reason)
        return {**entry, "blocked": True} if start is None else entry

    def _stopped(self, placement: Placement, stops: dict[NodeName, GraphAction]) -> Iterator[Fields]:
        """What is only stopped: everywhere when it should run nowhere, else one line for what cannot start again."""
        nodes = placement.now_on
        if placement.next_on is not None:
            nodes = tuple(node for node in nodes if node in stops)[:1] or nodes[:1]
            if not stops and placement.next_on in placement.now_on and not placement.is_start_held:
                return
        for node in nodes:
            if node in stops:
                yield _entry(placement, "stop", origin=node, reason=stops[node].reason)
            else:
                yield {**_entry(placement, "stop", origin=node, reason=placement.verdict), "blocked": True}

    # What the cluster does beside the graph

    def _beside(self) -> Iterator[Fields]:
        """Failures are forgotten without an order, and a node that was emptied leaves by itself."""
        number = max(self._plan.graph.actions, default=0)
        for node, resource in self._plan.expired_failures:
            number += 1
            yield {
                "id": number, "kind": "cluster", "task": "clear_failcount", "resource": resource, "node": node,
                "after": [],
            }  # fmt: skip
        for name, status in sorted(self._cib.status.nodes.items()):
            if status.is_leaving and status.state is NodeState.ONLINE and name not in self._fences:
                after = self._emptied(name)
                if after is not None:
                    number += 1
                    yield {"id": number, "kind": "cluster", "task": "do_shutdown", "node": name, "after": after}

    def _emptied(self, node: NodeName) -> list[int] | None:
        """Return the stops after which a node is empty; None when something stays there."""
        after: list[int] = []
        for placement in self._plan.placements.values():
            stop = self._stops.get(placement.resource, {}).get(node)
            if stop is not None:
                after.append(stop.id)
            elif node in placement.now_on and (placement.is_managed or placement.is_blocked):
                return None
        return sorted(after)


def _is_true(text: str) -> bool:
    try:
        return read_boolean(text)
    except ValueError:
        return False


def _number(action: GraphAction) -> int:
    return action.id


def _rows(placement: Placement, nodes: Sequence[NodeName]) -> Iterator[Fields]:
    flags: list[Json] = [word for holds, word in ((placement.is_failed, "failed"),
                                                  (not placement.is_managed, "unmanaged")) if holds]  # fmt: skip
    for node in nodes:
        yield {"resource": placement.resource, "role": "Started", "node": node, "flags": flags}
    if not nodes:
        yield {"resource": placement.resource, "role": "Stopped", "flags": flags}


def _entry(
    placement: Placement,
    action: str,
    *,
    origin: NodeName | None = None,
    target: NodeName | None = None,
    reason: str = "",
) -> Fields:
    entry: Fields = {"action": action, "resource": placement.resource}
    if origin is not None:
        entry["from"] = origin
    if target is not None:
        entry["to"] = target
    if reason:
        entry["reason"] = reason
    return entry


def _action(action: GraphAction) -> Fields:
    shown: Fields = {"id": action.id, "kind": str(action.kind), "task": action.name}
    if action.resource is not None:
        shown["resource"] = action.resource
    if action.node is not None and action.kind is not ActionKind.PSEUDO:
        shown["node"] = action.node
    if action.interval_ms:
        shown["interval"] = action.interval_ms
    if action.kind is ActionKind.RESOURCE and action.name != ActionName.CANCEL:
        shown["timeout"] = action.timeout_ms
        shown["params"] = dict(action.parameters)
    shown["reason"] = action.reason
    shown["after"] = list(action.inputs)
    return shown
