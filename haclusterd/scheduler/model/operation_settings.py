"""How one action of one resource is run: its timeout, its own parameters, and what its failure leads to.

What an `op` says itself counts first, then its meta-attributes, then the operation defaults; what is invalid counts as
unset. Source: Pacemaker Explained, "Resource Operations".
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum

from haclusterd.model.configuration import AttributeSet, Operation
from haclusterd.model.ocf import DEFAULT_TIMEOUT_MS, ActionName
from haclusterd.scheduler.model.dates import parse_date
from haclusterd.scheduler.model.entities import UNAME, Node, Resource
from haclusterd.scheduler.model.readings import duration_ms, pacemakers_timeout_ms
from haclusterd.scheduler.model.rules import RuleContext, by_strength, merge
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.model.tasks import DEMOTE, LRM_DELETE, MONITOR, PROMOTE, START, STOP

_NOT_RECURRING = frozenset({"start", "stop", "promote", "demote", "reload-agent", "migrate_to", "migrate_from"})
_MIGRATIONS = (ActionName.MIGRATE_TO, ActionName.MIGRATE_FROM)
_PROMOTED = ("promoted", "master")


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
    "demote": OnFail.DEMOTE,
    "restart": OnFail.RESTART,
    "restart-container": OnFail.RESTART_CONTAINER,
    "migrate": OnFail.BAN,
    "block": OnFail.BLOCK,
    "stop": OnFail.STOP,
    "standby": OnFail.STANDBY,
    "fence": OnFail.FENCE,
}

_NOT_FOR_STOP = frozenset({OnFail.STANDBY, OnFail.STOP, OnFail.DEMOTE})
_NEVER_IGNORED = frozenset({STOP, DEMOTE, *_MIGRATIONS})


def find_operation(resource: Resource, name: str, interval_ms: int) -> Operation | None:
    """Return the configured operation of that name and interval; one named `migrate` stands for both its halves."""
    for operation in resource.definition.operations:
        if operation.name == name and operation.interval_ms == interval_ms:
            return operation
    return find_operation(resource, "migrate", 0) if name in _MIGRATIONS else None


def recurring_operations(resource: Resource, settings: Settings) -> list[Operation]:
    """Return the recurring operations that are to run, of equal ones the first; Pacemaker runs none of those."""
    found: dict[tuple[str, int], Operation] = {}
    repeated: set[tuple[str, int]] = set()
    for operation in resource.definition.operations:
        if operation.interval_ms > 0 and operation.name not in _NOT_RECURRING:
            key = operation.name, operation.interval_ms
            if found.setdefault(key, operation) is not operation and settings.options.is_pacemaker_compatible:
                repeated.add(key)
    return [operation for key, operation in found.items() if key not in repeated and operation.is_enabled]


def configured_recurring(resource: Resource) -> set[tuple[str, int]]:
    """Return the names and intervals of the recurring operations that are configured, also of repeated ones."""
    return {
        (operation.name, operation.interval_ms)
        for operation in resource.definition.operations
        if operation.interval_ms > 0 and operation.is_enabled
    }


def _default(resource: Resource, name: str, interval_ms: int, setting: str, settings: Settings) -> str | None:
    return settings.operation_defaults.of(resource.definition.agent, name, interval_ms).get(setting)


def _said_apart(operation: Operation, setting: str, settings: Settings) -> str | None:
    """What the meta-attributes of an `op` say."""
    if not operation.meta:
        return None
    return _merged(operation.meta, operation.name, operation.interval_ms, settings).get(setting)


def _merged(
    blocks: tuple[AttributeSet, ...], name: str, interval_ms: int, settings: Settings, node: Node | None = None
) -> dict[str, str]:
    attributes = node.attributes if node is not None else None
    context = RuleContext(settings.time, attributes, operation=name, interval_ms=interval_ms)
    return merge(by_strength(blocks), context)


def resolve_on_fail(resource: Resource, name: str, interval_ms: int, node: Node, settings: Settings) -> OnFail:
    """Return what a failure of that operation on that node leads to.

    Without a device that could fence the node, a failure that demands fencing blocks the resource instead; Pacemaker
    stops it when fencing is switched off, and else lets it wait for ever.
    """
    if name == LRM_DELETE:
        return OnFail.IGNORE
    chosen = _chosen(resource, name, interval_ms, settings)
    is_probe = name == MONITOR and interval_ms == 0
    is_to_remote = resource.definition.is_remote_connection and resource.launcher is None
    is_connection = is_to_remote and not is_probe and name != START
    if is_connection and not resource.is_managed:
        return OnFail.STOP
    if chosen is None:
        if resource.launcher is not None:
            return OnFail.RESTART_CONTAINER
        if is_connection:
            return OnFail.RESET_REMOTE
        return _after_stop(node, settings) if name == STOP else OnFail.RESTART
    if chosen is OnFail.FENCE:
        return _fence_or_else(name, node, settings)
    return chosen


def _after_stop(node: Node, settings: Settings) -> OnFail:
    can_fence = settings.is_fencing_enabled if settings.options.is_pacemaker_compatible else node.can_be_fenced
    return OnFail.FENCE if can_fence else OnFail.BLOCK


def _fence_or_else(name: str, node: Node, settings: Settings) -> OnFail:
    if settings.options.is_pacemaker_compatible:
        return OnFail.FENCE if settings.is_fencing_enabled else OnFail.STOP
    if node.can_be_fenced:
        return OnFail.FENCE
    return OnFail.STOP if not (settings.is_fencing_enabled or name == STOP) else OnFail.BLOCK


def _chosen(resource: Resource, name: str, interval_ms: int, settings: Settings) -> OnFail | None:
    """What was configured, if it makes sense for that operation.

    Pacemaker ignores a stop that failed where the configuration says so, and starts a second copy.
    """
    operation = find_operation(resource, name, interval_ms)
    text = _on_fail_text(resource, operation, name, interval_ms, settings)
    if text is None and name == DEMOTE:
        text = _as_promoted_monitor(resource)
    chosen = _ON_FAIL.get(text.strip().lower()) if text is not None else None
    if name == STOP and chosen in _NOT_FOR_STOP:
        return None
    if chosen is OnFail.IGNORE and name in _NEVER_IGNORED and not settings.options.is_pacemaker_compatible:
        # What may run on would be started, or promoted, on another node. `apply` refuses that, so nothing would happen.
        return None
    if chosen is OnFail.DEMOTE and name != PROMOTE and not (operation is not None and _is_promoted_monitor(operation)):
        return None
    if chosen is OnFail.RESTART_CONTAINER and resource.launcher is None:
        return None
    return chosen


def _on_fail_text(
    resource: Resource, operation: Operation | None, name: str, interval_ms: int, settings: Settings
) -> str | None:
    text = operation.on_fail if operation is not None else None
    if text is None and operation is not None:
        text = _said_apart(operation, "on-fail", settings)
    return text if text is not None else _default(resource, name, interval_ms, "on-fail", settings)


def _as_promoted_monitor(resource: Resource) -> str | None:
    """A demotion that says nothing fails like the monitor of the promoted role; the last one counts."""
    found = None
    for operation in resource.definition.operations:
        if _is_promoted_monitor(operation) and operation.is_enabled:
            text = operation.on_fail
            if text is not None and text.strip().lower() != "demote":
                found = text
    return found


def _is_promoted_monitor(operation: Operation) -> bool:
    is_recurring = operation.name == MONITOR and operation.interval_ms > 0
    return is_recurring and (operation.role or "").lower() in _PROMOTED


def timeout_ms(resource: Resource, name: str, interval_ms: int, settings: Settings) -> int:
    """Return how long that action may take."""
    return _timings(resource, name, interval_ms, settings)[0]


def start_delay_ms(resource: Resource, name: str, interval_ms: int, settings: Settings) -> int:
    """Return how long to wait before that action runs for the first time."""
    return _timings(resource, name, interval_ms, settings)[1]


def _timings(resource: Resource, name: str, interval_ms: int, settings: Settings) -> tuple[int, int]:
    """The two are the same on every node, and worked out once."""
    known = resource.timings.get((name, interval_ms))
    if known is None:
        known = _timeout(resource, name, interval_ms, settings), _start_delay(resource, name, interval_ms, settings)
        resource.timings[name, interval_ms] = known
    return known


def _timeout(resource: Resource, name: str, interval_ms: int, settings: Settings) -> int:
    is_probe = name == MONITOR and interval_ms == 0
    if resource.definition.is_fence_device and (is_probe or name == START):
        stated = duration_ms(resource.definition.parameters.get("pcmk_monitor_timeout"), 0)
        if stated > 0:
            return stated
    operation = find_operation(resource, name, interval_ms)
    stated = next((each for each in _timeouts(resource, operation, name, interval_ms, settings) if each is not None), 0)
    return stated if stated > 0 else DEFAULT_TIMEOUT_MS


def _timeouts(
    resource: Resource, operation: Operation | None, name: str, interval_ms: int, settings: Settings
) -> Iterator[int | None]:
    """Yield what is said about the timeout, the strongest first; None: nothing."""
    if operation is not None:
        yield operation.timeout_ms
        yield _as_timeout(_said_apart(operation, "timeout", settings), settings)
    if name == MONITOR and interval_ms == 0:
        yield _shortest_monitor_timeout(resource)
    yield _as_timeout(_default(resource, name, interval_ms, "timeout", settings), settings)


def _as_timeout(text: str | None, settings: Settings) -> int | None:
    if text is None:
        return None
    return pacemakers_timeout_ms(text) if settings.options.is_pacemaker_compatible else duration_ms(text, 0)


def _shortest_monitor_timeout(resource: Resource) -> int | None:
    """A probe without a timeout of its own takes that of the monitor with the shortest interval."""
    monitors = [
        operation
        for operation in resource.definition.operations
        if operation.name == MONITOR and operation.interval_ms > 0 and operation.is_enabled
    ]
    return min(monitors, key=lambda operation: operation.interval_ms).timeout_ms if monitors else None


def _start_delay(resource: Resource, name: str, interval_ms: int, settings: Settings) -> int:
    operation = find_operation(resource, name, interval_ms)
    if operation is not None and operation.start_delay_ms is not None:
        return max(0, operation.start_delay_ms)
    said = _said_apart(operation, "start-delay", settings) if operation is not None else None
    said = _default(resource, name, interval_ms, "start-delay", settings) if said is None else said
    origin = operation.interval_origin if operation is not None else None
    if operation is not None and operation.meta:
        origin = origin or _said_apart(operation, "interval-origin", settings)
    if said is not None or origin is None or interval_ms <= 0:
        return max(0, duration_ms(said, 0))
    return _until_next_s(origin, interval_ms // 1000, settings) * 1000


def _until_next_s(origin: str, interval_s: int, settings: Settings) -> int:
    """Seconds until the next whole multiple of the interval since the origin."""
    start = parse_date(origin)
    if start is None or interval_s <= 0:
        return 0
    return (start - settings.time.now_s) % interval_s


def resource_parameters(resource: Resource, node: Node | None, settings: Settings) -> Mapping[str, str]:
    """Return the instance parameters on a node: rules may make them depend on its attributes.

    The connection to a bundle's container without an address leads to the node that the container is to be on, or is.
    """
    parameters = resource.definition.parameters
    if resource.definition.parameter_sets and node is not None:
        parameters = merge(resource.definition.parameter_sets, RuleContext(settings.time, node.attributes))
    if resource.launcher is not None and parameters.get("addr") == UNAME:
        host = resource.launcher.assignment.node or resource.launcher.current_node()
        return {**parameters, "addr": host.name if host is not None else UNAME}
    return parameters


def parameters_for(
    resource: Resource, name: str, interval_ms: int, settings: Settings, node: Node | None = None
) -> Mapping[str, str]:
    """Return the instance parameters for that action; an operation may have its own, which win (OCF_CHECK_LEVEL)."""
    parameters = resource_parameters(resource, node, settings)
    own = operation_parameters(resource, name, interval_ms, settings, node)
    return {**parameters, **own} if own else parameters


def operation_parameters(
    resource: Resource, name: str, interval_ms: int, settings: Settings, node: Node | None = None
) -> Mapping[str, str]:
    """Return the instance parameters that an operation has beside its resource's."""
    operation = find_operation(resource, name, interval_ms)
    if operation is None or not operation.parameters:
        return {}
    return _merged(operation.parameters, name, interval_ms, settings, node)
