"""Phase: from selected actions to the transition graph: numbered, with all an order needs, no input too many."""

from collections.abc import Iterator, Mapping

from haclusterd.model.activity import started_as, was_run
from haclusterd.model.graph import ActionKind, GraphAction, TransitionGraph
from haclusterd.model.history import ResourceHistory
from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.model.orders import LOCKS, Order
from haclusterd.scheduler.graph.reasons import reason_of
from haclusterd.scheduler.graph.selection import Selected
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.digests import ActionDigests, digest_of
from haclusterd.scheduler.model.entities import Action, Node, Resource
from haclusterd.scheduler.model.operation_settings import (
    operation_parameters,
    resource_parameters,
    start_delay_ms,
    timeout_ms,
)
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.model.tasks import CANCEL, MONITOR, NOTIFY, PROMOTE, RELOAD_AGENT, START, STOP

REDUCED_UP_TO = 4000
"""Larger graphs keep their redundant inputs: to find those takes a bit for each pair of actions."""

MAX_CAUSES = 50
"""Failures that are named with one fencing."""
_FENCE_PRIORITY = 1_000_000

_LastingMeta = dict[int, Mapping[str, str]]
"""By the identity of a resource, what each action of it has in its meta: worked out once, for there may be many."""


def build_graph(selected: Selected, digests: ActionDigests, settings: Settings) -> TransitionGraph:
    """Number the actions from 1 in an order that respects their inputs."""
    numbers = {action.id: index for index, action in enumerate(selected.actions, start=1)}
    reduced = _reduced(selected)
    actions: dict[int, GraphAction] = {}
    lasting_meta: _LastingMeta = {}
    for action in selected.actions:
        inputs = tuple(sorted(numbers[before] for before in reduced[action.id]))
        made = _made(action, digests, settings, lasting_meta)
        made["inputs"] = inputs
        actions[numbers[action.id]] = GraphAction(id=numbers[action.id], **made)  # type: ignore[arg-type]  # made by the field
    return TransitionGraph(actions)


def _made(
    action: Action, digests: ActionDigests, settings: Settings, lasting_meta: _LastingMeta
) -> dict[str, object]:
    if action.is_fence and not action.is_pseudo:
        return _fence(action, settings)
    if action.is_pseudo or action.is_cluster or action.resource is None:
        return _of_any(action, ActionKind.CLUSTER if action.is_cluster else ActionKind.PSEUDO)
    made = _of_resource(action, action.resource, digests, settings)
    if id(action.resource) not in lasting_meta:
        lasting_meta[id(action.resource)] = {**action.resource.definition.own_meta, **_instance_meta(action.resource)}
    made["meta"] = _meta(action, action.resource, lasting_meta[id(action.resource)], str(made["timeout_ms"]))
    return made


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
        "priority": max(0, action.priority, resource.assignment.priority if resource is not None else 0),
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


def _of_resource(action: Action, resource: Resource, digests: ActionDigests, settings: Settings) -> dict[str, object]:
    operation = MONITOR if action.task == CANCEL else action.task
    agent, lasting, own, definition = _asked(action, resource, operation, digests, settings)
    is_start = action.task == START
    digest = definition if is_start or action.is_probe or action.task == RELOAD_AGENT else ""
    assert action.node is not None
    if action.task == MONITOR and not action.is_probe:
        digest = digests.of(resource, operation, action.interval_ms, action.node)
    return {
        **_of_any(action, ActionKind.RESOURCE),
        "agent": agent,
        "parameters": {**lasting, **own} if own else lasting,
        "resource_parameters": lasting if own else None,
        "timeout_ms": timeout_ms(resource, operation, action.interval_ms, settings),
        "start_delay_ms": start_delay_ms(resource, operation, action.interval_ms, settings),
        "target_exit_code": action.expected,
        "digest": digest,
        "definition": definition,
        **(_devices_of(action, resource) if is_start else {}),
        "is_probe": action.is_probe,
    }


def _devices_of(action: Action, resource: Resource) -> dict[str, object]:
    """What a start claims, so that it is committed before anything uses it."""
    if not resource.assignment.devices or action.node is not resource.assignment.node:
        return {}
    return {"devices": resource.assignment.devices, "device_memory_mib": resource.assignment.device_memory_mib}


