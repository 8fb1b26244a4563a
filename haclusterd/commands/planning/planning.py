"""What the scheduler would do, for questions, previews and waiting. A scheduler that fails is an answer too.

The scheduler is loaded when it is asked first, or by `load_scheduler`: a daemon has its first election to win before,
and plans in another process.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Condition
from haclusterd.commands.planning.recorded_transition import recorded
from haclusterd.formats.cib_xml.document import CibReading
from haclusterd.model import durations
from haclusterd.model.cluster import Cib, Status
from haclusterd.model.configuration import Configuration
from haclusterd.model.dated_blocks import dated_blocks, with_judged
from haclusterd.model.graph import ActionKind, GraphAction, Plan
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName
from haclusterd.model.quorum import has_quorum, majority, voters_left
from haclusterd.model.records import dataclass, replace
from haclusterd.model.restarts import with_stopped
from haclusterd.model.secrets import with_revisions
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.scheduler.model.options import DEFAULT_OPTIONS, ScheduleOptions

if TYPE_CHECKING:
    from haclusterd.scheduler.graph.found_rows import FoundRow
    from haclusterd.scheduler.model.plan_cache import PlanCache

STALE_FROM_MS = 1000
"""From this age on, what a node without quorum knows is shown as old; an election takes less."""


def load_scheduler() -> None:
    """Load the scheduler, so that the first question need not wait for it."""
    import haclusterd.scheduler.schedule  # noqa: F401 (loading it is the purpose)


def plan(
    cib: Cib, now: WallTime, *, is_explaining: bool = False, options: ScheduleOptions = DEFAULT_OPTIONS,
    cache: "PlanCache | None" = None,
) -> Plan | ReportItem:  # fmt: skip
    """Ask the scheduler; explaining, it keeps what each score is the sum of. A `cache` is for what is planned next.

    Rules on dates are judged as a DC would at that time; those of a CIB of Pacemaker are all the scheduler's.
    """
    from haclusterd.scheduler.schedule import schedule

    try:
        cib = _as_planned(cib, now, options)
        if cib.status.restarts:
            cib = replace(cib, configuration=with_stopped(cib.configuration, cib.status.restarts))
        return schedule(cib, now, options=replace(options, is_explaining=is_explaining), cache=cache)
    except Exception as bug:  # noqa: BLE001 - a question about a bad configuration must not end the daemon
        return report(Code.SCHEDULER_FAILED, problem=f"{type(bug).__name__}: {bug}")


def _as_planned(cib: Cib, now: WallTime, options: ScheduleOptions) -> Cib:
    """Return the CIB as it is planned: rules on dates are judged, secrets have their revisions."""
    from haclusterd.scheduler.model.judging import judge

    blocks = {} if options.is_pacemaker_compatible else dated_blocks(cib.configuration)
    if blocks:
        cib = replace(cib, configuration=with_judged(cib.configuration, judge(blocks, now).in_force))
    if cib.secrets.values:
        cib = replace(cib, configuration=with_revisions(cib.configuration, cib.secrets))
    return cib


def status_for_pacemakers_tools(
    cib: Cib, shown: Configuration, now: WallTime, options: ScheduleOptions = DEFAULT_OPTIONS
) -> Status:
    """Return the status with the digests that Pacemaker's tools expect beside a configuration whose secrets are hidden.

    Where the scheduler fails, the status is as it is: then those tools plan restarts.
    """
    from haclusterd.scheduler.schedule import with_pacemakers_digests

    try:
        planned, hidden = (_as_planned(each, now, options) for each in (cib, replace(cib, configuration=shown)))
        return with_pacemakers_digests(planned, hidden, now, options).status
    except Exception:  # noqa: BLE001 - a question about a bad configuration must not end the daemon
        return cib.status


def rows_afterwards(
    cib: Cib, found: Plan, now: WallTime, options: ScheduleOptions, cache: "PlanCache"
) -> "tuple[FoundRow, ...]":
    """Return what Pacemaker's tools would print as active once a plan for a CIB of Pacemaker has been carried out."""
    from haclusterd.scheduler.schedule import find_rows

    return tuple(find_rows(recorded(cib, found, now), now, options, cache))


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether the plan that is asked for can be carried out at all."""

    options: ScheduleOptions
    """How the scheduler is to be asked."""
    reports: tuple[ReportItem, ...] = ()
    """What must be known of the answer: nothing can be decided, or the state is old."""

    @property
    def has_quorum(self) -> bool:
        """Whether there is a quorum to carry the plan out."""
        return self.options.has_quorum


def standing(context: Context, supposed: Cib | None = None) -> Standing:
    """Judge whether there is a quorum, in this cluster as it is, or as it is supposed to be.

    A saved CIB with nobody online, and one of Pacemaker, are taken at their word.
    """
    cib, options = supposed or context.cib, context.schedule_options
    if options.is_pacemaker_compatible:
        return Standing(options)
    reports = [*staleness(context)]
    voters = cib.voters()
    unreached = _unreached(context, cib)
    if voters_left(context.cib, ()) and not has_quorum(cib, unreached):
        left = voters_left(cib, unreached)
        reports.append(report(Code.NO_QUORUM_LEFT, left=left, voters=len(voters), needed=majority(len(voters))))
        options = replace(options, has_quorum=False)
    return Standing(options, tuple(reports))


def _unreached(context: Context, cib: Cib) -> set[NodeName]:
    """Return the voters that the answering node does not reach, except those that are supposed to be back."""
    if context.live is None:
        return set()
    known = context.cib.status.nodes
    return {
        name
        for name in cib.voters()
        if name not in context.live.connected_voters and cib.status.nodes.get(name) is known.get(name)
    }


def staleness(context: Context) -> Iterator[ReportItem]:
    """Warn that what the answering node knows is old, since it has no quorum."""
    live = context.live
    if live is not None and not live.has_quorum and live.stale_ms >= STALE_FROM_MS:
        yield report(Code.STALE, node=live.node, age=durations.render(live.stale_ms // 1000 * 1000))


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
    """Return the actions that something executes, in order of their ids."""
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


def over_with(context: Context, failure: Callable[[Cib], str], is_done: Condition) -> Condition:
    """Return the condition that waiting is over: what was asked for is so, or it failed and nothing is left to try.

    `failure` says what failed since; empty: nothing. Without a failure a cluster that has settled may still act: an
    agent's next monitor sets a promotion score.
    """
    is_settled = settled(context.now)
    return lambda cib, live: is_done(cib, live) or (bool(failure(cib)) and is_settled(cib, live))


def is_probe(action: GraphAction) -> bool:
    """Tell whether an action only finds out whether a resource runs somewhere."""
    return action.is_named(ActionName.MONITOR) and action.interval_ms == 0


def describe_action(action: GraphAction) -> str:
    """Write one action: `start web on n1`."""
    if action.kind is ActionKind.FENCE:
        return f"fence {action.node} ({action.name})"
    every = f" every {durations.render(action.interval_ms)}" if action.interval_ms else ""
    return f"{action.name} {action.resource} on {action.node}{every}"
