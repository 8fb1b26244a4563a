"""Agents that write attributes of their node in the middle of a promote or demote, as ocf:heartbeat:pgsql does.

Each change aborts the transition, which then has only to notify the instances of what was under way.
"""

from functools import partial

from haclusterd.cib.commands import SetTransientAttribute
from haclusterd.model.ids import NodeName
from haclusterd.ports.agents import AgentCall
from haclusterd.simulator.checks.checker import Checker
from haclusterd.simulator.hosts.world import MS
from haclusterd.simulator.scenario import Cluster

WRITE_AFTER_MS = (2, 600)
STATES = ("starting", "ready")


class WritingAgents(Checker):
    """Writes what a promote or demote says of its instance, twice: soon, and later than many of them take."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, cluster.checkers.log)
        self._cluster = cluster

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Checker`."""
        if call.action not in ("promote", "demote"):
            return
        for state, after_ms in zip(STATES, WRITE_AFTER_MS, strict=True):
            self._cluster.world.after(after_ms * MS, partial(self._write, node, f"{call.action} {state}"))

    def _write(self, node: NodeName, value: str) -> None:
        if node in self._cluster.names:
            self._cluster.administer(SetTransientAttribute(node, "pg-status", value))
