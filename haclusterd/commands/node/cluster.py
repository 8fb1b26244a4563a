"""Verbs about the cluster as a whole: members, timing, names, the state as a file."""

from haclusterd.cib.codec import encode_cib
from haclusterd.commands.configure.view import ids_of
from haclusterd.commands.context import Context, HeardFrom
from haclusterd.commands.history.history import moment_of
from haclusterd.commands.history.replay import replayed
from haclusterd.commands.history.transitions import newest_transitions
from haclusterd.commands.names import node_names
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.status.devices import device_names
from haclusterd.commands.status.status import node_answer
from haclusterd.commands.ticket import ticket_names
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.machines.executing.stop_plan import timeout_of
from haclusterd.model import timing
from haclusterd.model.cluster import Cib, Member
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.watchdog import longest_stop_ms
from haclusterd.reports.items import ReportItem
from haclusterd.verbs.answers.answer import extended
from haclusterd.verbs.answers.cluster import LongStop, PublishedWatchdog, Timer, Timers
from haclusterd.verbs.answers.configuration import Names, State
from haclusterd.verbs.answers.node import ClusterMember, Members
from haclusterd.verbs.arguments import Arguments

VERSIONS_NAMED = 50


def members(context: Context, _arguments: Arguments) -> Outcome[Members]:
    """Answer who belongs to the cluster and who is heard (schema `haclusterd.members/1`)."""
    listed = tuple(_member(context, member) for _, member in sorted(context.cib.members.items()))
    return Outcome(
        answer=Members(
            now=context.now,
            cluster=context.cib.cluster_name,
            uuid=context.cib.cluster_uuid,
            answered_by=None if context.live is None else context.live.node,
            leader=None if context.live is None else context.live.leader,
            lease_remaining_ms=None if context.live is None else context.live.lease_remaining_ms,
            members=listed,
        )
    )


def _member(context: Context, member: Member) -> ClusterMember:
    live = context.live
    heard = HeardFrom(None) if live is None else live.heard.get(member.name, HeardFrom(None))
    return extended(
        ClusterMember,
        node_answer(context, member.name),
        addresses=tuple(f"{host}:{port}" for host, port in member.addresses),
        wants_vote=member.wants_vote,
        is_connected=None if live is None else member.name in live.connected_voters,
        round_trip_ms=heard.round_trip_ms,
    )


def timers(context: Context, _arguments: Arguments) -> Outcome[Timers]:
    """Answer every timer that follows from node-timeout and brain-timeout (schema `haclusterd.timing/1`)."""
    properties = ClusterProperties(context.cib.in_force)
    derived = timing.derive(properties.duration_ms("node-timeout"), properties.duration_ms("brain-timeout"))
    rows = tuple(
        Timer(name=name, value_ms=value_ms, is_set=name in ("node-timeout", "brain-timeout"), meaning=meaning)
        for name, value_ms, meaning in _rows(derived)
    )
    return Outcome(
        answer=Timers(
            timers=rows,
            watchdogs=_watchdogs(context.cib, derived),
            long_stops=_long_stops(context.cib, context.now),
        )
    )


def _watchdogs(cib: Cib, derived: timing.Timing) -> tuple[PublishedWatchdog, ...]:
    """Return each published device, and how long survivors wait for it."""
    is_counted_on = ClusterProperties(cib.in_force).boolean("watchdog-fencing")
    rows: list[PublishedWatchdog] = []
    for name, status in sorted(cib.status.nodes.items()):
        device = status.watchdog
        if device is not None:
            lease_ms = max(derived.lease_ms, status.longest_lease_ms)
            rows.append(PublishedWatchdog(
                node=name,
                device=device.device,
                identity=device.identity,
                timeout_ms=device.timeout_ms,
                weakness=device.weakness,
                wait_ms=timing.watchdog_wait_ms(lease_ms, device.timeout_ms),
                is_counted_on=is_counted_on,
            ))
    return tuple(rows)


def _long_stops(cib: Cib, now: WallTime) -> tuple[LongStop, ...]:
    """Return the resources whose stop may take longer than a watchdog permits once the lease has ended."""
    timeouts = [status.watchdog.timeout_ms for status in cib.status.nodes.values() if status.watchdog is not None]
    if not timeouts:
        return ()
    fits_ms = longest_stop_ms(min(timeouts))
    stops = [
        (primitive.id, timeout_of(ActionName.STOP, cib.in_force, primitive.id, now))
        for primitive in cib.configuration.primitives()
        if primitive.agent.standard != "stonith"
    ]
    return tuple(
        LongStop(resource=resource, stop_timeout_ms=timeout_ms, fits_ms=fits_ms)
        for resource, timeout_ms in stops
        if timeout_ms > fits_ms
    )


def _rows(derived: timing.Timing) -> tuple[tuple[str, int, str], ...]:
    return (
        ("node-timeout", derived.node_timeout_ms, "a host that was not heard for so long is lost"),
        ("brain-timeout", derived.brain_timeout_ms, "a heard host whose daemon was away for so long is lost"),
        ("heartbeat", derived.heartbeat_ms, "between two heartbeats on each link"),
        ("lease", derived.lease_ms, "how long a node without echoes may continue"),
        ("stall", derived.stall_ms, "after an own standstill of more, silence is counted from now"),
        ("round trip, longest", timing.longest_round_trip_ms(derived), "on a slower network the lease would not hold"),
        ("election, shortest", derived.election_min_ms, "a Raft follower that heard no leader for so long campaigns"),
        ("election, longest", derived.election_max_ms, "the upper end of the same random choice"),
        ("append", derived.append_ms, "between two heartbeats of the Raft leader"),
        ("fallback", derived.fallback_ms, "a leader without answers of a majority steps down"),
        ("one-way", derived.one_way_ms, "a node heard by others but not by the DC is decided upon"),
        ("unseen wait", derived.unseen_wait_ms, "a member not seen since the cluster formed is fenced"),
    )


def names(context: Context, arguments: Arguments) -> Outcome[Names]:
    """Answer what can be typed: names for completion (schema `haclusterd.names/1`)."""
    configuration = context.cib.configuration
    kind = arguments.word("kind")
    versions = context.versions.listed() if kind == "version" and context.versions is not None else ()
    transitions = newest_transitions(context.past) if kind == "transition" and context.past is not None else ()
    return Outcome(
        answer=Names(
            version=tuple(str(each.number) for each in versions[-VERSIONS_NAMED:]),
            transition=tuple(transitions),
            node=tuple(node_names(context.cib)),
            resource=tuple(configuration.resources),
            object=tuple(ids_of(configuration)),
            agent=tuple(sorted(context.agents or ())),
            ticket=tuple(ticket_names(context)),
            device=device_names(context.cib),
        )
    )


def export(context: Context, arguments: Arguments) -> Outcome[State]:
    """Answer the whole state, of now or then, as a text that `--cib-file` reads (schema `haclusterd.state/1`)."""
    at = moment_of(context, "at", arguments.word("at"))
    then = replayed(context, at) if isinstance(at, int) else None
    if isinstance(at, ReportItem) or isinstance(then, ReportItem):
        return refusal(*(each for each in (at, then) if isinstance(each, ReportItem)))
    cib, reports = (context.cib, ()) if then is None else (then.cib, then.reports)
    return Outcome(reports, answer=State(text=encode_cib(cib).decode()))


VERBS = (
    carry_out_by("cluster.names", names, answers(Names)),
    carry_out_by("cluster.export", export, answers(State)),
    carry_out_by("cluster.members", members, answers(Members)),
    carry_out_by("cluster.timing", timers, answers(Timers)),
)
