"""Settings that other faults leave as they are: of the cluster, of resources, of operations and of fence devices.

Each is set for a while and then taken back. Not drawn is what takes a protection away that the judges count on
(`fencing-enabled`, `startup-fencing`), what only people see (`control-group-permission`, `history-keep`,
...), and what a running cluster does not have (`remote-node`, ...).
"""

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from haclusterd.cib.edits import PutResource
from haclusterd.model.configuration import Operation, Primitive, effective
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.simulator.faults.base import Drawn, End, Kind
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.world import MS
from haclusterd.simulator.people import ask
from haclusterd.simulator.scenario import Cluster

Nodes = Sequence[NodeName]
Chance = random.Random
Fault = Drawn[Cluster]
LASTS_MS = (500, 20_000)
LOOKS, AGAIN_MS = 60, 1000
"""So often people look whether what they have set is taken back: another change may have been faster, or may write what
it had read before."""
Values = tuple[str, ...]
PROPERTIES: tuple[tuple[str, Values, str], ...] = (
    ("node-pending-timeout", ("500ms", "1s", "2s"), "0"),
    ("brain-timeout", ("2s", "3s"), "10s"),
    ("fencing-timeout", ("1s", "60s"), "5s"),
    ("priority-fencing-delay", ("500ms", "10s"), "0"),
    ("concurrent-fencing", ("false",), "true"),
    ("cancel-removed-actions", ("false",), "true"),
    ("cluster-recheck-interval", ("1s",), "15min"),
    ("transition-delay", ("50ms", "10s"), "0"),
    ("shutdown-lock-limit", ("1s", "5s"), "0"),
    ("migration-limit", ("1", "2"), "-1"),
    ("node-action-limit", ("1", "2"), "0"),
    ("node-health-red", ("-10", "0"), "-INFINITY"),
)
"""Beside `edits.PROPERTIES`: shorter, or never changed while anything runs."""
OF_SERVICES = (*configurations.SERVICES, "pg", "vm")
META: tuple[tuple[Values, str, Values], ...] = (
    (OF_SERVICES, "critical", ("false",)),
    (OF_SERVICES, "multiple-active", ("stop_only", "stop_unexpected")),
    (OF_SERVICES, "allow-unhealthy-nodes", ("true",)),
    (OF_SERVICES, "failure-timeout", ("500ms", "1min")),
    (OF_SERVICES, "target-role", ("Started",)),
    (("front",), "ordered", ("false",)),
    (("front",), "collocated", ("false",)),
    (("pgs",), "clone-min", ("1", "2")),
    (("pgs",), "promoted-max", ("0", "2")),
    (("pgs",), "promoted-node-max", ("0", "2")),
    (("pgs",), "target-role", ("Unpromoted",)),
    (("pgs",), "interleave", ("true",)),
    (("pgs",), "ordered", ("true",)),
)
DEVICE: tuple[tuple[str, Values], ...] = (
    ("pcmk_action_limit", ("-1", "2")),
    ("pcmk_reboot_timeout", ("500ms", "30s")),
    ("pcmk_off_timeout", ("500ms", "30s")),
    ("pcmk_on_timeout", ("500ms", "30s")),
    ("pcmk_monitor_timeout", ("500ms", "30s")),
    ("pcmk_status_timeout", ("500ms",)),
    ("pcmk_list_timeout", ("500ms",)),
    ("pcmk_list_retries", ("1", "3")),
    ("pcmk_status_retries", ("1", "3")),
    ("pcmk_reboot_action", ("off",)),
)


def set_rare_property(chance: Chance, _nodes: Nodes) -> Fault:
    """A property of the cluster."""
    name, values, usual = chance.choice(PROPERTIES)
    value = chance.choice(values)

    def put(cluster: Cluster, text: str) -> None:
        ask(cluster, "configure.statement", {"words": ["property", f"{name}={text}"]})

    def begin(cluster: Cluster) -> End:
        put(cluster, value)
        return lambda: put(cluster, usual)

    return Drawn(f"{name}={value}", begin, chance.randint(*LASTS_MS))


def set_rare_meta(chance: Chance, _nodes: Nodes) -> Fault:
    """A meta-attribute of a service, a group or a clone."""
    owners, name, values = chance.choice(META)
    return setting(chance, chance.choice(owners), "meta", name, chance.choice(values))


