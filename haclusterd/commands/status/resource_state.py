"""Where resources run and how they are, as the CIB tells it, for people and for waiting.

The scheduler decides by its own, deeper reading of the same records. Nothing here decides anything.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum

from haclusterd.cib.activity import history_says_active, history_says_promoted
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.configuration import Bundle, Clone, Configuration, Primitive, Resource, effective
from haclusterd.model.history import FailCount, OperationRecord, ResourceHistory, operation_key, ordered_records
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ids import base_of as base_of
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import Order
from haclusterd.model.properties import ClusterProperties, collective_flag, meta_default, meta_values, read_boolean
from haclusterd.model.records import dataclass
from haclusterd.model.templates import expanded


class InstanceState(StrEnum):
    """How one resource is on one node."""

    STARTED = "started"
    STARTING = "starting"
    STOPPING = "stopping"
    FAILED = "failed"
    """Its newest result is a failure; what it does is not known."""
    BLOCKED = "blocked"
    """Its stop failed and the node was not fenced."""
    UNVERIFIED = "unverified"
    """It may run; a probe has not answered yet."""
    LOST = "lost"
    """It may run on a node that is lost and not fenced."""


_UNDER_WAY = {ActionName.START.value: InstanceState.STARTING, ActionName.STOP.value: InstanceState.STOPPING}


@dataclass(frozen=True, slots=True)
class Instance:
    """One resource on one node."""

    node: NodeName
    state: InstanceState
    detail: str = ""
    is_promoted: bool = False
    """As far as the history says."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Failures of one operation of one resource on one node that are not forgotten."""

    node: NodeName
    resource: ResourceId
    record: OperationRecord | None
    """The newest failed result, when it is still there."""
    count: FailCount | None

    @property
    def failed_at(self) -> WallTime:
        """When it failed last; 0 when that is not known."""
        if self.count is not None:
            return self.count.failed_at
        return WallTime(0) if self.record is None else self.record.changed_at


def instances(cib: Cib, resource: ResourceId) -> tuple[Instance, ...]:
    """Return where a primitive runs or may run, in order of nodes; of a unique clone's, all instances."""
    return tuple(
        instance
        for _, status in sorted(cib.status.nodes.items())
        for name in recorded_names(status, resource)
        if (instance := _instance(status, name, [o for o in status.orders.values() if o.resource == name])) is not None
    )


def recorded_names(status: NodeStatus, resource: ResourceId) -> tuple[ResourceId, ...]:
    """Return the names under which a node may have records of a primitive."""
    known = {*status.histories, *status.unverified, *(order.resource for order in status.orders.values())}
    numbered = sorted(name for name in known if name != resource and base_of(name) == resource)
    return (resource, *numbered)


def instances_on(status: NodeStatus) -> Iterator[tuple[ResourceId, Instance]]:
    """Yield everything that runs or may run on a node, under the name by which it is recorded."""
    orders: dict[ResourceId, list[Order]] = {}
    for order in status.orders.values():
        orders.setdefault(order.resource, []).append(order)
    for resource in dict.fromkeys((*status.histories, *sorted(status.unverified), *orders)):
        instance = _instance(status, resource, orders.get(resource, ()))
        if instance is not None:
            yield resource, instance


def _instance(status: NodeStatus, resource: ResourceId, orders: Sequence[Order]) -> Instance | None:
    if status.state not in (NodeState.ONLINE, NodeState.LOST):
        return None
    history = status.histories.get(resource)
    may_run = resource in status.unverified or (history is not None and history_says_active(history))
    if status.state is NodeState.LOST:
        is_ordered = any(order.is_activating for order in orders)
        return Instance(status.name, InstanceState.LOST) if may_run or is_ordered else None
    moving = _ordered(status.name, orders)
    if moving is not None or not may_run:
        return moving
    if resource in status.unverified:
        return Instance(status.name, InstanceState.UNVERIFIED)
    assert history is not None
    begun = pending_operation(history)
    if begun in _UNDER_WAY:
        return Instance(status.name, _UNDER_WAY[begun])
    failed, is_promoted = newest_failure(history), history_says_promoted(history)
    if failed is None:
        return Instance(status.name, InstanceState.STARTED, is_promoted=is_promoted)
    state = InstanceState.BLOCKED if failed.operation == ActionName.STOP else InstanceState.FAILED
    return Instance(status.name, state, describe_result(failed), is_promoted=is_promoted)


