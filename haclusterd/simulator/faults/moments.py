"""Faults at an activity: a node is hit while an agent, a fencing, a change or a snapshot is under way.

At random instants a fault hardly ever meets what lasts milliseconds. Here are drawn the activity, the node that is hit,
the interruption (a kill, a stall, a cut, the power), and how long after the beginning; mostly the activity is caused
as well.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from haclusterd.cib.commands import RequestFence
from haclusterd.model.cluster import NodeState
from haclusterd.model.configuration import Primitive, effective
from haclusterd.model.ids import NodeName
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, field
from haclusterd.simulator.checks.activities import Activity, Begun
from haclusterd.simulator.faults.base import Drawn, End, Kind
from haclusterd.simulator.faults.edits import (
    CLONE,
    GUEST,
    change_pidfile,
    move,
    move_guest,
    probe_again,
    set_property,
    set_score,
    stand_by,
    switch_resource,
)
from haclusterd.simulator.hosts.world import MS, SECOND
from haclusterd.simulator.people import ask
from haclusterd.simulator.scenario import Cluster

Nodes = Sequence[NodeName]
Chance = random.Random
Fault = Drawn[Cluster]

PAUSE_MS = (8_000, 25_000)
DELAYS_MS = (0, 0, 1, 5, 20, 100, 400, 1500, 4000)
"""From the beginning of what is met to the interruption."""
AWAY_MS = (300, 8_000)


def _kill_brain(cluster: Cluster, node: NodeName, _away_ms: int) -> None:
    cluster.kill_brain(node)


def _kill_pacer(cluster: Cluster, node: NodeName, _away_ms: int) -> None:
    cluster.kill_pacer(node)


def _reload(cluster: Cluster, node: NodeName, _away_ms: int) -> None:
    cluster.reload_brain(node)


def _cut_power(cluster: Cluster, node: NodeName, away_ms: int) -> None:
    cluster.power_off(node)
    cluster.world.after(away_ms * MS, partial(cluster.power_on, node))


def _stall(cluster: Cluster, node: NodeName, away_ms: int) -> None:
    cluster.stall(node)
    cluster.world.after(away_ms * MS, partial(cluster.go_on, node))


def _isolate(cluster: Cluster, node: NodeName, away_ms: int) -> None:
    cluster.isolate(node)
    cluster.world.after(away_ms * MS, partial(cluster.rejoin, node))


Interruption = Callable[[Cluster, NodeName, int], None]
INTERRUPTIONS: Mapping[str, Interruption] = {
    "kill the brain": _kill_brain,
    "kill the pacer": _kill_pacer,
    "reload": _reload,
    "cut the power": _cut_power,
    "stall": _stall,
    "isolate": _isolate,
}
GENTLE = ("kill the brain", "reload")
"""Interruptions after which every living node is heard."""
MET: Mapping[Activity, int] = {
    Activity.START: 3,
    Activity.STOP: 3,
    Activity.PROMOTE: 4,
    Activity.DEMOTE: 3,
    Activity.MIGRATE_TO: 4,
    Activity.MIGRATE_FROM: 4,
    Activity.NOTIFY: 2,
    Activity.RELOAD: 3,
    Activity.PROBE: 2,
    Activity.MONITOR: 1,
    Activity.FENCE: 3,
    Activity.UNFENCE: 2,
    Activity.CONFIGURATION: 2,
    Activity.MEMBERS: 2,
    Activity.SNAPSHOT: 2,
    Activity.JOIN: 2,
}
"""What is met, and how often beside the others."""


BRIEF = {Activity.SNAPSHOT: 1, Activity.MEMBERS: 5}
"""What is over soon: so many ms after its beginning at most is the interruption."""


def interrupt(interruption: str, chance: Chance, nodes: Nodes, *, met: Activity | None = None) -> Fault:
    """A node is interrupted while a certain activity is under way: `met`, or what is drawn."""
    drawn = met or chance.choices(list(MET), list(MET.values()))[0]
    whom = chance.choice(("there", "there", "there", "the DC", "the other", "anybody"))
    delay_ms, away_ms, anybody = chance.choice(DELAYS_MS), chance.randint(*AWAY_MS), chance.choice(nodes)
    delay_ms = min(delay_ms, BRIEF.get(drawn, delay_ms))
    provocations = {activity: _provocation(activity, chance, nodes) for activity in (drawn, *INSTEAD.values())}
    is_provoked = chance.random() < 0.8

    def begin(cluster: Cluster) -> End:
        activity = _possible(cluster, drawn)
        provocation = provocations[activity] if is_provoked else None
        chosen = partial(_chosen, whom=whom, anybody=anybody)
        moment = _Moment(cluster, interruption, activity, chosen, delay_ms, away_ms)
        if provocation is not None:
            provocation(cluster)
        return moment.end

    text = f"{interruption} {whom}, {delay_ms} ms after a {drawn} has begun"
    return Drawn(text, begin, chance.randint(*PAUSE_MS))


INSTEAD = {
    "promotion": Activity.START, "migration": Activity.STOP, "unfencing": Activity.FENCE, "reload": Activity.STOP,
}  # fmt: skip
"""What is met where a configuration has no such thing."""
OF_PROMOTION = (Activity.PROMOTE, Activity.DEMOTE, Activity.NOTIFY)
OF_MIGRATION = (Activity.MIGRATE_TO, Activity.MIGRATE_FROM)


def _possible(cluster: Cluster, drawn: Activity) -> Activity:
    """Return what is drawn, or something that can happen here."""
    resources = cluster.cib.configuration.resources
    if drawn in OF_PROMOTION and CLONE not in resources:
        return INSTEAD["promotion"]
    if drawn in OF_MIGRATION and GUEST not in resources:
        return INSTEAD["migration"]
    if drawn is Activity.RELOAD and not cluster.usual_behaviour.reloads:
        return INSTEAD["reload"]
    is_unfencing = any(
        effective(resource.meta).get("provides") == "unfencing"
        for resource in resources.values()
        if isinstance(resource, Primitive)
    )
    return INSTEAD["unfencing"] if drawn is Activity.UNFENCE and not is_unfencing else drawn


@dataclass(slots=True)
class _Moment:
    """One interruption that waits for its moment; where that was over too early, it waits for the next."""

    cluster: Cluster
    interruption: str
    activity: Activity
    whom: Callable[[Cluster, Begun], NodeName]
    delay_ms: int
    away_ms: int
    end: Callable[[], None] = field(init=False)
    _is_over: bool = False

    def __post_init__(self) -> None:
        self.end = self.cluster.activities.wait_for(self._has_begun)

    def _has_begun(self, begun: Begun) -> bool:
        if begun.activity is not self.activity:
            return False
        self.cluster.world.after(self.delay_ms * MS, lambda: self._hit(begun))
        return False

    def _hit(self, begun: Begun) -> None:
        cluster, node = self.cluster, self.whom(self.cluster, begun)
        is_over = self.delay_ms > 0 and self.activity not in cluster.under_way()
        if self._is_over or is_over or node not in cluster.names:
            return
        self._is_over = True
        self.end()
        cluster.world.record(f"{self.interruption}: {node}, while {self.activity} of {begun.node}")
        cluster.coverage.count_pairs(self.interruption, (self.activity,))
        INTERRUPTIONS[self.interruption](cluster, node, self.away_ms)


def _chosen(cluster: Cluster, begun: Begun, *, whom: str, anybody: NodeName) -> NodeName:
    match whom:
        case "there":
            return begun.node
        case "the DC":
            controller = cluster.cib.status.controller
            return begun.node if controller is None else controller.node
        case "the other":
            return begun.other or anybody
        case _:
            return anybody


def _provocation(activity: Activity, chance: Chance, nodes: Nodes) -> Callable[[Cluster], object] | None:
    """Draw something after which it is likely to happen."""
    node = chance.choice(nodes)
    if activity in _PROVOKED_BY:
        return chance.choice(_PROVOKED_BY[activity])(chance, nodes).begin
    match activity:
        case Activity.FENCE:
            return partial(_have_fenced, node)
        case Activity.UNFENCE | Activity.JOIN:
            return lambda cluster: cluster.kill_brain(node)
        case Activity.SNAPSHOT:
            return partial(_leave_behind, node)
        case _:
            return None


_PROVOKED_BY: Mapping[Activity, tuple[Callable[[Chance, Nodes], Fault], ...]] = {
    Activity.START: (move, switch_resource, stand_by),
    Activity.STOP: (move, switch_resource, stand_by),
    Activity.PROMOTE: (set_score,),
    Activity.DEMOTE: (set_score,),
    Activity.NOTIFY: (set_score,),
    Activity.RELOAD: (change_pidfile,),
    Activity.MIGRATE_TO: (move_guest,),
    Activity.MIGRATE_FROM: (move_guest,),
    Activity.PROBE: (probe_again,),
    Activity.MONITOR: (probe_again,),
    Activity.CONFIGURATION: (set_property,),
}


def _have_fenced(node: NodeName, cluster: Cluster) -> None:
    status = cluster.cib.status.nodes.get(node)
    if status is not None and status.state is NodeState.ONLINE:
        cluster.administer(RequestFence(node, status.incarnation, "swarm", "to be interrupted"))


def _leave_behind(node: NodeName, cluster: Cluster) -> None:
    """Stop a daemon while the log continues, so that it needs a snapshot afterwards."""
    cluster.pause_brain(node)
    for number in range(60):
        arguments: dict[str, Json] = {"node": cluster.names[0], "action": "set", "name": "shade", "value": str(number)}
        cluster.world.after(number * 20 * MS, partial(_ask_for, cluster, arguments))
    cluster.world.after(3 * SECOND, partial(cluster.resume_brain, node))


def _ask_for(cluster: Cluster, arguments: Mapping[str, Json]) -> None:
    ask(cluster, "node.attribute", {**arguments, "lifetime": "reboot"})


OF_MOMENTS: tuple[Kind[Cluster], ...] = tuple(
    Kind(f"{name} in the middle", 6 if name in GENTLE else 3, partial(interrupt, name)) for name in INTERRUPTIONS
)
OF_GENTLE_MOMENTS: tuple[Kind[Cluster], ...] = tuple(
    Kind(f"{name} in the middle", 6, partial(interrupt, name)) for name in GENTLE
)
Pair = tuple[str, Activity]
"""An interruption, and the activity that it meets."""
PAIRS: tuple[Pair, ...] = tuple((interruption, activity) for activity in MET for interruption in INTERRUPTIONS)
"""Every interruption with everything that it may meet."""


def pair_name(pair: Pair) -> str:
    """Return how a table names a pair."""
    interruption, activity = pair
    return f"{interruption} × {activity.value}"


def directed(pair: Pair, weight: int) -> Kind[Cluster]:
    """Return the fault that brings one pair about."""
    interruption, activity = pair
    return Kind(f"{interruption} in the middle", weight, partial(interrupt, interruption, met=activity))


OF_NEWCOMERS: tuple[Kind[Cluster], ...] = tuple(
    directed((name, activity), 1) for activity in (Activity.MEMBERS, Activity.SNAPSHOT) for name in INTERRUPTIONS
)
"""What else happens where members come and go."""
