"""Agents of a promotable clone that write attributes of nodes.

As ocf:heartbeat:pgsql does, in the middle of a promote or demote: each change aborts the transition, which then has
only to notify the instances of what was under way. Or as ocf:heartbeat:pgsqlms does: the promotion scores of all
instances, for good, whenever the promoted one is monitored. So a node that is away keeps the score of before.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from haclusterd.cib.commands import SetTransientAttribute
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.configuration import effective
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.json_value import Json
from haclusterd.model.requests import Options, Request
from haclusterd.ports.agents import AgentCall
from haclusterd.runtime.requests.request_services import Caller
from haclusterd.simulator.brain import BrainProcess
from haclusterd.simulator.checks.checker import Checker
from haclusterd.simulator.hosts.truth import promoted
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


AGENT = Caller("root")
PROMOTED_SCORE = 1001
FIRST_SCORE, STEP = 1000, 10
"""Of the best instance that is connected to the promoted one, and from one to the next."""
UNCONNECTED_SCORE = -1000


class ScoringAgents(Checker):
    """Writes the scores of all instances a while after a monitor of the promoted one has begun, through its daemon."""

    def __init__(self, cluster: Cluster, primitive: str, order: Sequence[NodeName], after_ms: int) -> None:
        """`order`: which instances come first, if they are connected."""
        super().__init__(cluster, cluster.checkers.log)
        self._cluster = cluster
        self._primitive = ResourceId(primitive)
        self._order = tuple(order)
        self._after_ms = after_ms
        self._written = 0

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Checker`."""
        if call.action == "monitor" and call.resource == self._primitive and self._is_promoted(node):
            self._cluster.world.after(self._after_ms * MS, partial(self._score, node))

    def _is_promoted(self, node: NodeName) -> bool:
        return self._cluster.truth.is_active(node, promoted(self._primitive))

    def _score(self, node: NodeName) -> None:
        process, cib = self._cluster.hosts[node].brain.process, self._cluster.applied_at(node)
        if cib is None or not isinstance(process, BrainProcess) or not self._is_promoted(node):
            return
        if not process.main_life.is_running:
            return
        for name, score in self._scores(node, cib):
            self._written += 1
            arguments: dict[str, Json] = {"node": name, "action": "set", "name": f"master-{self._primitive}",
                                          "value": score, "lifetime": "forever"}  # fmt: skip
            options = Options(wait_ms=0, force=True, reason="an agent")
            request = Request(f"score-{self._written}", "node.attribute", arguments, options)
            process.main_life.after(0, partial(_ask, process, request))

    def _scores(self, node: NodeName, cib: Cib) -> Iterator[tuple[NodeName, str]]:
        """Yield what is other than it is written: of nodes that are online, and no others."""
        place = 0
        for name in (*self._order, *sorted(set(cib.status.nodes) - set(self._order))):
            status = cib.status.nodes.get(name)
            if status is None or status.state is not NodeState.ONLINE:
                continue
            score = UNCONNECTED_SCORE
            if name == node:
                score = PROMOTED_SCORE
            elif self._cluster.truth.is_active(name, self._primitive):
                score = FIRST_SCORE - STEP * place
                place += 1
            entry = cib.configuration.nodes.get(name)
            known = "" if entry is None else effective(entry.attributes).get(f"master-{self._primitive}", "")
            if known != str(score):
                yield name, str(score)


def _ask(process: BrainProcess, request: Request) -> None:
    """Ask the daemon of the agent's node; where that cannot write now, the next monitor asks again."""
    process.control.handle(request, AGENT, lambda _answer: None)
