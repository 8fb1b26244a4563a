"""What a daemon knows beyond the CIB, as verbs see it."""

from haclusterd.commands.context import HeardFrom, LiveView, TransitionProgress
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import PacerReport
from haclusterd.protocol.dc_bulletin import DcBulletin
from haclusterd.runtime.dc_bulletins import bulletin_of
from haclusterd.runtime.node import NodeRuntime


def voters(runtime: NodeRuntime) -> tuple[NodeName, ...]:
    """Return the voters: by the CIB, or by the settings of a cluster that does not exist yet."""
    return runtime.cib.voters() or tuple(member.name for member in runtime.settings.members if member.is_voter)


def other_voters(runtime: NodeRuntime) -> tuple[NodeName, ...]:
    """Return the voters except this node."""
    return tuple(name for name in voters(runtime) if name != runtime.settings.node)


def live_view(runtime: NodeRuntime) -> LiveView:
    """Return what this daemon knows beyond the CIB."""
    moment = runtime.moment()
    node = runtime.settings.node
    all_voters = voters(runtime)
    connected = tuple(name for name in all_voters if name == node or name in runtime.links)
    has_leader = runtime.leadership.leader is not None
    bulletin = known_of_the_dc(runtime)
    held: dict[NodeName, str] = {}
    if runtime.joining.held_because:
        held[node] = runtime.joining.held_because
    pacer_report = runtime.ports.pacer.report()
    return LiveView(
        node=node,
        leader=runtime.leadership.leader,
        term=runtime.leadership.term,
        has_quorum=has_leader and len(connected) * 2 > len(all_voters),
        connected_voters=connected,
        lease_remaining_ms=moment.lease_until - moment.now if moment.has_lease else None,
        heard=_heard(runtime, pacer_report, moment.now) if pacer_report is not None else {},
        stale_ms=stale_ms(runtime, moment.now),
        safe_mode=runtime.safe_mode,
        safe_mode_remedy=runtime.safe_mode_remedy,
        scheduler_error=bulletin.scheduler_error,
        held_joins=held,
        transition=TransitionProgress(*bulletin.transition) if bulletin.transition is not None else None,
        started_at=runtime.started_at,
        history_problem=runtime.ports.history.problem(),
        warnings=(*_pacer_errors(pacer_report), *runtime.copied_nodes.warnings(moment.now),
                  *runtime.ports.agents.waits()),
        plan_warnings=bulletin.warnings,
        stopped_alone=runtime.executor.stopped_alone,
        loop_stalls=runtime.ports.loop_stalls.longest(),
        counted=runtime.tally.counted(),
    )


def known_of_the_dc(runtime: NodeRuntime) -> DcBulletin:
    """Return what the DC knows beyond the CIB: on the DC as of now, on other nodes by its newest bulletin."""
    term = runtime.leadership.term
    if runtime.controller.leads:
        return bulletin_of(runtime.controller, term)
    silent, dc = runtime.dc_bulletins.silent(), runtime.cib.status.controller
    if silent is not None and dc is not None and dc.node == silent:
        return DcBulletin(term, (f"{silent}, which is DC, does not say here what its plan warns of: crm status there",))
    return runtime.dc_bulletins.shown() or DcBulletin(term)


def stale_ms(runtime: NodeRuntime, now: Instant) -> int:
    """Return for how many ms no leader has been known here: the maximum age of this copy."""
    since = runtime.leaderless_since
    return 0 if since is None else max(1, now - since)


def _pacer_errors(pacer_report: PacerReport | None) -> tuple[str, ...]:
    return () if pacer_report is None else (*pacer_report.errors, *filter(None, (pacer_report.watchdog_problem,)))


def _heard(runtime: NodeRuntime, pacer_report: PacerReport, now: Instant) -> dict[NodeName, HeardFrom]:
    drift_ms = max(0, now - pacer_report.reported_at)
    return {
        item.name: HeardFrom(
            age_ms=item.age_ms + drift_ms if item.age_ms is not None else None,
            brain=str(item.brain),
            brain_since_ms=item.brain_since_ms,
            round_trip_ms=runtime.round_trips.least_ms(item.name, runtime.timing.heartbeat_ms),
            hears={name: age_ms + (item.age_ms or 0) + drift_ms for name, age_ms in item.hears.items()},
        )
        for item in pacer_report.nodes
    }
