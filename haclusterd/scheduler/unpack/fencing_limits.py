"""Why a node is not fenced for an operation that failed there: where it would end the quorum, or would never end.

A node that is not heard is fenced whatever it costs. One that is heard, and on which only an operation failed, can wait
for a person when fencing would do more harm: the resource is blocked there instead, as by Pacemaker's `on-fail=block`,
so no second copy of it can start. The answer follows from the CIB alone. A failure is compared with the fencings of the
window before it, so that the passing of time does not release what was held.
"""

from collections.abc import Mapping, Sequence

from haclusterd.model import durations
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.fencing import FailedOperation, FenceOutcome, FencingRecord, pause_ms
from haclusterd.model.history import OperationRecord
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExecutionStatus
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.quorum import ends_quorum
from haclusterd.model.records import dataclass, field
from haclusterd.scheduler.model.dates import EffectiveTime
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.unpack.fence_executors import able_to_use, levels_for

_DONE = (FenceOutcome.FENCED, FenceOutcome.CONFIRMED)
_IN_VAIN = (FenceOutcome.FAILED, FenceOutcome.TIMEOUT, FenceOutcome.LIED)


@dataclass(slots=True)
class FencingLimits:
    """Judges the fencings that one plan wants for failed operations."""

    cib: Cib
    time: EffectiveTime
    loop_limit: int
    """How many fencings of a node for failed operations there may be in the window; 0: any number."""
    failure_limit: int
    """How many nodes may be fenced for the same failure of the same resource in the window; 0: any number."""
    window_ms: int
    attempts_max: int
    """How often fencing a node for failed operations may fail in the window."""
    wanted: dict[NodeName, list[FailedOperation]] = field(default_factory=dict)
    """Nodes that this plan wants to be fenced, with the failures that lead to it."""

    @classmethod
    def of(cls, cib: Cib, now: WallTime, properties: ClusterProperties) -> "FencingLimits":
        """Read the limits."""
        return cls(
            cib,
            EffectiveTime(now),
            properties.integer("fencing-loop-limit"),
            properties.integer("fencing-failure-limit"),
            properties.duration_ms("fencing-loop-window"),
            properties.integer("fencing-max-attempts"),
        )

    @classmethod
    def under(cls, cib: Cib, settings: Settings) -> "FencingLimits":
        """Return the limits that hold for a plan."""
        return cls(
            cib,
            settings.time,
            settings.fencing_loop_limit,
            settings.fencing_failure_limit,
            settings.fencing_loop_window_ms,
            settings.fencing_max_attempts,
        )

    def objection(self, node: NodeName, failed: FailedOperation, failed_at: WallTime) -> str:
        """Say why a node is not to be fenced for a failure on it; empty when it is."""
        if node in self.wanted:
            return ""
        since = min(failed_at, self.time.now) - self.window_ms
        window = durations.render(self.window_ms)
        recent = [record for record in self.cib.status.fencing_history if _counts(record) and record.issued_at >= since]
        fenced = [*_same_failure(recent, failed), *self._being_fenced(failed)]
        if self.failure_limit and len(fenced) >= self.failure_limit:
            names = ", ".join(dict.fromkeys(fenced))
            return f"the same failure got {names} fenced within {window} (fencing-failure-limit)"
        times = sum(record.target == node for record in recent)
        if self.loop_limit and times >= self.loop_limit:
            return f"it was fenced {times} times within {window} for failed operations (fencing-loop-limit)"
        return self._obstacle(node, since, is_for_failures=True)

    def objection_to_ticket(self, node: NodeName) -> str:
        """Say why a node is not to be fenced for a lost ticket; empty when it is."""
        return self._obstacle(node, self.time.now - self.window_ms, is_for_failures=False)

    def _obstacle(self, node: NodeName, since: int, *, is_for_failures: bool) -> str:
        """Say why fencing a node that is heard would be in vain, or would end the quorum."""
        attempts = self._attempts_in_vain(node, since, is_for_failures=is_for_failures)
        failures = len(attempts)
        if failures >= self.attempts_max:
            window = durations.render(self.window_ms)
            remedy = f"once its device works: crm fencing cleanup {node}"
            return f"fencing it has failed {failures} times within {window} (fencing-max-attempts), {remedy}"
        if attempts:
            wait_ms = pause_ms(failures, self.attempts_max)
            due = WallTime(attempts[-1].ended_at + wait_ms)
            # A record from the future is from a clock that was wrong: it could delay the next attempt by hours.
            is_plausible = self.time.has_come(WallTime(attempts[-1].ended_at - wait_ms))
            if is_plausible and not self.time.has_come(due):
                self.time.look_again(due)
                return f"fencing it has failed {failures} times, and is tried again after a pause"
        return self._without_executor(node) or ends_quorum(self.cib, node, self.wanted)

    def _attempts_in_vain(self, node: NodeName, since: int, *, is_for_failures: bool) -> list[FencingRecord]:
        """Return the failed attempts to fence a node since it was last fenced: all, or those for failures alone.

        A node that is heard joins again in the same boot when its device fails, but each loss stops all its services.
        """
        attempts: list[FencingRecord] = []
        for record in self.cib.status.fencing_history:
            if record.target == node and (record.causes or not is_for_failures) and record.issued_at >= since:
                if record.outcome in _DONE:
                    attempts.clear()
                elif record.outcome in _IN_VAIN:
                    attempts.append(record)
        return attempts

    def _without_executor(self, node: NodeName) -> str:
        """Say that no node that stays online may use what fences a node; empty: one may, or nothing fences it."""
        levels = levels_for(self.cib, self.cib.status.nodes[node])
        if not levels or any(set(able_to_use(self.cib, node, level)) - self.wanted.keys() for level in levels):
            return ""
        devices = ", ".join(dict.fromkeys(device for level in levels for device in level))
        return f"no node that may use {devices} is online"

    def _being_fenced(self, failed: FailedOperation) -> list[NodeName]:
        """Return the nodes that are lost, or wanted to be, because of the same failure."""
        lost: Mapping[NodeName, Sequence[FailedOperation]] = {
            name: status.causes
            for name, status in sorted(self.cib.status.nodes.items())
            if status.state is NodeState.LOST
        }
        return [name for name, causes in {**lost, **self.wanted}.items() if failed in causes]


def failed_operation(resource: ResourceId, record: OperationRecord) -> FailedOperation:
    """Return what is compared of a failure: which operation of which resource, and how it ended."""
    is_timeout = record.status is ExecutionStatus.TIMEOUT
    ending = "timeout" if is_timeout else record.exit_code.name.lower().replace("_", " ")
    name = resource.rpartition(":")[0] if resource.rpartition(":")[2].isdecimal() else ""
    return FailedOperation(ResourceId(name or resource), record.operation, ending)


def _counts(record: FencingRecord) -> bool:
    return record.outcome in _DONE and bool(record.causes)


def _same_failure(records: Sequence[FencingRecord], failed: FailedOperation) -> list[NodeName]:
    return [record.target for record in records if failed in record.causes]
