"""What begins or ends by the clock: moves and bans with a lifetime, constraints, blocks and parameters under dates.

Around such an instant, who judges it is interrupted: daemons are killed, the DC changes, clocks are set over it and
back. The end itself needs nobody to ask for it.
"""

import random
from collections.abc import Callable, Sequence
from functools import partial

from haclusterd.cib.edits import Edit, PutConstraint, PutNode, PutResource
from haclusterd.model.configuration import AttributeSet, Location, NodeEntry, Primitive
from haclusterd.model.ids import ConstraintId, NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.model.rules import AttributeExpression, Rule
from haclusterd.simulator.faults.base import Drawn, End, Kind
from haclusterd.simulator.faults.edits import GUEST, PLACES
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.truth import PIDFILE
from haclusterd.simulator.hosts.world import MS
from haclusterd.simulator.people import ask
from haclusterd.simulator.scenario import Cluster

Nodes = Sequence[NodeName]
Chance = random.Random
Fault = Drawn[Cluster]
Begin = Callable[[Cluster], object]
Interruption = Callable[[Cluster], None]

WAITS_S = (0, 4)
LASTS_S = (1, 12)
AROUND_MS = 700
"""How far from the instant an interruption is."""
STEPS_MS = (-90_000, -3_000, -400, 400, 3_000, 90_000)
"""By how much a clock is set."""
SCORES = (-1_000_000, 300, 1_000_000)
METAS = (("target-role", "Stopped"), ("is-managed", "false"), ("maintenance", "true"), ("resource-stickiness", "0"),
         ("allow-migrate", "false"), ("priority", "100"))  # fmt: skip


def end_lifetime(chance: Chance, nodes: Nodes) -> Fault:
    """A service is moved or banned for some seconds, and who could take that away is interrupted when they are over."""
    resource, node = chance.choice((*PLACES, GUEST)), chance.choice(nodes)
    verb, lasts_s = chance.choice(("resource.move", "resource.ban")), chance.randint(*LASTS_S)
    arguments = {"resource": resource, "node": node, "lifetime": f"{lasts_s}s"}
    text = f"{verb} of {resource} and {node} for {lasts_s} s"
    return _with_interruptions(chance, nodes, text, lambda cluster: ask(cluster, verb, arguments), (lasts_s * 1000,))


def begin_and_end_by_dates(chance: Chance, nodes: Nodes) -> Fault:
    """A constraint, a parameter, an attribute of a node or a meta-attribute holds for some seconds by its rule."""
    wait_s, lasts_s = chance.randint(*WAITS_S), chance.randint(*LASTS_S)
    what, made = chance.choice((_location, _location, _parameter, _attribute, _meta))(chance, nodes)

    def begin(cluster: Cluster) -> None:
        begins_s = cluster.world.now_ms // 1000 + wait_s
        edit = made(cluster, begins_s, begins_s + lasts_s)
        if edit is not None:
            cluster.edit((edit,))

    text = f"{what} in {wait_s} s, for {lasts_s} s"
    return _with_interruptions(chance, nodes, text, begin, (wait_s * 1000, (wait_s + lasts_s) * 1000))


Made = Callable[[Cluster, int, int], Edit | None]
"""What is to be put, from one second of virtual time to another."""


def _location(chance: Chance, nodes: Nodes) -> tuple[str, Made]:
    resource, node, score = chance.choice(PLACES), chance.choice(nodes), chance.choice(SCORES)

    def made(_cluster: Cluster, begins_s: int, ends_s: int) -> Edit:
        dates = configurations.dated_block("location", begins_s, ends_s).rule
        assert dates is not None
        conditions = (AttributeExpression("#uname", "eq", node), *dates.conditions)
        rule = Rule("dated-location-rule", conditions, score=score)
        return PutConstraint(Location(ConstraintId("dated-location"), ResourceId(resource), rules=(rule,)))

    return f"{resource} on {node} is worth {score}", made


def _parameter(chance: Chance, _nodes: Nodes) -> tuple[str, Made]:
    resource = chance.choice((*configurations.SERVICES, "pg", GUEST))
    name, value = chance.choice(((PIDFILE, "dated.pid"), ("size", "9")))

    def made(cluster: Cluster, begins_s: int, ends_s: int) -> Edit | None:
        found = cluster.cib.configuration.resources.get(ResourceId(resource))
        if not isinstance(found, Primitive):
            return None
        parameters = configurations.with_dated(found.parameters, _block("parameters", begins_s, ends_s, name, value))
        return PutResource(replace(found, parameters=parameters))

    return f"{name} of {resource} is {value}", made


