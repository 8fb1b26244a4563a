"""What befalls a database whose data remembers that it was a primary's: it is killed, or its machine's power is cut.

It is mostly back while its successor is being promoted.
"""

import random
from collections.abc import Sequence
from functools import partial

from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.simulator.faults.base import Drawn, Kind
from haclusterd.simulator.hosts.truth import promoted
from haclusterd.simulator.hosts.world import MS
from haclusterd.simulator.scenario import Cluster

Nodes = Sequence[NodeName]
Chance = random.Random
Fault = Drawn[Cluster]
DATABASE = ResourceId("pg")
AWAY_MS = (0, 200, 1000, 3000, 8000)


def _nodes_of(cluster: Cluster, *, is_promoted: bool) -> tuple[NodeName, ...]:
    """Return where the database is promoted, if anywhere, or where it runs."""
    leading = cluster.truth.active_nodes(promoted(DATABASE))
    return leading if is_promoted and leading else cluster.truth.active_nodes(DATABASE)


def kill_instance(chance: Chance, _nodes: Nodes) -> Fault:
    """The processes of one instance are killed, mostly those of the promoted one."""
    is_promoted, place = chance.random() < 0.7, chance.random()

    def begin(cluster: Cluster) -> None:
        nodes = _nodes_of(cluster, is_promoted=is_promoted)
        if nodes:
            cluster.truth.service_ends(nodes[int(place * len(nodes))], DATABASE)

    return Drawn(f"an instance of {DATABASE} is killed{', the promoted one' if is_promoted else ''}", begin)


def reset_primary(chance: Chance, _nodes: Nodes) -> Fault:
    """The machine of the promoted instance loses its power, and has it again soon, unless fencing was earlier."""
    away_ms = chance.choice(AWAY_MS)

    def begin(cluster: Cluster) -> None:
        for node in _nodes_of(cluster, is_promoted=True)[:1]:
            cluster.power_off(node)
            cluster.world.after(away_ms * MS, partial(cluster.power_on, node))

    return Drawn(f"the machine of the promoted {DATABASE} is reset ({away_ms} ms)", begin)


OF_DATABASES: tuple[Kind[Cluster], ...] = (
    Kind("kill an instance", 3, kill_instance),
    Kind("reset the primary", 5, reset_primary),
)
