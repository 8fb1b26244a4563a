"""Phase: from selected actions to the transition graph: numbered, with all an order needs, no input too many."""

from collections.abc import Iterator, Mapping

from haclusterd.model.activity import history_says_active
from haclusterd.model.graph import ActionKind, GraphAction, TransitionGraph
from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.model.orders import LOCKS
from haclusterd.model.properties import is_own_meta
from haclusterd.scheduler.graph.claims import Claims
from haclusterd.scheduler.graph.reasons import reason_of
from haclusterd.scheduler.graph.selection import Selected
from haclusterd.scheduler.model.digests import Digests
from haclusterd.scheduler.model.entities import CANCEL, DEMOTE, MONITOR, NOTIFY, START, STOP, Action, Resource, Variant
from haclusterd.scheduler.model.operation_settings import parameters_for, start_delay_ms, timeout_ms
from haclusterd.scheduler.model.settings import Settings

REDUCED_UP_TO = 4000
"""Larger graphs keep their redundant inputs: to find those takes a bit for each pair of actions."""

MAX_CAUSES = 50
"""Failures that are named with one fencing."""
_FENCE_PRIORITY = 1_000_000


def build_graph(selected: Selected, claims: Claims, digests: Digests, settings: Settings) -> TransitionGraph:
    """Number the actions from 1 in an order that respects their inputs."""
    numbers = {action.id: index for index, action in enumerate(selected.actions, start=1)}
    reduced = _reduced(selected)
    actions: dict[int, GraphAction] = {}
    for action in selected.actions:
        inputs = tuple(sorted(numbers[before] for before in reduced[action.id]))
        made = _made(action, claims, digests, settings)
        made["inputs"] = inputs
        actions[numbers[action.id]] = GraphAction(id=numbers[action.id], **made)  # type: ignore[arg-type]  # made by the field
    return TransitionGraph(actions)


def _made(action: Action, claims: Claims, digests: Digests, settings: Settings) -> dict[str, object]:
    if action.is_fence and not action.is_pseudo:
        return _fence(action, settings)
    if action.is_pseudo or action.is_cluster or action.resource is None:
        return _of_any(action, ActionKind.CLUSTER if action.is_cluster else ActionKind.PSEUDO)
    return _of_resource(action, action.resource, claims, digests, settings)


def _of_any(action: Action, kind: ActionKind) -> dict[str, object]:
    """What all actions have that are no fencing; a guest's fencing is a mark, with the guest as its node."""
    resource = action.resource
    return {
        "kind": kind,
        "name": action.task,
        "resource": None if resource is None else _name_of(resource),
        "instance": resource.id if resource is not None and resource.number is not None else None,
        "node": action.node.name if action.node is not None else None,
        "interval_ms": action.interval_ms,
        "reason": reason_of(action),
        "priority": max(0, action.priority, resource.priority if resource is not None else 0),
        "notification": action.notification if action.task == NOTIFY else "",
        "router_node": action.router_node.name if action.router_node is not None else None,
    }


def _name_of(resource: Resource) -> ResourceId:
    return resource.recorded_as if resource.variant is Variant.PRIMITIVE else resource.id


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
        "meta": dict(action.meta),
        "timeout_ms": settings.fencing_timeout_ms,
        "reason": reason_of(action),
        "priority": _FENCE_PRIORITY,
        "target_incarnation": action.node.incarnation,
        "causes": tuple(action.node.fence_causes[:MAX_CAUSES]),
    }


def _of_resource(
    action: Action, resource: Resource, claims: Claims, digests: Digests, settings: Settings
) -> dict[str, object]:
    operation = MONITOR if action.task == CANCEL else action.task
    agent, parameters = _agent_and_parameters(action, resource, operation, settings)
    timeout = timeout_ms(resource, operation, action.interval_ms, settings)
    is_start = action.task == START
    is_compared = is_start or action.task == MONITOR
    assert action.node is not None
    return {
        **_of_any(action, ActionKind.RESOURCE),
        "agent": agent,
        "parameters": parameters,
        "meta": _meta(action, resource, operation, timeout),
        "timeout_ms": timeout,
        "start_delay_ms": start_delay_ms(resource, operation, action.interval_ms, settings),
        "target_exit_code": action.expected,
        "digest": digests.of(resource, operation, action.interval_ms, action.node) if is_compared else "",
        "devices": claims.get((resource.id, action.node.name), ()) if is_start else (),
        "is_probe": action.is_probe,
    }


def _agent_and_parameters(
    action: Action, resource: Resource, operation: str, settings: Settings
) -> tuple[AgentReference | None, Mapping[str, str]]:
    """What runs must be stopped as it was started, whatever the configuration says now; Pacemaker does not remember.

    And what may run is asked for by the agent that started it: another one would not find it.
    """
    assert action.node is not None
    history = resource.found.histories.get(action.node.name)
    if history is not None and not settings.options.is_pacemaker_compatible:
        is_active, is_ending = action.node in resource.found.active_nodes, action.task in (STOP, DEMOTE)
        may_run = is_active or action.node.name in resource.found.unverified_on or history_says_active(history)
        is_other_agents = may_run and history.agent != resource.definition.agent
        if (is_ending or action.is_probe) and is_other_agents:
            return history.agent, history.parameters
        if is_ending and is_active and history.parameters:
            return history.agent, history.parameters
    return resource.definition.agent, parameters_for(resource, operation, action.interval_ms, settings, action.node)


def _meta(action: Action, resource: Resource, operation: str, timeout: int) -> dict[str, str]:
    """What the agent finds in OCF_RESKEY_CRM_meta_* (docs/design: agents)."""
    assert action.node is not None
    meta = {
        **{name: value for name, value in resource.definition.meta.items() if is_own_meta(name)},
        "name": operation,
        "on_node": action.node.name,
        "on_node_uuid": action.node.name,
        "timeout": str(timeout),
        **_instance_meta(resource),
        **action.meta,
    }
    if action.task == STOP and action.node.is_shutting_down and resource.lock_node is action.node:
        meta[LOCKS] = "true"
    if action.interval_ms or action.is_probe:
        meta["interval"] = str(action.interval_ms)
    if action.is_probe or action.expected:
        meta["op_target_rc"] = str(int(action.expected))
    return meta


def _instance_meta(resource: Resource) -> dict[str, str]:
    """The parameters by which an instance of a clone learns about the clone."""
    clone = next((each for each in _containers(resource) if each.variant is Variant.CLONE), None)
    if clone is None:
        return {}
    meta = {
        "clone": str(resource.number or 0),
        "clone_max": str(clone.definition.clone_max),
        "clone_node_max": str(clone.definition.clone_node_max),
        "globally_unique": _word(clone.definition.is_unique),
        "notify": _word(clone.definition.notifies),
    }
    if clone.definition.is_promotable:
        most, most_on_node = str(clone.definition.promoted_max), str(clone.definition.promoted_node_max)
        meta |= {"promoted_max": most, "promoted_node_max": most_on_node}
        meta |= {"master_max": most, "master_node_max": most_on_node}
    return meta


def _containers(resource: Resource) -> Iterator[Resource]:
    container = resource.parent
    while container is not None:
        yield container
        container = container.parent


def _word(value: bool) -> str:
    return "true" if value else "false"
