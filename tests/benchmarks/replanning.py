"""How long a plan takes that follows another after one event, in a process that keeps the cache."""

import time

from haclusterd.formats.cib_xml.document import read_cib
from haclusterd.model.cluster import Cib, NodeStatus
from haclusterd.model.history import FailCount, ResourceHistory
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.model.records import replace
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.model.plan_cache import PlanCache
from haclusterd.scheduler.schedule import schedule

NOW = WallTime(1_000_000)
EVENTS = 5


def replan(text: str) -> float:
    """Return the seconds of CPU of the slowest of several plans, each after another resource's monitor failed."""
    cib = read_cib(text, "benchmark").cib
    options, cache = ScheduleOptions(is_pacemaker_compatible=True), PlanCache()
    schedule(cib, NOW, options=options, cache=cache)
    slowest = 0.0
    for number in range(EVENTS):
        cib = with_failure(cib, number)
        began = time.process_time()
        plan = schedule(cib, NOW, options=options, cache=cache)
        slowest = max(slowest, time.process_time() - began)
        assert plan.graph.actions, "a failed monitor must lead to something"
    return slowest


def with_failure(cib: Cib, number: int) -> Cib:
    """Let the recurring monitor of one running resource fail, on the node where it runs."""
    running = [
        (status, history)
        for _, status in sorted(cib.status.nodes.items())
        for _, history in sorted(status.histories.items())
        if "monitor_10000" in history.records and not history.fail_counts
    ]
    status, history = running[number * 37 % len(running)]
    return replace(cib, status=replace(cib.status, nodes={**cib.status.nodes, status.name: _failed(status, history)}))


def _failed(status: NodeStatus, history: ResourceHistory) -> NodeStatus:
    monitor = history.records["monitor_10000"]
    failed = replace(
        monitor, call_id=monitor.call_id + 100_000, exit_code=ExitCode.NOT_RUNNING, status=ExecutionStatus.ERROR
    )
    count = FailCount("monitor", 10_000, 1, NOW)
    changed = replace(
        history,
        records={**history.records, "monitor_10000": failed},
        fail_counts={"monitor_10000": count},
        last_failure=failed,
    )
    return replace(status, histories={**status.histories, history.resource: changed})