def set_rare_parameter(chance: Chance, _nodes: Nodes) -> Fault:
    """A parameter that a fence device has for the cluster."""
    name, values = chance.choice(DEVICE)
    return setting(chance, configurations.DEVICE, "params", name, chance.choice(values))


def setting(chance: Chance, owner: str, section: str, name: str, value: str) -> Fault:
    """A meta-attribute or a parameter of a resource, which is surely taken back."""
    where, owned = {"resource": owner, "section": section, "name": name}, ResourceId(owner)

    def begin(cluster: Cluster) -> End:
        def is_set() -> bool:
            configuration = cluster.cib.configuration
            # What is said of the primitive of a clone is kept at the clone.
            found = [configuration.resources.get(each) for each in (owned, configuration.top_of(owned))]
            blocks = [each.meta if section == "meta" else each.parameters for each in found if each is not None]
            return any(effective(each).get(name) == value for each in blocks)

        def take_back() -> None:
            ask(cluster, "resource.setting", {**where, "action": "delete"})

        ask(cluster, "resource.setting", {**where, "action": "set", "value": value})
        return until_taken_back(cluster, is_set, take_back)

    return Drawn(f"{name} of {owner} is {value}", begin, chance.randint(*LASTS_MS))


def until_taken_back(cluster: Cluster, is_set: Callable[[], bool], take_back: Callable[[], None]) -> End:
    """Return an end that takes back what is set, and looks for a while whether it is."""

    def look(looks: int = LOOKS) -> None:
        if is_set():
            take_back()
        if looks:
            cluster.world.after(AGAIN_MS * MS, lambda: look(looks - 1))

    return look


OPERATIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("monitor", "is disabled", {"is_enabled": False}),
    ("monitor", "is for every 200 ms", {"interval_ms": 200}),
    ("monitor", "may take 20 ms", {"timeout_ms": 20}),
    ("monitor", "demotes when it fails", {"on_fail": "demote"}),
    ("start", "may take 100 ms", {"timeout_ms": 100}),
    ("promote", "may take 20 ms", {"timeout_ms": 20}),
    ("demote", "may take 20 ms", {"timeout_ms": 20}),
    ("demote", "is ignored when it fails", {"on_fail": "ignore"}),
    ("stop", "may take 50 ms", {"timeout_ms": 50}),
    ("stop", "waits for 2 s", {"start_delay_ms": 2000}),
    ("start", "waits for 2 s", {"start_delay_ms": 2000}),
)


def set_operation(chance: Chance, _nodes: Nodes) -> Fault:
    """An attribute of an operation of a service: of every monitor that it has, where it is about these."""
    owner = chance.choice(OF_SERVICES)
    action, text, change = chance.choice(OPERATIONS)
    more_ms = chance.randint(0, 9)

    def changed(operation: Operation) -> Operation:
        if operation.name != action:
            return operation
        made: Operation = replace(operation, **change)
        # Two monitors of one interval are refused.
        is_two = "interval_ms" in change and operation.role == "Unpromoted"
        return replace(made, interval_ms=made.interval_ms + more_ms + 1) if is_two else made

    return Drawn(f"{action} of {owner} {text}", partial(change_operations, owner, changed), chance.randint(*LASTS_MS))


def change_operations(owner: str, changed: Callable[[Operation], Operation], cluster: Cluster) -> End | None:
    """Change operations of a service, which are surely put back."""

    def put(operations: tuple[Operation, ...]) -> None:
        found = cluster.cib.configuration.resources.get(ResourceId(owner))
        if isinstance(found, Primitive):
            cluster.edit((PutResource(replace(found, operations=operations)),))

    def operations() -> tuple[Operation, ...]:
        found = cluster.cib.configuration.resources.get(ResourceId(owner))
        return found.operations if isinstance(found, Primitive) else ()

    if not isinstance(cluster.cib.configuration.resources.get(ResourceId(owner)), Primitive):
        return None
    made = {changed(each): each for each in operations() if changed(each) != each}
    put(tuple(map(changed, operations())))
    return until_taken_back(
        cluster, lambda: not made.keys().isdisjoint(operations()),
        lambda: put(tuple(made.get(each, each) for each in operations())),
    )  # fmt: skip


OF_SETTINGS: tuple[Kind[Cluster], ...] = (
    Kind("rare property", 4, set_rare_property),
    Kind("rare meta-attribute", 3, set_rare_meta),
    Kind("rare parameter of a device", 2, set_rare_parameter),
    Kind("rare operation", 3, set_operation),
)
