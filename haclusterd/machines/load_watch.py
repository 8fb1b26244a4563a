"""How many actions a node may run at once, given its load (Pacemaker Explained, "Cluster Options": load-threshold).

Each node reads its own load at intervals and publishes a limit when that has changed; the DC obeys it.
Invariant: while load-threshold is 0, nothing is published but the end of an earlier limit.
"""

from collections.abc import Callable, Sequence

from haclusterd.cib.commands import PublishLoad
from haclusterd.machines.effects import Effect, Propose, Scope
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.configuration import Configuration
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import NEVER, Instant, after
from haclusterd.model.machine_load import MachineLoad, actions_left
from haclusterd.model.properties import ClusterProperties

LOOK_MS = 30_000
"""Pause between two reads: the kernel's average is over a minute, and more log entries would be a load themselves."""


class LoadWatch:
    """This node's limit; see the module."""

    def __init__(self, node: NodeName) -> None:
        self._node = node
        self._next_at = Instant(0)
        self._is_watching = False
        self._configuration: Configuration | None = None
        """The configuration that the threshold was read from."""
        self._threshold = 0
        """In percent; 0: the load sets no limit."""

    def step(
        self, cib: Cib, incarnation: Incarnation, read: Callable[[], MachineLoad | None], now: Instant
    ) -> Sequence[Effect]:
        """Read the load with `read` if that is due, and publish a changed limit."""
        status = cib.status.nodes.get(self._node)
        threshold = self._threshold_of(cib.in_force)
        is_joined = status is not None and status.state is NodeState.ONLINE and status.incarnation == incarnation
        self._is_watching = is_joined and threshold > 0
        if status is None or not is_joined or (threshold and now < self._next_at):
            return ()
        wanted = 0
        if threshold:
            self._next_at = after(now, LOOK_MS)
            load = read()
            limit = ClusterProperties(cib.in_force).integer("node-action-limit")
            wanted = actions_left(load, threshold, limit) if load is not None else 0
        if wanted == status.actions_max:
            return ()
        command = PublishLoad(self._node, incarnation, wanted)
        return (Propose(Scope.INCARNATION, f"load:{incarnation}:{wanted}", command),)

    def _threshold_of(self, configuration: Configuration) -> int:
        if configuration is not self._configuration:
            self._configuration = configuration
            self._threshold = ClusterProperties(configuration).percentage("load-threshold")
        return self._threshold

    def deadline(self) -> Instant:
        """Return when `step` must be called next."""
        return self._next_at if self._is_watching else NEVER
