"""What the scheduler would do, for questions, previews and waiting. A scheduler that fails is an answer too.

The scheduler is loaded when it is asked first, or by `load_scheduler`: a daemon has its first election to win before,
and plans in another process.
"""

from dataclasses import replace

from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Condition
from haclusterd.formats.cib_xml import CibReading
from haclusterd.model import durations
from haclusterd.model.cluster import Cib
from haclusterd.model.graph import ActionKind, GraphAction, Plan
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.scheduler.options import DEFAULT_OPTIONS, ScheduleOptions


def load_scheduler() -> None:
    """Load the scheduler, so that the first question need not wait for it."""
    import haclusterd.scheduler.schedule  # noqa: F401


def plan(
    cib: Cib, now: WallTime, *, is_explaining: bool = False, options: ScheduleOptions = DEFAULT_OPTIONS
) -> Plan | ReportItem:
    """Ask the scheduler; explaining, it keeps what each score is the sum of."""
    from haclusterd.scheduler.schedule import schedule

    try:
        return schedule(cib, now, options=replace(options, is_explaining=is_explaining))
    except Exception as bug:  # noqa: BLE001 - a question about a bad configuration must not end the daemon
        return report(Code.SCHEDULER_FAILED, problem=f"{type(bug).__name__}: {bug}")


def as_pacemaker(reading: CibReading) -> ScheduleOptions:
    """Return how a CIB of Pacemaker is planned for: as Pacemaker would."""
    return ScheduleOptions(
        has_quorum=reading.has_quorum,
        may_fence_without_quorum=reading.may_fence_without_quorum,
        is_pacemaker_compatible=True,
    )


def context_of(reading: CibReading, context: Context) -> Context:
    """Return the context for questions about a saved CIB of Pacemaker: at the time at which it was saved."""
    now = reading.execution_date or context.now
    return replace(context, cib=reading.cib, now=now, schedule_options=as_pacemaker(reading))


def real_actions(found: Plan) -> tuple[GraphAction, ...]:
    """Return the actions that need a hand, in order of their ids."""
    return tuple(
        action
        for _, action in sorted(found.graph.actions.items())
        if action.kind not in (ActionKind.PSEUDO, ActionKind.CLUSTER)
    )


def settled(now: WallTime) -> Condition:
    """Return the condition that nothing is in flight and nothing is left to do."""

    def is_settled(cib: Cib, _live: object) -> bool:
        if cib.status.fence_orders or any(node.orders for node in cib.status.nodes.values()):
            return False
        found = plan(cib, max(now, cib.version.at))
        return isinstance(found, Plan) and not real_actions(found)

    return is_settled


def is_probe(action: GraphAction) -> bool:
    """Tell whether an action only finds out whether a resource runs somewhere."""
    return action.is_named(ActionName.MONITOR) and action.interval_ms == 0


def describe_action(action: GraphAction) -> str:
    """Write one action: `start web on n1`."""
    if action.kind is ActionKind.FENCE:
        return f"fence {action.node} ({action.name})"
    every = f" every {durations.render(action.interval_ms)}" if action.interval_ms else ""
    return f"{action.name} {action.resource} on {action.node}{every}"