def pending_operation(history: ResourceHistory) -> str:
    """Return what a CIB of Pacemaker says is under way with a resource; empty: nothing. In our own that is an order."""
    newest = next(reversed(ordered_records(history)), None)
    return newest.operation if newest is not None and newest.status is ExecutionStatus.PENDING else ""


def _ordered(node: NodeName, orders: Sequence[Order]) -> Instance | None:
    """Say what open orders make of a resource."""
    for order in sorted(orders, key=lambda order: order.key):
        if order.is_activating:
            return Instance(node, InstanceState.STARTING, order.reason)
        if order.action is ActionName.STOP:
            return Instance(node, InstanceState.STOPPING, order.reason)
    return None


def newest_failure(history: ResourceHistory) -> OperationRecord | None:
    """Return the failure that the newest record is, or the recurring monitor's that is still failed."""
    records = [record for record in ordered_records(history) if record.status is not ExecutionStatus.PENDING]
    return records[-1] if records and records[-1].is_failure else None


def describe_result(record: OperationRecord) -> str:
    """Say how an operation ended: `monitor: connection refused (error)`."""
    if record.status is ExecutionStatus.TIMEOUT:
        ending = "timed out"
    elif record.status in (ExecutionStatus.DONE, ExecutionStatus.ERROR):
        ending = exit_code_words(record.exit_code)
    else:
        ending = str(record.status)
    return f"{record.operation}: " + (f"{record.exit_reason} ({ending})" if record.exit_reason else ending)


def exit_code_words(code: ExitCode) -> str:
    """Write an exit code as a person says it: `not running`."""
    return code.name.lower().replace("_", " ")


def active_nodes(cib: Cib, resource: ResourceId) -> tuple[NodeName, ...]:
    """Return the nodes on which a primitive is started, without doubt."""
    return tuple(each.node for each in instances(cib, resource) if each.state is InstanceState.STARTED)


def is_running_only_on(cib: Cib, resources: tuple[ResourceId, ...], node: NodeName) -> bool:
    """Tell whether all these primitives are started on the node and may run nowhere else."""
    for resource in resources:
        found = instances(cib, resource)
        if [(each.node, each.state) for each in found] != [(node, InstanceState.STARTED)]:
            return False
    return True


def is_at_rest(cib: Cib, resources: tuple[ResourceId, ...]) -> bool:
    """Tell whether nothing is under way with these primitives: what was started is also watched.

    A monitor that is to begin only after its `start-delay` is not waited for.
    """
    return not any(
        base_of(order.resource) in resources and not order.start_delay_ms
        for status in cib.status.nodes.values()
        for order in status.orders.values()
    )


def is_stopped(cib: Cib, resources: tuple[ResourceId, ...]) -> bool:
    """Tell whether none of these primitives can be running anywhere."""
    return not any(instances(cib, resource) for resource in resources)


def primitives_on(cib: Cib, node: NodeName) -> tuple[ResourceId, ...]:
    """Return the configured primitives that run or may run on a node."""
    status = cib.status.nodes.get(node)
    if status is None:
        return ()
    resources = cib.configuration.resources
    found = {base_of(name) for name, _ in instances_on(status)}
    return tuple(resource for resource in resources if resource in found and isinstance(resources[resource], Primitive))


def failures(cib: Cib) -> tuple[Failure, ...]:
    """Return every failure that is not forgotten, by node and resource."""
    return tuple(
        failure
        for _, status in sorted(cib.status.nodes.items())
        for _, history in sorted(status.histories.items())
        for failure in _failures(status.name, history)
    )


