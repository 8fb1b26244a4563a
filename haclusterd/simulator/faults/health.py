"""The health of nodes, by which resources move, changes while they start, stop, migrate and are promoted.

Strategies, scores and votes are mostly taken back; what stays is judged at the end by its own words.
"""

import random
from collections.abc import Sequence
from functools import partial

from haclusterd.model.ids import NodeName
from haclusterd.model.json_value import Json
from haclusterd.simulator.faults.base import Drawn, End, Kind, Steps
from haclusterd.simulator.faults.settings import setting
from haclusterd.simulator.people import ask
from haclusterd.simulator.scenario import Cluster

Nodes = Sequence[NodeName]
Chance = random.Random
Fault = Drawn[Cluster]
STRATEGIES = ("migrate-on-red", "only-green", "progressive", "custom")
SCORES = {
    "base": ("0", "10", "-10", "-INFINITY"),
    "green": ("0", "10", "INFINITY"),
    "yellow": ("0", "-10", "-500", "-INFINITY"),
    "red": ("-INFINITY", "-INFINITY", "-10", "-1000"),
}
USUAL = {"base": "0", "green": "0", "yellow": "0", "red": "-INFINITY"}
NAMES = ("#health-disk", "#health-memory", "#health")
VOTES = ("red", "red", "RED", "yellow", "yellow", "green", "-10", "100", "-INFINITY")
LASTS_MS = (2_000, 30_000)
UNDONE_SHARE = 0.8
PAUSES_MS = (0, 20, 100, 500, 2500)
TOPS = ("db", "cache", "vip", "front", "pgs", "vm")


def use_strategy(chance: Chance, _nodes: Nodes) -> Fault:
    """Health counts, in one way or another."""
    strategy = chance.choice(STRATEGIES)
    values = {name: chance.choice(scores) for name, scores in SCORES.items() if chance.random() < 0.5}
    is_undone = chance.random() < UNDONE_SHARE

    def put(cluster: Cluster, name: str, values: dict[str, str]) -> None:
        words = [f"node-health-strategy={name}", *(f"node-health-{key}={value}" for key, value in values.items())]
        ask(cluster, "configure.statement", {"words": ["property", *words]})

    def begin(cluster: Cluster) -> End | None:
        put(cluster, strategy, values)
        return (lambda: put(cluster, "none", USUAL)) if is_undone else None

    words = "".join(f", {name} {value}" for name, value in values.items())
    return Drawn(f"node-health-strategy={strategy}{words}", begin, chance.randint(*LASTS_MS))


def _vote(cluster: Cluster, node: NodeName, name: str, value: str | None, **more: Json) -> None:
    """Set an attribute, with more arguments of the verb, or delete it."""
    arguments: dict[str, Json] = {"node": node, "name": name, "lifetime": "reboot", **more, "action": "delete"}
    if value is not None:
        arguments |= {"action": "set", "value": value}
    else:
        arguments.pop("dampen_ms", None)
    ask(cluster, "node.attribute", arguments)


def _whom(chance: Chance, nodes: Nodes) -> tuple[NodeName, ...]:
    """Return one node, some or all."""
    return tuple(chance.sample(nodes, chance.choice((1, 1, 1, 2, len(nodes)))))


def change_health(chance: Chance, nodes: Nodes) -> Fault:
    """Nodes are well or not, by one vote, for a while or for good."""
    whom, name, value = _whom(chance, nodes), chance.choice(NAMES), chance.choice(VOTES)
    lifetime, dampen_ms = chance.choice(("reboot", "reboot", "forever")), chance.choice((0, 0, 200, 3000))
    is_undone = chance.random() < UNDONE_SHARE
    more: dict[str, Json] = {"lifetime": lifetime}
    if dampen_ms and lifetime == "reboot":
        more["dampen_ms"] = dampen_ms

    def begin(cluster: Cluster) -> End | None:
        def put(value: str | None) -> None:
            for node in whom:
                _vote(cluster, node, name, value, **more)

        put(value)
        return partial(put, None) if is_undone else None

    return Drawn(f"{name} of {', '.join(whom)} is {value} ({lifetime})", begin, chance.randint(*LASTS_MS))


def flap(chance: Chance, nodes: Nodes) -> Fault:
    """Votes change faster than resources move, and daemons are killed meanwhile."""
    name = chance.choice(NAMES)
    steps = tuple((chance.choice(PAUSES_MS), chance.choice(_whom(chance, nodes)), chance.choice(VOTES))
                  for _ in range(chance.choice((3, 6, 12))))  # fmt: skip
    kills = tuple((chance.randint(0, 6000), chance.choice(("the DC", *nodes))) for _ in range(chance.choice((0, 1, 2))))

    def begin(cluster: Cluster) -> End:
        planned, at_ms = Steps(cluster.world), 0
        for pause_ms, node, value in steps:
            at_ms += pause_ms
            planned.after(at_ms, partial(_vote, cluster, node, name, value))
        for kill_ms, whom in kills:
            planned.after(kill_ms, partial(_kill, cluster, whom))

        def end() -> None:
            planned.end()
            for node in dict.fromkeys(node for _, node, _ in steps):
                _vote(cluster, node, name, None)

        return end

    lasts_ms = sum(pause_ms for pause_ms, _, _ in steps) + chance.randint(1000, 12_000)
    return Drawn(f"{name} changes {len(steps)} times", begin, lasts_ms)


def _kill(cluster: Cluster, whom: str) -> None:
    controller = cluster.cib.status.controller
    if whom != "the DC":
        cluster.kill_brain(whom)
    elif controller is not None and controller.node in cluster.names:
        cluster.kill_brain(controller.node)


def allow(chance: Chance, _nodes: Nodes) -> Fault:
    """A service, a group or a clone may stay where health is bad."""
    return setting(chance, chance.choice(TOPS), "meta", "allow-unhealthy-nodes", "true")


OF_HEALTH: tuple[Kind[Cluster], ...] = (
    Kind("health strategy", 4, use_strategy),
    Kind("health of nodes", 4, change_health),
    Kind("health that flaps", 2, flap),
    Kind("allow unhealthy nodes", 1, allow),
)
