"""Configurations for scenarios, as the edits that an administrator would load."""

from collections.abc import Sequence
from datetime import UTC, datetime

from haclusterd.cib.edits import Edit, PutConstraint, PutNode, PutResource, PutSets
from haclusterd.model.configuration import (
    AttributeSet,
    Clone,
    Colocation,
    Group,
    Location,
    NodeEntry,
    Operation,
    Ordering,
    Primitive,
)
from haclusterd.model.ids import AgentReference, ConstraintId, NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.model.rules import DateExpression, Rule
from haclusterd.model.scores import INFINITY
from haclusterd.simulator.hosts.clocks import EPOCH_MS
from haclusterd.simulator.hosts.fence_devices import AGENT

SERVICE = AgentReference("ocf", "simulated", "service")
DEVICE = ResourceId("switch")
USUAL_PROPERTIES = {
    "node_timeout": "2000ms",
    "brain_timeout": "10000ms",
    "fencing_timeout": "5s",
    "start_failure_is_fatal": "false",
}


def primitive(
    name: str,
    *,
    monitor_ms: int = 1000,
    start_timeout_ms: int = 5000,
    stop_timeout_ms: int = 5000,
    start_delay_ms: int = 0,
    meta: dict[str, str] | None = None,
) -> PutResource:
    """Return a service with a recurring monitor; its stop waits half as long as its start."""
    operations = (
        Operation(f"{name}-start", "start", timeout_ms=start_timeout_ms, start_delay_ms=start_delay_ms or None),
        Operation(f"{name}-stop", "stop", timeout_ms=stop_timeout_ms, start_delay_ms=start_delay_ms // 2 or None),
        Operation(f"{name}-monitor", "monitor", interval_ms=monitor_ms, timeout_ms=5000),
    )
    sets = (AttributeSet(f"{name}-meta", tuple(sorted((meta or {}).items()))),)
    return PutResource(Primitive(ResourceId(name), SERVICE, meta=sets, operations=operations))


def group(name: str, members: Sequence[str]) -> PutResource:
    """Return a group."""
    return PutResource(Group(ResourceId(name), tuple(ResourceId(member) for member in members)))


def device(nodes: Sequence[str], name: str = DEVICE) -> PutResource:
    """Return the power switch as a fence device for some nodes."""
    pairs = (("pcmk_host_list", " ".join(nodes)), ("pcmk_reboot_retries", "1"), ("pcmk_off_retries", "1"))
    switch = AgentReference("stonith", None, AGENT)
    return PutResource(Primitive(ResourceId(name), switch, parameters=(AttributeSet(f"{name}-parameters", pairs),)))


def properties(**values: str) -> PutSets:
    """Return cluster properties; `_` stands for `-`."""
    pairs = tuple(sorted((name.replace("_", "-"), value) for name, value in values.items()))
    return PutSets("properties", (AttributeSet("cib-bootstrap-options", pairs),))


def dated_block(name: str, begins_s: int, ends_s: int | None = None, **values: str) -> AttributeSet:
    """Return a block that is in force from one second of virtual time, perhaps to another; `_` stands for `-`."""
    start, end = (None if at is None else _date(at) for at in (begins_s, ends_s))
    date = DateExpression("gt", start) if end is None else DateExpression("in_range", start, end)
    pairs = tuple(sorted((key.replace("_", "-"), value) for key, value in values.items()))
    return AttributeSet(name, pairs, rule=Rule(f"{name}-rule", (date,)))


def _date(second: int) -> str:
    return datetime.fromtimestamp(EPOCH_MS // 1000 + second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def with_dated(blocks: tuple[AttributeSet, ...], dated: AttributeSet) -> tuple[AttributeSet, ...]:
    """Return blocks with another one in the place of the one of its name."""
    return (*(block for block in blocks if block.id != dated.id), dated)


def dated_properties(begins_s: int, ends_s: int | None = None, **values: str) -> PutSets:
    """Return the properties of `watched` and, from a second of virtual time on, some more."""
    plain = AttributeSet("cib-bootstrap-options", (("start-failure-is-fatal", "false"), ("watchdog-fencing", "true")))
    return PutSets("properties", (plain, dated_block("dated", begins_s, ends_s, **values)))


def prefers(resource: str, node: str, score: int = 50) -> PutConstraint:
    """Return a preference."""
    name = ConstraintId(f"{resource}-on-{node}")
    return PutConstraint(Location(name, ResourceId(resource), NodeName(node), score))


def together(dependent: str, primary: str) -> PutConstraint:
    """Return a mandatory colocation."""
    name = ConstraintId(f"{dependent}-with-{primary}")
    return PutConstraint(Colocation(name, INFINITY, ResourceId(dependent), ResourceId(primary)))


def after(then: str, first: str) -> PutConstraint:
    """Return a mandatory ordering."""
    return PutConstraint(Ordering(ConstraintId(f"{first}-then-{then}"), ResourceId(first), ResourceId(then)))


def usual(nodes: Sequence[str], **values: str) -> tuple[Edit, ...]:
    """Return what most scenarios run: a lone service, a group, a service that follows another, a power switch.

    `values` are cluster properties beside the usual ones.
    """
    return (
        properties(**{**USUAL_PROPERTIES, **values}),
        PutSets("resource_defaults", (AttributeSet("rsc-options", (("resource-stickiness", "100"),)),)),
        device(nodes),
        primitive("db", meta={"failure-timeout": "10s"}),
        primitive("ip", meta={"failure-timeout": "10s"}),
        primitive("web", meta={"failure-timeout": "10s"}),
        primitive("cache", meta={"failure-timeout": "10s"}),
        group("front", ["ip", "web"]),
        together("cache", "db"),
        after("cache", "db"),
        prefers("db", nodes[0]),
    )


def watched(nodes: Sequence[str], **values: str) -> tuple[Edit, ...]:
    """Return the same without a power switch: what fences a node is its own watchdog."""
    edits = [edit for edit in usual(nodes) if edit != device(nodes)]
    edits[0] = properties(**{"start_failure_is_fatal": "false", "watchdog_fencing": "true", **values})
    return tuple(edits)


SERVICES = ("cache", "db", "ip", "web")
"""The services of `usual`."""


def migratable(
    name: str = "vm", *, start_timeout_ms: int = 5000, stop_timeout_ms: int = 5000, migration_timeout_ms: int = 5000
) -> PutResource:
    """Return a service that moves without a stop in between."""
    operations = (
        Operation(f"{name}-start", "start", timeout_ms=start_timeout_ms),
        Operation(f"{name}-stop", "stop", timeout_ms=stop_timeout_ms),
        Operation(f"{name}-migrate_to", "migrate_to", timeout_ms=migration_timeout_ms),
        Operation(f"{name}-migrate_from", "migrate_from", timeout_ms=migration_timeout_ms),
        Operation(f"{name}-monitor", "monitor", interval_ms=1000, timeout_ms=5000),
    )
    meta = (AttributeSet(f"{name}-meta", (("allow-migrate", "true"), ("failure-timeout", "10s"))),)
    return PutResource(Primitive(ResourceId(name), SERVICE, meta=meta, operations=operations))


def promotion_score(node: str, score: int, resource: str = "pg") -> PutNode:
    """Return how much an instance of a promotable clone wants to be promoted on a node."""
    return PutNode(NodeEntry(NodeName(node), (AttributeSet(f"nodes-{node}", ((f"master-{resource}", str(score)),)),)))


def promotable(
    nodes: Sequence[str], *, is_notified: bool = True, timeout_ms: int = 5000, monitor_ms: int = 1000
) -> tuple[Edit, ...]:
    """Return a promotable clone with an address that follows its promoted instance.

    `timeout_ms` is that of its start, stop, promote and demote, and of the address's start; `monitor_ms` the interval
    at which the promoted instance is monitored.
    """
    operations = (
        *(
            Operation(f"pg-{action}", action, timeout_ms=timeout_ms)
            for action in ("start", "stop", "promote", "demote")
        ),
        Operation("pg-promoted", "monitor", interval_ms=monitor_ms, timeout_ms=5000, role="Promoted"),
        Operation("pg-unpromoted", "monitor", interval_ms=monitor_ms + 100, timeout_ms=5000, role="Unpromoted"),
    )
    meta = (AttributeSet("pgs-meta", (("notify", str(is_notified).lower()), ("promotable", "true"))),)
    own = (AttributeSet("pg-meta", (("failure-timeout", "10s"),)),)
    scores = (promotion_score(name, 10 + place) for place, name in enumerate(nodes))
    follows = Colocation(
        ConstraintId("vip-with-pg"), INFINITY, ResourceId("vip"), ResourceId("pgs"), primary_role="Promoted"
    )
    comes_after = Ordering(
        ConstraintId("pg-then-vip"), ResourceId("pgs"), ResourceId("vip"), first_action="promote", then_action="start"
    )
    return (
        *scores,
        PutResource(Primitive(ResourceId("pg"), SERVICE, meta=own, operations=operations)),
        PutResource(Clone(ResourceId("pgs"), ResourceId("pg"), meta=meta)),
        primitive("vip", start_timeout_ms=timeout_ms, meta={"failure-timeout": "10s"}),
        PutConstraint(follows),
        PutConstraint(comes_after),
    )


CLAIMING = ("llm", "train", "embed", "rank")
"""Services that claim devices: one, two that reach each other, and twice a part of one."""

GANG, UNIQUE_GANG = "peer", "shard"
"""Services of which several run on different nodes, together or not at all: as instances alike, or each its own."""


def claiming(
    *,
    start_timeout_ms: int = 12_000,
    priorities: Sequence[int] = (0, 0, 0, 0),
    stopped: Sequence[str] = (),
) -> tuple[Edit, ...]:
    """Return them; those that are `stopped` are to stay so."""
    shared = {"gpu-sharing": "memory", "gpu-memory": "30G"}
    own: tuple[dict[str, str], ...] = ({}, {"gpu-link": "nvlink"}, shared, shared)
    usual = {"failure-timeout": "10s"}
    return tuple(
        with_devices(
            name,
            count,
            {**usual, **meta, "priority": str(priority), **({"target-role": "Stopped"} if name in stopped else {})},
            start_timeout_ms,
        )
        for name, count, meta, priority in zip(CLAIMING, (1, 2, 1, 1), own, priorities, strict=True)
    )


def gang(name: str = GANG, *, size: int = 2, priority: int = 0, start_timeout_ms: int = 12_000) -> tuple[Edit, ...]:
    """Return a clone with a device for each instance; all of these run or none (`GANG`, `UNIQUE_GANG`)."""
    meta = {"clone-max": str(size), "clone-node-max": "1", "gpu-gang": "all", "priority": str(priority)}
    if name == UNIQUE_GANG:
        meta["globally-unique"] = "true"
    member = with_devices(name, 1, {"failure-timeout": "10s", "priority": str(priority)}, start_timeout_ms)
    sets = (AttributeSet(f"{name}s-meta", tuple(meta.items())),)
    return (member, PutResource(Clone(ResourceId(f"{name}s"), ResourceId(name), meta=sets)))


def with_devices(name: str, gpus: int, meta: dict[str, str], start_timeout_ms: int = 12_000) -> PutResource:
    """Return a service that claims devices."""
    made = primitive(name, start_timeout_ms=start_timeout_ms, meta=meta).resource
    assert isinstance(made, Primitive)
    asks = (AttributeSet(f"{name}-utilization", (("gpus", str(gpus)),)),)
    return PutResource(replace(made, utilization=asks))
