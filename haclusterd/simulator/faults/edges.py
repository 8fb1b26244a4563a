"""A watchdog driven to the edge of its inequality: W >= (L + 2 T_wd)(1 + 2 rho) + R (safety.md §2).

Single faults meet the edge once in many hours, since a loss with a fresh lease, stops that hang, a feed that is held
back and a device about to expire must come together. Here they do, and chance decides only how near the edge it goes.
"""

import random
from collections.abc import Callable, Sequence

from haclusterd.cib.commands import RequestFence
from haclusterd.model.cluster import NodeState
from haclusterd.model.ids import Incarnation, NodeName, ResourceId
from haclusterd.simulator.faults.base import Drawn, End, Kind
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.hosts.pacers import PacerProcess
from haclusterd.simulator.hosts.world import MS
from haclusterd.simulator.scenario import Cluster

HANGS = AgentRun(duration_ms=600_000)
LOOK_US = 5 * MS


def drive_to_the_edge(
    chance: random.Random,
    _nodes: Sequence[NodeName],
) -> Drawn[Cluster]:
    """Who runs a service is lost with a fresh lease and cannot stop it; its last feed is written as late as can be.

    Its pacer is killed while the lease lasts. The new one opens the device, which is a feed, decides upon the next feed
    soon afterwards, and is stopped before it writes that. When it is killed, and how long before the expiry of the
    device the host runs on, are drawn.
    """
    resource = chance.choice(configurations.SERVICES)
    killed_after_percent, spare_ms = chance.randint(50, 88), chance.randint(1, 40)

    def begin(cluster: Cluster) -> End | None:
        # One after another: while somebody is lost the others are too few to lose one more.
        holders = cluster.truth.active_nodes(ResourceId(resource)) if cluster.all_online() else ()
        return _Drive(cluster, holders[0], killed_after_percent, spare_ms).end if holders else None

    how = f"pacer killed at {killed_after_percent} % of the lease, {spare_ms} ms spare"
    text = f"who runs {resource} is driven to the edge ({how})"
    return Drawn(text, begin, chance.randint(14_000, 20_000))


class _Drive:
    """One such node; when something else goes wrong meanwhile, it may not get that far, and ends."""

    def __init__(self, cluster: Cluster, node: NodeName, killed_after_percent: int, spare_ms: int) -> None:
        self._cluster = cluster
        self._host = cluster.hosts[node]
        self._node = node
        self._spare_us = spare_ms * MS
        self._killed_after_us = killed_after_percent * cluster.timing.lease_ms * MS // 100
        self._is_over = False
        self._is_cut = False
        self._pacer: PacerProcess | None = None
        self._life: Incarnation | None = None
        status = cluster.cib.status.nodes.get(node)
        if status is None or status.incarnation is None or status.state is not NodeState.ONLINE:
            return
        self._life = status.incarnation
        for service in configurations.SERVICES:
            cluster.agent_script.write(service, "stop", HANGS, node=node)
        cluster.administer(RequestFence(node, status.incarnation, "swarm", "the edge"))
        self._when(self._is_lost, self._cut_off)

    def _when(self, is_so: Callable[[], bool], then: Callable[[], None]) -> None:
        """Look again and again until something is so."""
        if self._is_over:
            return
        if is_so():
            then()
        else:
            self._cluster.world.after(LOOK_US, lambda: self._when(is_so, then))

    def _is_lost(self) -> bool:
        status = self._cluster.cib.status.nodes.get(self._node)
        return status is not None and status.state is NodeState.LOST and status.incarnation == self._life

    def _cut_off(self) -> None:
        self._is_cut = True
        self._cluster.isolate(self._node)
        self._cluster.world.after(self._killed_after_us, self._kill_pacer)

    def _kill_pacer(self) -> None:
        if self._is_over:
            return
        unit = self._host.pacer
        old = unit.process
        unit.kill()
        self._when(lambda: unit.process is not old and unit.is_running, self._stop_before_a_feed)

    def _stop_before_a_feed(self) -> None:
        process = self._host.pacer.process
        if isinstance(process, PacerProcess):
            self._pacer = process
            process.stops_before_next_write = True
            self._when(lambda: not process.life.is_running, self._write_late)

    def _write_late(self) -> None:
        device = None if self._host.boot is None else self._host.boot.watchdog
        if device is not None:
            wait_us = device.due_us - self._spare_us - self._cluster.world.now_us
            self._cluster.world.after(max(0, wait_us), self._go_on)

    def _go_on(self) -> None:
        if not self._is_over:
            self._host.pacer.resume()

    def end(self) -> None:
        """Leave the node to itself."""
        self._is_over = True
        if self._pacer is not None:
            self._pacer.stops_before_next_write = False
            self._host.pacer.resume()
        if self._life is not None:
            self._cluster.agent_script.clear()
        if self._is_cut:
            self._cluster.rejoin(self._node)


OF_EDGES: tuple[Kind[Cluster], ...] = (Kind("drive to the edge", 30, drive_to_the_edge),)
