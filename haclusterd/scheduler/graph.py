"""Phase: from selected actions to the transition graph: numbered, with all an order needs, no input too many."""

from collections.abc import Mapping

from haclusterd.model.graph import ActionKind, GraphAction, TransitionGraph
from haclusterd.model.ids import AgentReference
from haclusterd.scheduler.claims import Claims
from haclusterd.scheduler.digests import Digests
from haclusterd.scheduler.entities import CANCEL, DEMOTE, MONITOR, START, STOP, Action, Resource
from haclusterd.scheduler.operation_settings import parameters_for, start_delay_ms, timeout_ms
from haclusterd.scheduler.reasons import reason_of
from haclusterd.scheduler.selection import Selected
from haclusterd.scheduler.settings import Settings

REDUCED_UP_TO = 4000
"""Larger graphs keep their redundant inputs: to find those takes a bit for each pair of actions."""

_FENCE_PRIORITY = 1_000_000


def build_graph(selected: Selected, claims: Claims, digests: Digests, settings: Settings) -> TransitionGraph:
    """Number the actions from 1 in an order that respects their inputs."""
    numbers = {action.id: index for index, action in enumerate(selected.actions, start=1)}
    reduced = _reduced(selected)
    actions: dict[int, GraphAction] = {}
    for action in selected.actions:
        inputs = tuple(sorted(numbers[before] for before in reduced[action.id]))
        made = _fence(action, settings) if action.is_fence else _of_resource(action, claims, digests, settings)
        made["inputs"] = inputs
        actions[numbers[action.id]] = GraphAction(id=numbers[action.id], **made)  # type: ignore[arg-type]  # made by the field
    return TransitionGraph(actions)


def _reduced(selected: Selected) -> dict[int, list[int]]:
    """Leave out an input that another input waits for anyway."""
    if len(selected.actions) > REDUCED_UP_TO:
        return selected.inputs
    bits = {action.id: 1 << index for index, action in enumerate(selected.actions)}
    above: dict[int, int] = {}
    reduced: dict[int, list[int]] = {}
    for action in selected.actions:
        inputs = selected.inputs[action.id]
        beyond = 0
        for before in inputs:
            beyond |= above[before]
        reduced[action.id] = [before for before in inputs if not beyond & bits[before]]
        for before in inputs:
            beyond |= bits[before]
        above[action.id] = beyond
    return reduced


def _fence(action: Action, settings: Settings) -> dict[str, object]:
    assert action.node is not None
    return {
        "kind": ActionKind.FENCE,
        "name": action.task,
        "resource": None,
        "node": action.node.name,
        "timeout_ms": settings.fencing_timeout_ms,
        "reason": reason_of(action),
        "priority": _FENCE_PRIORITY,
        "target_incarnation": action.node.incarnation,
    }


def _of_resource(action: Action, claims: Claims, digests: Digests, settings: Settings) -> dict[str, object]:
    resource = action.resource
    assert resource is not None
    made: dict[str, object] = {
        "name": action.task,
        "resource": resource.id,
        "node": action.node.name if action.node is not None else None,
        "interval_ms": action.interval_ms,
        "reason": reason_of(action),
        "priority": max(0, resource.priority),
    }
    if action.is_pseudo:
        return {"kind": ActionKind.PSEUDO, **made}
    operation = MONITOR if action.task == CANCEL else action.task
    agent, parameters = _agent_and_parameters(action, resource, operation, settings)
    timeout = timeout_ms(resource, operation, action.interval_ms, settings)
    is_start = action.task == START
    is_compared = is_start or action.task == MONITOR
    assert action.node is not None
    return {
        "kind": ActionKind.RESOURCE,
        **made,
        "agent": agent,
        "parameters": parameters,
        "meta": _meta(action, operation, timeout),
        "timeout_ms": timeout,
        "start_delay_ms": start_delay_ms(resource, operation, action.interval_ms, settings),
        "target_exit_code": action.expected,
        "digest": digests.of(resource, operation, action.interval_ms) if is_compared else "",
        "devices": claims.get((resource.id, action.node.name), ()) if is_start else (),
        "is_probe": action.is_probe,
    }


def _agent_and_parameters(
    action: Action, resource: Resource, operation: str, settings: Settings
) -> tuple[AgentReference | None, Mapping[str, str]]:
    """What runs must be stopped as it was started, whatever the configuration says now."""
    assert action.node is not None
    history = resource.histories.get(action.node.name)
    is_ending = action.task in (STOP, DEMOTE) and action.node in resource.active_nodes
    if is_ending and history is not None and (history.parameters or history.agent != resource.agent):
        return history.agent, history.parameters
    return resource.agent, parameters_for(resource, operation, action.interval_ms, settings, action.node)


def _meta(action: Action, operation: str, timeout: int) -> dict[str, str]:
    """What the agent finds in OCF_RESKEY_CRM_meta_* (docs/design: agents)."""
    assert action.node is not None
    meta = {
        "name": operation,
        "on_node": action.node.name,
        "on_node_uuid": action.node.name,
        "timeout": str(timeout),
    }
    if action.interval_ms or action.is_probe:
        meta["interval"] = str(action.interval_ms)
    if action.is_probe or action.expected:
        meta["op_target_rc"] = str(int(action.expected))
    return meta
