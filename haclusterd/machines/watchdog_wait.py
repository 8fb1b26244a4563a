"""When survivors may assume that a lost node's own watchdog has reset it (safety.md §2).

Nothing is executed: the DC waits W from when it saw the loss committed, in this very term, and then records success,
which takes a quorum. By then the node was reset, or is proven to run nothing: an empty node is fed, and may be heard.
A node that is alive afterwards and does not report itself empty has a device that does not work. Only its answer to a
later heartbeat shows that it is alive now; until then each heartbeat from it restarts the listening period.
"""

from collections.abc import Sequence

from haclusterd.cib.commands import Fenced, RecordFenceFailure
from haclusterd.machines.effects import Effect, Propose, Scope
from haclusterd.machines.fence_evidence import is_alive_since
from haclusterd.machines.moment import Moment
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.fencing import FenceOrder, FenceOutcome
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import NEVER, Instant, WallTime, after
from haclusterd.model.pacer import HeardNode, PacerReport
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.model.timing import WATCHDOG_RESERVE_MS, Timing, naive_watchdog_wait_ms, watchdog_wait_ms


class WatchdogWait:
    """The waits of one DC in one term; see the module."""

    def __init__(self, timing: Timing, *, rules: SafetyRules = ALL_RULES) -> None:
        self._timing = timing
        self._rules = rules
        self._seen_at: dict[tuple[NodeName, WallTime], Instant] = {}
        """When this DC first saw each loss, by the time of its declaration."""
        self.wake_at = NEVER

    def retimed(self, timing: Timing) -> None:
        """Note that the administrator changed node-timeout."""
        self._timing = timing

    def observe(self, cib: Cib, moment: Moment) -> None:
        """Note the losses that are committed."""
        self.wake_at = NEVER
        lost = {
            (name, status.since): moment.now
            for name, status in cib.status.nodes.items()
            if status.state is NodeState.LOST
        }
        self._seen_at = {key: self._seen_at.get(key, now) for key, now in lost.items()}

    def step(
        self, cib: Cib, order: FenceOrder, report: PacerReport | None, moment: Moment
    ) -> Sequence[Effect]:
        """Advance the wait of one order."""
        status = cib.status.nodes.get(order.target)
        if status is None or status.watchdog is None or (status.name, status.since) not in self._seen_at:
            return (_failed(order, FenceOutcome.UNKNOWN, f"{order.target} is not lost, or has no watchdog"),)
        due_at = self._due_at(status, moment)
        since = max(due_at, self._seen_at[(status.name, status.since)])
        if moment.now < due_at or report is None or not moment.has_lease:
            self.wake_at = min(self.wake_at, max(due_at, after(moment.now, self._timing.heartbeat_ms)))
            return ()
        named = (node for node in report.nodes if node.name == order.target)
        heard = next((node for node in named if _is_to_be_silent(node, order)), None)
        if heard is not None and is_alive_since(heard, since, self._timing):
            return (_failed(order, FenceOutcome.LIED, f"{order.target} lives on, and does not say that it is empty"),)
        newest = since if heard is None or heard.heard_at is None else max(since, heard.heard_at)
        if report.reported_at < after(newest, self._timing.heartbeat_ms + self._timing.heartbeat_ms // 4):
            self.wake_at = min(self.wake_at, after(moment.now, self._timing.heartbeat_ms))
            return ()
        detail = f"its watchdog of {status.watchdog.timeout_ms} ms had {self.wait_ms(status)} ms"
        fenced = Fenced(order.target, order.target_incarnation, order.key, FenceOutcome.FENCED, detail)
        return (Propose(Scope.DC, f"fenced:{order.key}", fenced),)

    def wait_ms(self, status: NodeStatus) -> int:
        """Return W for a node, in ms."""
        assert status.watchdog is not None
        lease_ms = max(self._timing.lease_ms, status.longest_lease_ms)
        formula = watchdog_wait_ms if self._rules.wait_covers_held_back_feed else naive_watchdog_wait_ms
        wait_ms = formula(lease_ms, status.watchdog.timeout_ms)
        return wait_ms if self._rules.wait_has_reserve else wait_ms - WATCHDOG_RESERVE_MS

    def _due_at(self, status: NodeStatus, moment: Moment) -> Instant:
        seen_at = self._seen_at[(status.name, status.since)]
        if not self._rules.new_dc_waits_again:
            seen_at = Instant(moment.now - (moment.wall - status.since))
        return after(seen_at, self.wait_ms(status))


def _is_to_be_silent(heard: HeardNode, order: FenceOrder) -> bool:
    """Return whether the boot that is heard is the one that was to end, and does not report that it runs nothing."""
    wanted, found = order.target_incarnation, heard.incarnation
    is_same_boot = wanted is not None and found is not None and wanted.boot_id == found.boot_id
    return is_same_boot and not heard.is_empty


def _failed(order: FenceOrder, outcome: FenceOutcome, detail: str) -> Effect:
    return Propose(Scope.DC, f"fence-failed:{order.key}", RecordFenceFailure(order.key, outcome, detail))
