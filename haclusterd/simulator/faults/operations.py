"""What operations need, what follows when they fail, how they recur; what waits for clones; names that devices have.

Each is set for a while and then taken back.
"""

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

from haclusterd.cib.edits import PutResource, PutSets
from haclusterd.model.configuration import AttributeSet, Operation, Primitive
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.simulator.faults.base import Drawn, End, Kind
from haclusterd.simulator.faults.settings import OF_SERVICES, change_operations, setting, until_taken_back
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import SERVICE, AgentRun
from haclusterd.simulator.hosts.fence_devices import OUTLET
from haclusterd.simulator.people import ask
from haclusterd.simulator.scenario import Cluster

Nodes = Sequence[NodeName]
Chance = random.Random
Fault = Drawn[Cluster]
LASTS_MS = (1_000, 20_000)
REQUIRES = ("nothing", "quorum", "fencing", "unfencing")
NEED, POLICY, FAILING, KIND = "requires", "on-fail", "on-fail of", "operation"
"""Sections of the table."""
ACTIONS = ("start", "stop", "monitor", "promote", "demote", "migrate_to", "migrate_from")
POLICIES = ("ignore", "block", "demote", "stop", "restart", "fence", "standby")
SINCE = "2026-01-01T00:00:07Z"
RECURRING: dict[str, dict[str, Any]] = {
    "a monitor waits for its instants": {"interval_origin": SINCE},
    "a monitor waits before its first run": {"start_delay_ms": 1500},
    "what is under way is not to be shown": {"record_pending": False},
    "monitors are disabled": {"is_enabled": False},
}
STOPPED = "a monitor where it does not run"
KINDS = (*RECURRING, STOPPED)
DEFAULTS = (("on-fail", POLICIES), ("start-delay", ("500ms", "3s")), ("timeout", ("300ms", "1min")),
            ("record-pending", ("false",)))  # fmt: skip
CROWD, CROWDS, FOLLOWER = "crowd", "crowds", "follower"


def require(chance: Chance, _nodes: Nodes) -> Fault:
    """What must be done before a service may start, by a meta-attribute, or by an operation, as older CIBs have it."""
    owner, value = chance.choice((*OF_SERVICES, "front", "pgs")), chance.choice(REQUIRES)
    if chance.random() < 0.3:
        name = "needing"
        words = ("primitive", name, str(SERVICE), "op", "start", "interval=0", "timeout=20s",
                 f"requires={REQUIRES[chance.randrange(3)]}", "op", "monitor", "interval=1s", "timeout=5s",
                 "meta", "failure-timeout=10s")  # fmt: skip

        def begin(cluster: Cluster) -> End:
            ask(cluster, "configure.statement", {"words": list(words)})
            return partial(ask, cluster, "configure.delete", {"ids": [name], "cascade": True})

        return Drawn(" ".join(words), begin, chance.randint(*LASTS_MS))
    fault = setting(chance, owner, "meta", "requires", value)
    return replace(fault, begin=partial(_counted, NEED, value, fault))


def _counted(section: str, name: str, fault: Fault, cluster: Cluster) -> End | None:
    cluster.coverage.count(section, name)
    return fault.begin(cluster)


def fail(chance: Chance, nodes: Nodes) -> Fault:
    """An operation of a service leads to something else when it fails, and then it fails once or twice."""
    owner, action, policy = chance.choice(OF_SERVICES), chance.choice(ACTIONS), chance.choice(POLICIES)
    node, times = chance.choice((None, *nodes)), chance.choice((1, 1, 2))
    run = AgentRun(chance.choice((20, 400)), exit_code=1, has_effect=chance.random() < 0.5)

    def changed(operation: Operation) -> Operation:
        return replace(operation, on_fail=policy) if operation.name == action else operation

    def begin(cluster: Cluster) -> End:
        cluster.coverage.count(POLICY, policy)
        cluster.coverage.count(FAILING, action)
        end = _with_operation(owner, action, changed, cluster)
        cluster.agent_script.write(owner, action, run, node=node, times=times)

        def ended() -> None:
            cluster.agent_script.remove(run)
            if end is not None:
                end()

        return ended

    where = f" on {node}" if node else ""
    return Drawn(f"{action} of {owner} fails {times} times{where}, with on-fail={policy}", begin,
                 chance.randint(*LASTS_MS))  # fmt: skip


def _with_operation(owner: str, action: str, changed: Any, cluster: Cluster) -> End | None:
    found = cluster.cib.configuration.resources.get(ResourceId(owner))
    if isinstance(found, Primitive) and not any(each.name == action for each in found.operations):
        return _added(owner, changed(Operation(f"{owner}-drawn", action, timeout_ms=5000)), cluster)
    return change_operations(owner, changed, cluster)


