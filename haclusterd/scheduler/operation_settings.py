"""How one action of one resource is run: its timeout, its own parameters, and what its failure leads to.

Source: Pacemaker Explained, "Resource Operations"; what an `op` does not say, the operation defaults do.
"""

from collections.abc import Mapping
from enum import IntEnum

from haclusterd.model.configuration import Operation, effective
from haclusterd.model.ocf import ActionName
from haclusterd.scheduler.entities import MONITOR, Resource
from haclusterd.scheduler.nodes import Node
from haclusterd.scheduler.readings import boolean, duration_ms
from haclusterd.scheduler.settings import Settings

DEFAULT_TIMEOUT_MS = 20_000

_NOT_RECURRING = frozenset({"start", "stop", "promote", "demote", "reload-agent", "migrate_to", "migrate_from"})


class OnFail(IntEnum):
    """What a failure leads to; of several, the more severe one counts."""

    IGNORE = 0
    DEMOTE = 1
    RESTART = 2
    RESET_REMOTE = 3
    RESTART_CONTAINER = 4
    BAN = 5
    BLOCK = 6
    STOP = 7
    STANDBY = 8
    FENCE = 9


_ON_FAIL: Mapping[str, OnFail] = {
    "ignore": OnFail.IGNORE,
    "nothing": OnFail.IGNORE,
    "block": OnFail.BLOCK,
    "standby": OnFail.STANDBY,
    "stop": OnFail.STOP,
    "restart": OnFail.RESTART,
    "migrate": OnFail.BAN,
    "fence": OnFail.FENCE,
}

_NOT_FOR_STOP = frozenset({OnFail.STANDBY, OnFail.STOP, OnFail.DEMOTE})


def find_operation(resource: Resource, name: str, interval_ms: int) -> Operation | None:
    """Return the configured operation of that name and interval."""
    for operation in resource.operations:
        if operation.name == name and operation.interval_ms == interval_ms:
            return operation
    return None


def recurring_operations(resource: Resource, settings: Settings) -> list[Operation]:
    """Return the recurring operations that are to run, the first of equal ones only."""
    found: dict[tuple[str, int], Operation] = {}
    for operation in resource.operations:
        if operation.interval_ms > 0 and operation.name not in _NOT_RECURRING:
            found.setdefault((operation.name, operation.interval_ms), operation)
    if not found:
        return []
    is_enabled = boolean(settings.operation_defaults.get("enabled"), default=True)
    return [operation for operation in found.values() if operation.is_enabled and is_enabled]


def resolve_on_fail(resource: Resource, name: str, interval_ms: int, node: Node, settings: Settings) -> OnFail:
    """Return what a failure of that operation on that node leads to.

    Without a device that could fence the node, a failure that demands fencing blocks the resource instead.
    """
    operation = find_operation(resource, name, interval_ms)
    text = operation.on_fail if operation is not None else None
    if text is None:
        text = settings.operation_defaults.get("on-fail")
    chosen = _ON_FAIL.get(text.strip().lower()) if text is not None else None
    is_stop = name == ActionName.STOP
    if chosen is None or (is_stop and chosen in _NOT_FOR_STOP):
        chosen = OnFail.RESTART
        if is_stop:
            return OnFail.FENCE if node.can_be_fenced else OnFail.BLOCK
    if chosen is OnFail.FENCE and not node.can_be_fenced:
        return OnFail.STOP if not (settings.is_fencing_enabled or is_stop) else OnFail.BLOCK
    return chosen


def timeout_ms(resource: Resource, name: str, interval_ms: int, settings: Settings) -> int:
    """Return how long that action may take."""
    is_probe = name == MONITOR and interval_ms == 0
    if resource.is_fence_device and (is_probe or name == ActionName.START):
        stated = duration_ms(resource.parameters.get("pcmk_monitor_timeout"), 0)
        if stated > 0:
            return stated
    operation = find_operation(resource, name, interval_ms)
    stated = (operation.timeout_ms if operation is not None else None) or 0
    if not stated and is_probe:
        stated = _shortest_monitor_timeout(resource)
    if stated <= 0:
        stated = duration_ms(settings.operation_defaults.get("timeout"), DEFAULT_TIMEOUT_MS)
    return max(1, stated) if stated > 0 else DEFAULT_TIMEOUT_MS


def _shortest_monitor_timeout(resource: Resource) -> int:
    """A probe without a timeout of its own takes that of the monitor with the shortest interval."""
    monitors = [
        operation
        for operation in resource.operations
        if operation.name == MONITOR and operation.interval_ms > 0 and operation.is_enabled
    ]
    if not monitors:
        return 0
    return min(monitors, key=lambda operation: operation.interval_ms).timeout_ms or 0


def start_delay_ms(resource: Resource, name: str, interval_ms: int, settings: Settings) -> int:
    """Return how long to wait before that action runs for the first time."""
    operation = find_operation(resource, name, interval_ms)
    if operation is not None and operation.start_delay_ms:
        return max(0, operation.start_delay_ms)
    return duration_ms(settings.operation_defaults.get("start-delay"), 0)


def parameters_for(resource: Resource, name: str, interval_ms: int) -> Mapping[str, str]:
    """Return the instance parameters for that action; an operation may add its own, as OCF_CHECK_LEVEL."""
    operation = find_operation(resource, name, interval_ms)
    if operation is None or not operation.parameters:
        return resource.parameters
    return {**effective(operation.parameters), **resource.parameters}