def _asked(
    action: Action, resource: Resource, operation: str, digests: ActionDigests, settings: Settings
) -> tuple[AgentReference | None, Mapping[str, str], Mapping[str, str], str]:
    """Return by which agent an action goes, by which parameters of the resource, by which of its own that win over
    those, and the digest of the resource's.

    What may run is asked and ended by those that it was started with, whatever the configuration says now: others would
    find nothing (safety.md §1). Pacemaker does not remember them. Parameters that only the operation has say how it is
    done, not what runs: they are those of the configuration, but for another agent.
    """
    assert action.node is not None
    now = digests.of(resource, START, 0, action.node)
    own = operation_parameters(resource, operation, action.interval_ms, settings, action.node)
    started = _started(action, resource) if not settings.options.is_pacemaker_compatible else None
    if started is not None and _is_other(started, resource, now, action.node, settings):
        lasting = _lasting(started)
        if started.agent != resource.definition.agent:
            own = {}
        # Where both have a value, that of what runs wins.
        own = {name: value for name, value in own.items() if name not in lasting}
        return started.agent, lasting, own, started.definition or digest_of(lasting)
    return resource.definition.agent, resource_parameters(resource, action.node, settings), own, now


def _lasting(started: Order | ResourceHistory) -> Mapping[str, str]:
    return started.lasting_parameters if isinstance(started, Order) else started.parameters


def _started(action: Action, resource: Resource) -> Order | ResourceHistory | None:
    """Return what says how that was started which an action is about; None: it is about what is configured now."""
    node = action.node
    assert node is not None
    if action.task in (START, RELOAD_AGENT):
        return None
    is_later = action.task in (PROMOTE, NOTIFY) or bool(action.interval_ms)
    if is_later and any(
        begin.node is node and not begin.is_optional
        for task in (START, RELOAD_AGENT)
        for begin in resource.actions.get((task, 0), ())
    ):
        return None
    started = started_as(node.status, _name_of(resource))
    if started is None and node in resource.found.active_nodes:
        found = resource.found.histories.get(node.name)
        started = found if found is not None and was_run(found) else None
    # A fence device runs nothing, so it needs no record; a service that became one is stopped as it was started.
    is_device = resource.definition.is_fence_device and started is not None and started.agent.standard == "stonith"
    return None if is_device else started


def _is_other(
    started: Order | ResourceHistory, resource: Resource, now: str, node: Node, settings: Settings
) -> bool:
    if started.agent != resource.definition.agent:
        return True
    if started.definition:
        return started.definition != now
    lasting = _lasting(started)
    return bool(lasting) and lasting != resource_parameters(resource, node, settings)


def _meta(action: Action, resource: Resource, lasting: Mapping[str, str], timeout: str) -> dict[str, str]:
    """What an agent finds in OCF_RESKEY_CRM_meta_* (agents-and-fencing.md §1.5); `lasting` is the resource's part."""
    assert action.node is not None
    meta = {
        **lasting,
        "name": MONITOR if action.task == CANCEL else action.task,
        "on_node": action.node.name,
        "on_node_uuid": action.node.name,
        "timeout": timeout,
        **action.meta,
    }
    if action.task == STOP and action.node.is_shutting_down and resource.scores.lock_node is action.node:
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
    if clone.definition.is_gang:
        meta |= _gang_meta(clone, resource)
    if clone.definition.is_promotable:
        most, most_on_node = str(clone.definition.promoted_max), str(clone.definition.promoted_node_max)
        meta |= {"promoted_max": most, "promoted_node_max": most_on_node}
        meta |= {"master_max": most, "master_node_max": most_on_node}
    return meta


def _gang_meta(clone: Resource, resource: Resource) -> dict[str, str]:
    """By which an instance finds the others of its gang: its rank, and their nodes in the order of the ranks."""
    ranked = sorted((child for child in clone.children if child.assignment.node), key=lambda each: each.number or 0)
    numbers = [child.number for child in ranked]
    if resource.number not in numbers:
        return {}
    nodes = [child.assignment.node.name for child in ranked if child.assignment.node is not None]
    return {
        "gang_rank": str(numbers.index(resource.number)), "gang_size": str(len(ranked)), "gang_nodes": " ".join(nodes),
    }  # fmt: skip


def _containers(resource: Resource) -> Iterator[Resource]:
    container = resource.parent
    while container is not None:
        yield container
        container = container.parent


def _word(value: bool) -> str:
    return "true" if value else "false"