def _added(owner: str, operation: Operation, cluster: Cluster) -> End:
    """Give a service one operation more, which is surely taken away."""

    def operations() -> tuple[Operation, ...]:
        found = cluster.cib.configuration.resources.get(ResourceId(owner))
        return found.operations if isinstance(found, Primitive) else ()

    def put(operations: tuple[Operation, ...]) -> None:
        found = cluster.cib.configuration.resources.get(ResourceId(owner))
        if isinstance(found, Primitive):
            cluster.edit((PutResource(replace(found, operations=operations)),))

    put((*operations(), operation))
    return until_taken_back(
        cluster, lambda: operation in operations(),
        lambda: put(tuple(each for each in operations() if each != operation)),
    )  # fmt: skip


def recur(chance: Chance, _nodes: Nodes) -> Fault:
    """Monitors recur in another way, or look where the service does not run."""
    owner, kind = chance.choice(OF_SERVICES), chance.choice(KINDS)
    interval_ms = chance.choice((700, 1700))

    def begin(cluster: Cluster) -> End | None:
        cluster.coverage.count(KIND, kind)
        if kind == STOPPED:
            name = f"{owner}-drawn"
            looking = Operation(name, "monitor", interval_ms=interval_ms, timeout_ms=5000, role="Stopped")
            return _added(owner, looking, cluster)
        change = RECURRING[kind]
        return change_operations(
            owner, lambda each: replace(each, **change) if each.name == "monitor" else each, cluster
        )

    return Drawn(f"{owner}: {kind}", begin, chance.randint(*LASTS_MS))


def set_default(chance: Chance, _nodes: Nodes) -> Fault:
    """A default of all operations."""
    name, values = chance.choice(DEFAULTS)
    value = chance.choice(values)
    block = AttributeSet("drawn-op-defaults", ((name, value),))

    def begin(cluster: Cluster) -> End:
        def blocks() -> tuple[AttributeSet, ...]:
            return cluster.cib.configuration.operation_defaults

        def put(blocks: tuple[AttributeSet, ...]) -> None:
            cluster.edit((PutSets("operation_defaults", blocks),))

        put((*blocks(), block))
        return until_taken_back(
            cluster, lambda: block in blocks(), lambda: put(tuple(each for each in blocks() if each != block))
        )

    return Drawn(f"of all operations, {name} is {value}", begin, chance.randint(*LASTS_MS))


def name_outlets(chance: Chance, nodes: Nodes) -> Fault:
    """The fence device gets other words for its nodes while it is used: their outlets, the parameter that names one."""
    outlets = ";".join(f"{node}:{OUTLET}{node}" for node in nodes)
    name, value = chance.choice((("pcmk_host_map", outlets), ("pcmk_host_map", outlets), ("pcmk_host_argument", "port"),
                                 ("pcmk_host_argument", "plug"), ("pcmk_host_check", "none")))  # fmt: skip
    return setting(chance, configurations.DEVICE, "params", name, value)


def follow(chance: Chance, nodes: Nodes) -> Fault:
    """A clone comes with what starts after some of its instances; these die, or one of them is kept from starting."""
    least, most = chance.choice((("1", ""), ("2", ""), ("2", "2"), ("3", ""), ("2", "1")))
    span_ms, node = chance.choice((50, 500, 3000)), chance.choice(nodes)
    is_failing = chance.random() < 0.4
    run = AgentRun(span_ms, exit_code=1 if is_failing else None, has_effect=not is_failing)
    meta = f"clone-min={least}" + (f" clone-max={most}" if most else "")
    tail = "op monitor interval=1s timeout=5s op start interval=0 timeout=20s meta failure-timeout=10s"
    text = (f"primitive {CROWD} {SERVICE} {tail}\nclone {CROWDS} {CROWD} meta {meta}\n"
            f"primitive {FOLLOWER} {SERVICE} {tail}\norder drawn-follows Mandatory: {CROWDS} {FOLLOWER}")  # fmt: skip
    changed = chance.choice(("1", "2", "3", None))
    ids = ["drawn-follows", FOLLOWER, CROWDS, CROWD]

    def begin(cluster: Cluster) -> End:
        cluster.agent_script.write(CROWD, "start", run, node=node)

        def loaded(_is_done: bool) -> None:
            if changed is not None:
                where = {"resource": CROWDS, "section": "meta", "action": "set", "name": "clone-min", "value": changed}
                cluster.world.after(span_ms * 1000, partial(ask, cluster, "resource.setting", where))

        arguments = {"mode": "update", "text": text, "source": "the swarm"}
        ask(cluster, "configure.load", arguments, answered=loaded)

        def end() -> None:
            cluster.agent_script.remove(run)
            ask(cluster, "configure.delete", {"ids": list(ids), "cascade": True})

        return end

    then = f", then clone-min={changed}" if changed else ""
    return Drawn(f"{FOLLOWER} follows {CROWDS} with {meta}{then}", begin, chance.randint(4000, 20_000))


OF_OPERATIONS: tuple[Kind[Cluster], ...] = (
    Kind("what starts require", 3, require),
    Kind("failing operation with a policy", 5, fail),
    Kind("how monitors recur", 2, recur),
    Kind("default of operations", 2, set_default),
    Kind("follow a clone", 4, follow),
    Kind("names of outlets", 2, name_outlets),
)