def new_failure(cib: Cib, known: Collection[Failure], primitives: Collection[ResourceId]) -> str:
    """Say what of these primitives failed last, and where it did so too; `known` failures are old. Empty: nothing."""
    found = [each for each in failures(cib) if base_of(each.resource) in primitives and each not in known]
    newest = max(found, key=lambda each: each.failed_at, default=None)
    if newest is None or newest.record is None:
        return ""
    operation = newest.record.operation
    nodes = dict.fromkeys(each.node for each in found if each.record is not None and each.record.operation == operation)
    return f"{describe_result(newest.record)} on {', '.join(nodes)}"


def _failures(node: NodeName, history: ResourceHistory) -> Iterator[Failure]:
    failed = {
        operation_key(record.operation, record.interval_ms): record
        for record in ordered_records(history)
        if record.is_failure and not _is_negative_probe(record)
    }
    last = history.last_failure
    if last is not None and (key := operation_key(last.operation, last.interval_ms)) in history.fail_counts:
        failed.setdefault(key, last)  # The stop that followed took its record's place.
    for key in sorted({*failed, *history.fail_counts}):
        yield Failure(node, history.resource, failed.get(key), history.fail_counts.get(key))


def _is_negative_probe(record: OperationRecord) -> bool:
    is_probe = record.operation == ActionName.MONITOR and record.interval_ms == 0
    return is_probe and record.exit_code in (ExitCode.NOT_RUNNING, ExitCode.NOT_INSTALLED, ExitCode.OK)


def meta_of(configuration: Configuration, resource: ResourceId) -> Mapping[str, str]:
    """Return a resource's effective meta-attributes, without defaults of the table."""
    own = configuration.resources[resource]
    if isinstance(own, Primitive):
        own = expanded(own, configuration)
    return meta_values(configuration, own=effective(own.meta), parent=inherited_meta(configuration, resource))


def inherited_meta(configuration: Configuration, resource: ResourceId) -> Mapping[str, str]:
    """Return the meta-attributes that a resource has from what contains it; the innermost wins."""
    parents, seen = configuration.parents(), {resource}
    inherited: dict[str, str] = {}
    step = parents.get(resource)
    while step is not None and step not in seen:
        seen.add(step)
        inherited = {**effective(configuration.resources[step].meta), **inherited}
        step = parents.get(step)
    return inherited


def meta_text(meta: Mapping[str, str], name: str) -> str:
    """Return a meta-attribute or its default."""
    return meta.get(name, meta_default(name))


def meta_flag(meta: Mapping[str, str], name: str) -> bool:
    """Return a boolean meta-attribute; what is not a boolean counts as its default."""
    try:
        return read_boolean(meta_text(meta, name))
    except ValueError:
        return read_boolean(meta_default(name))


def why_not_wanted(properties: ClusterProperties, primitive: Primitive, meta: Mapping[str, str]) -> str:
    """Say by whose wish a primitive is not to run; empty when it is to."""
    if properties.boolean("stop-all-resources") and primitive.agent.standard != "stonith":
        return "stop-all-resources=true"
    if meta_text(meta, "target-role").lower() == "stopped":
        return "target-role=Stopped"
    return ""


def is_promotable(configuration: Configuration, resource: ResourceId) -> bool:
    """Tell whether a primitive's instances have the roles of a promotable clone."""
    top = configuration.resources.get(configuration.top_of(resource))
    return top is not None and can_be_promoted(configuration, top)


def can_be_promoted(configuration: Configuration, top: Resource) -> bool:
    """Tell whether a resource that nothing contains is a promotable clone, or a bundle whose replicas are promoted."""
    if isinstance(top, Bundle):
        return bool(top.promoted_max)
    return isinstance(top, Clone) and collective_flag(configuration, top, "promotable")