def _attribute(chance: Chance, nodes: Nodes) -> tuple[str, Made]:
    node = chance.choice(nodes)
    name, value = chance.choice((("standby", "on"), ("maintenance", "true"), ("master-pg", "5000")))

    def made(cluster: Cluster, begins_s: int, ends_s: int) -> Edit:
        entry = cluster.cib.configuration.nodes.get(node, NodeEntry(node))
        block = _block("attributes", begins_s, ends_s, name, value)
        return PutNode(replace(entry, attributes=configurations.with_dated(entry.attributes, block)))

    return f"{name} of {node} is {value}", made


def _meta(chance: Chance, _nodes: Nodes) -> tuple[str, Made]:
    resource = chance.choice((*configurations.SERVICES, "pg", GUEST))
    name, value = chance.choice(METAS)

    def made(cluster: Cluster, begins_s: int, ends_s: int) -> Edit | None:
        found = cluster.cib.configuration.resources.get(ResourceId(resource))
        if not isinstance(found, Primitive):
            return None
        block = _block("meta", begins_s, ends_s, name, value)
        return PutResource(replace(found, meta=configurations.with_dated(found.meta, block)))

    return f"{name} of {resource} is {value}", made


def _block(section: str, begins_s: int, ends_s: int, name: str, value: str) -> AttributeSet:
    """Return a block that is stronger than all others."""
    block = configurations.dated_block(f"dated-{section}", begins_s, ends_s)
    return replace(block, pairs=((name, value),), score=1000)


def _with_interruptions(chance: Chance, nodes: Nodes, text: str, begin: Begin, instants_ms: Sequence[int]) -> Fault:
    """Return a fault, with interruptions around the instants at which its answer changes.

    Clocks are right again afterwards.
    """
    interruptions = [_draw_interruption(chance, nodes) for _ in range(chance.choice((0, 1, 1, 2, 3)))]
    times_ms = [max(0, chance.choice(instants_ms) + chance.randint(-AROUND_MS, AROUND_MS)) for _ in interruptions]

    def bring_about(cluster: Cluster) -> End:
        begin(cluster)
        for (_, interrupt), at_ms in zip(interruptions, times_ms, strict=True):
            cluster.world.after(at_ms * MS, partial(interrupt, cluster))
        return partial(_set_clocks, cluster, nodes, 0)

    shown = (f"{name} at {at_ms} ms" for (name, _), at_ms in zip(interruptions, times_ms, strict=True))
    return Drawn(", ".join((text, *shown)), bring_about, max(instants_ms) + chance.randint(AROUND_MS, 8_000))


def _draw_interruption(chance: Chance, nodes: Nodes) -> tuple[str, Interruption]:
    node, step_ms = chance.choice(nodes), chance.choice(STEPS_MS)
    return chance.choice((
        ("the DC is killed", _kill_dc),
        (f"the brain of {node} is killed", lambda cluster: cluster.kill_brain(node)),
        (f"{node} is to lead", lambda cluster: ask(cluster, "cluster.transfer_leader", {"node": node})),
        (f"the clock of the DC is set by {step_ms} ms", partial(_set_clock_of_dc, step_ms=step_ms)),
        (f"the clock of {node} is set by {step_ms} ms", lambda cluster: _set_clocks(cluster, (node,), step_ms)),
        (f"all clocks are set by {step_ms} ms", lambda cluster: _set_clocks(cluster, nodes, step_ms)),
    ))  # fmt: skip


def _kill_dc(cluster: Cluster) -> None:
    controller = cluster.cib.status.controller
    if controller is not None:
        cluster.kill_brain(controller.node)


def _set_clock_of_dc(cluster: Cluster, *, step_ms: int) -> None:
    controller = cluster.cib.status.controller
    if controller is not None:
        _set_clocks(cluster, (controller.node,), step_ms)


def _set_clocks(cluster: Cluster, nodes: Nodes, offset_ms: int) -> None:
    for node in nodes:
        cluster.hosts[node].wall.offset_ms = offset_ms


OF_LIFETIMES: tuple[Kind[Cluster], ...] = (
    Kind("end a lifetime", 4, end_lifetime),
    Kind("begin and end by dates", 4, begin_and_end_by_dates),
)
