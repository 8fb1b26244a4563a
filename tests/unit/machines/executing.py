"""n2's executor in a cluster of three: what it begins and says, and its agents, which end when a test says so."""

from collections.abc import Sequence

from haclusterd.cib import commands
from haclusterd.machines.effects import (
    Effect,
    KillAgent,
    PublishEmpty,
    RunAgent,
)
from haclusterd.machines.executing.executor import ExecutorMachine
from haclusterd.machines.moment import Moment
from haclusterd.model.agent_calls import AgentCall
from haclusterd.model.ids import ResourceId
from haclusterd.model.instants import NEVER, Instant
from haclusterd.model.ocf import ExecutionStatus
from haclusterd.model.orders import OperationResult, ResultKind
from tests.unit.situations import (
    DB,
    N2,
    Cluster,
    commands_of,
    ended,
    life,
    moment,
    order,
)

GRACE_MS = 2000


class Node:
    """n2's executor in a cluster, and the agents that it was given to run."""

    def __init__(self, cluster: Cluster | None = None, *, actions_max: int = 16) -> None:
        self.cluster = cluster or Cluster()
        self.executor = ExecutorMachine(
            N2, life(N2), Instant(0), lease_grace_ms=GRACE_MS, actions_max=actions_max
        )
        self.now = 10_000
        self.has_lease = True
        self.calls: list[AgentCall] = []
        self.at_work: dict[str, AgentCall] = {}
        self.killed: list[str] = []
        self.reported: list[OperationResult] = []
        self.said_empty: list[bool] = []
        self.seen = self.cluster.cib
        self.effects: Sequence[Effect] = ()

    def moment(self) -> Moment:
        return moment(self.now, lease_until=NEVER if self.has_lease else 0)

    def perform(self, effects: Sequence[Effect]) -> Sequence[Effect]:
        self.effects = effects
        for effect in effects:
            if isinstance(effect, RunAgent):
                assert effect.call.key not in self.at_work
                self.calls.append(effect.call)
                self.at_work[effect.call.key] = effect.call
            elif isinstance(effect, KillAgent):
                self.killed.append(effect.key)
            elif isinstance(effect, PublishEmpty):
                self.said_empty.append(effect.is_empty)
        for command in commands_of(effects):
            assert isinstance(command, commands.RecordResults)
            self.reported.extend(command.results)
            self.cluster.put(command)
        return effects

    def see(self) -> Sequence[Effect]:
        """Show it the newest CIB."""
        self.seen = self.cluster.cib
        return self.perform(self.executor.cib_changed(self.cluster.cib, self.moment()))

    def tick(self, span_ms: int = 0) -> Sequence[Effect]:
        self.now += span_ms
        return self.perform(self.executor.ticked(self.moment()))

    def finish(self, key: str, exit_code: int = 0, status: ExecutionStatus = ExecutionStatus.DONE) -> Sequence[Effect]:
        """Let an agent end; the CIB that follows is seen."""
        del self.at_work[key]
        effects = self.perform(self.executor.agent_finished(ended(key, exit_code, status), self.moment()))
        self.see()
        return effects

    def lose_lease(self) -> Sequence[Effect]:
        self.has_lease = False
        return self.tick()

    def is_empty(self) -> bool:
        """Return what the pacer got last."""
        return bool(self.said_empty) and self.said_empty[-1]

    def begun(self) -> list[tuple[str, str]]:
        return [(str(call.resource), call.action) for call in self.calls]

    def answers(self) -> list[tuple[str | None, ResultKind]]:
        return [(result.order, result.kind) for result in self.reported]


def start(node: Node, resource: ResourceId = DB) -> None:
    node.cluster.issue(order(f"start-{resource}", resource=resource))
    node.see()
    node.finish(f"start-{resource}")
