"""A daemon that starts again on a disk that does not answer, and is cut off before it has learnt what is in force.

What it runs is watched by a pacer that counts by what this daemon knows: the node-timeout and the members of before.
The others know more, and wait for the watchdog by that (safety.md §2, §7). Single faults meet that once in many hours.
"""

import random
from collections.abc import Sequence

from haclusterd.model.ids import NodeName
from haclusterd.simulator.faults.base import Drawn, End, Kind, Steps
from haclusterd.simulator.faults.hosts import USUAL_SYNC_US
from haclusterd.simulator.hosts.world import SECOND
from haclusterd.simulator.people import ask
from haclusterd.simulator.scenario import Cluster

LEARNT_MS = 1500
"""After so long every node follows the longer node-timeout."""
USUAL_TIMEOUT = "2s"


def restart_unanswered(chance: random.Random, nodes: Sequence[NodeName]) -> Drawn[Cluster]:
    """A longer node-timeout is taken back while a daemon starts again; its disk syncs nothing, then it is cut off."""
    node, longer = chance.choice(nodes), chance.choice(("5s", "10s", "30s"))
    shorter, cut_after_ms = chance.choice(("1s", "2s")), chance.randint(300, 2000)

    def begin(cluster: Cluster) -> End:
        steps = Steps(cluster.world)
        _set_timeout(cluster, longer)
        steps.after(LEARNT_MS, lambda: restart(cluster, steps))
        return lambda: end(cluster, steps)

    def restart(cluster: Cluster, steps: Steps) -> None:
        if node not in cluster.names:
            return
        cluster.hosts[node].disk.sync_us = (60 * SECOND, 60 * SECOND)
        cluster.kill_brain(node)
        _set_timeout(cluster, shorter)
        steps.after(cut_after_ms, lambda: cluster.isolate(node) if node in cluster.names else None)

    def end(cluster: Cluster, steps: Steps) -> None:
        steps.end()
        _set_timeout(cluster, USUAL_TIMEOUT)
        if node in cluster.names:
            cluster.hosts[node].disk.sync_us = USUAL_SYNC_US
            cluster.kill_brain(node)  # What it waits for has not been answered yet.
            cluster.rejoin(node)

    text = f"{node} starts again on a stuck disk, {longer} become {shorter}, cut off after {cut_after_ms} ms"
    return Drawn(text, begin, chance.randint(LEARNT_MS + 8000, 40_000))


def _set_timeout(cluster: Cluster, value: str) -> None:
    ask(cluster, "configure.statement", {"words": ["property", f"node-timeout={value}"]})


OF_STUCK_DISKS: tuple[Kind[Cluster], ...] = (Kind("restart on a stuck disk", 3, restart_unanswered),)
