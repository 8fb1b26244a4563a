"""The verdict on the whole cluster: the first line of `crm status`, and the lines that qualify it.

Invariant: what would keep a failover from happening is named before anything else, whether or not anything is wrong now
(safety.md §5); HEALTHY is said only when nothing is to be said: every node is heard and its daemon is there, none is
fenced again and again, one more loss leaves a quorum, nothing has failed, and nothing is left alone.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum

from haclusterd.cib.derived.wishes import node_flag
from haclusterd.commands.certificates import ending
from haclusterd.commands.context import Context, LiveView
from haclusterd.commands.status import fencing_cover
from haclusterd.commands.status.devices import troubles
from haclusterd.commands.status.node_health import votes
from haclusterd.commands.status.overview import Overview
from haclusterd.commands.status.resource_state import InstanceState, meta_flag
from haclusterd.commands.status.waits import (
    Wait,
    span,
    wait_for_correction,
    wait_for_fencing,
    wait_for_unfencing,
    wait_to_join,
)
from haclusterd.commands.verify.constraints import circles
from haclusterd.machines.fence_choice import fenced_lately
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.configuration import Primitive
from haclusterd.model.fencing import ProofState
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.records import dataclass
from haclusterd.model.watchdog import WATCHDOG
from haclusterd.reports.rendering import counted

ALERTS_SHOWN_MS = 3_600_000
MAX_NAMED = 5
"""Names in one headline."""


class Gravity(IntEnum):
    """How grave a headline is; the gravest comes first. Monitoring reads it as 0 ok, 1 warning, 2 critical."""

    FINE = 0
    WARNING = 1
    CRITICAL = 2


@dataclass(frozen=True, slots=True)
class Headline:
    """One thing that a person must know before anything else."""

    gravity: Gravity
    verdict: str
    """In capitals: what to say first."""
    text: str
    remedy: str = ""


def headlines(context: Context, overview: Overview) -> tuple[Headline, ...]:
    """Return the headlines, gravest first, in a fixed order; never empty."""
    found = [
        *_ignored_quorum(context.cib), *_control(context), *_failover(context.cib), *_degraded(context, overview),
        *_alerts(context),
    ]  # fmt: skip
    found.sort(key=lambda headline: -headline.gravity)
    return tuple(found) or (_healthy(overview),)


def _alerts(context: Context) -> Iterator[Headline]:
    """Say for an hour that recipients of alerts have missed something."""
    queue = context.cib.status.alerts
    missed = [f"{key} ({count})" for key, count in sorted(queue.dropped.items()) if count]
    if missed and context.now - queue.dropped_at < ALERTS_SHOWN_MS:
        text = f"events were dropped, because alert agents are too slow: {named(missed)}"
        yield Headline(Gravity.WARNING, "ALERTS LOST", text, "see: crm alert list")


def _healthy(overview: Overview) -> Headline:
    cib = overview.cib
    nodes = len(overview.online)
    running = sum(
        1
        for primitive in cib.configuration.primitives()
        if any(each.state is InstanceState.STARTED for each in overview.instances(primitive.id))
    )
    unproven = [name for name, member in sorted(cib.members.items())
                if not member.is_witness and not fencing_cover.is_proven(cib, name)]  # fmt: skip
    proof = f", fencing unproven for {named(unproven)}" if unproven else ", fencing proven"
    text = f"{counted(nodes, 'node')} online, {counted(running, 'resource')} running{proof}"
    return Headline(Gravity.FINE, "HEALTHY", text)


def _ignored_quorum(cib: Cib) -> Iterator[Headline]:
    """The warning that cannot be overlooked: it comes before everything else, for as long as it is so."""
    properties = ClusterProperties(cib.in_force)
    if properties.text("no-quorum-policy") != "ignore":
        return
    what = "a node that is cut off runs on"
    if not fencing_cover.is_enabled(cib):
        what += ", and what it runs is started on other nodes as well: DATA WILL BE DESTROYED"
    yield Headline(Gravity.CRITICAL, "QUORUM IGNORED", what, "crm configure property no-quorum-policy=stop")


def _control(context: Context) -> Iterator[Headline]:
    live = context.live
    if live is not None:
        yield from _no_quorum(context.cib, live)
        yield from _last_quorum(context.cib, live)
        yield from _cut_links(context.cib, live)
        for warning in live.warnings:
            yield Headline(Gravity.WARNING, "DEGRADED", f"{live.node}: {warning}")
        if live.safe_mode:
            yield Headline(Gravity.CRITICAL, "SAFE MODE", f"nothing is controlled: {live.safe_mode}",
                           live.safe_mode_remedy)  # fmt: skip
        if live.scheduler_error:
            yield Headline(Gravity.CRITICAL, "SCHEDULER FAILED", f"resources stay as they are: {live.scheduler_error}",
                           "correct the newest change of the configuration")  # fmt: skip
        if live.history_problem:
            text = f"{live.node} cannot keep its history; failover is not affected: {live.history_problem}"
            yield Headline(Gravity.WARNING, "HISTORY", text)
    yield from _no_controller(context)


def _no_controller(context: Context) -> Iterator[Headline]:
    """Say that nobody decides at the moment, where quorum is not the reason."""
    live, controller = context.live, context.cib.status.controller
    if not context.cib.members:
        return
    if live is not None and live.leader is None:
        if reaches_majority(context.cib, live):
            yield Headline(Gravity.WARNING, "NO DC", "an election is in progress")
    elif controller is None or (live is not None and live.leader != controller.node):
        who = "the leader" if live is None else live.leader
        yield Headline(Gravity.WARNING, "NO DC", f"{who} does not act as DC yet")


def reaches_majority(cib: Cib, live: LiveView) -> bool:
    """Tell whether the answering daemon reaches enough voters for a quorum, with or without a leader."""
    voters = cib.voters()
    return 2 * (len(voters) - len(missing_voters(cib, live))) > len(voters)


def missing_voters(cib: Cib, live: LiveView) -> tuple[NodeName, ...]:
    """Return the voters that the answering daemon does not reach."""
    return tuple(name for name in cib.voters() if name not in live.connected_voters)


def _no_quorum(cib: Cib, live: LiveView) -> Iterator[Headline]:
    voters = cib.voters()
    if live.has_quorum or not voters or (live.leader is None and reaches_majority(cib, live)):
        return
    missing = missing_voters(cib, live)
    where = f"{live.node} reaches {len(voters) - len(missing)} of {len(voters)} voters"
    names = f"; missing: {named(missing)}" if missing else ""
    remedy = "bring a missing voter back; if gone for good: crm cluster recover"
    if len(voters) == 2:
        remedy = "bring the missing voter back; if it is gone for good, on this node: crm cluster recover"
    yield Headline(Gravity.CRITICAL, "NO QUORUM", f"{where}{names}", remedy)


def _last_quorum(cib: Cib, live: LiveView) -> Iterator[Headline]:
    """Say that there is a quorum, and that it ends with one more voter; a cluster of two voters has its own line."""
    voters, missing = cib.voters(), missing_voters(cib, live)
    left = len(voters) - len(missing)
    if missing and reaches_majority(cib, live) and 2 * (left - 1) <= len(voters):
        text = f"{left} of {len(voters)} voters are there, and one more loss ends the quorum; missing: {named(missing)}"
        yield Headline(Gravity.WARNING, "DEGRADED", text, "bring a missing voter back")


def _cut_links(cib: Cib, live: LiveView) -> Iterator[Headline]:
    """Name the nodes that are heard here and that too few voters can echo, which have no lease; else who is cut from
    whom, though all may be heard here."""
    voters, limit_ms = cib.voters(), _node_timeout_ms(cib)
    online = [name for name, status in sorted(cib.status.nodes.items())
              if status.state is NodeState.ONLINE and name in cib.members]  # fmt: skip
    cut = {
        name: [other for other in online if other != name and not _are_linked(live, name, other, limit_ms)]
        for name in online
    }
    barred = []
    for name in online:
        away = [voter for voter in voters if voter != name and (voter in cut[name] or voter not in online)]
        linked = len(voters) - len(away) - (name not in voters)
        is_heard = _hears(live, live.node, name, limit_ms)
        if cut[name] and 2 * linked <= len(voters) and name != live.node and is_heard:
            barred.append(name)
            text = f"{name} is cut from {named(cut[name])}: {linked} of {len(voters)} voters can echo it, so it has" \
                   " no lease, and nothing runs there"
            yield Headline(Gravity.CRITICAL, "DEGRADED", text, f"check the network between {name} and {cut[name][0]}")
    pairs = [f"{name} and {other}" for name in online for other in cut[name]
             if name < other and live.node not in (name, other) and not {name, other} & set(barred)]  # fmt: skip
    if pairs:
        text = f"{live.node} hears all nodes, but they do not all hear each other; cut: {named(pairs)}"
        yield Headline(Gravity.WARNING, "DEGRADED", text, "check the network between them")


def cut_from_here(cib: Cib, live: LiveView) -> list[NodeName]:
    """Return the nodes that are online and that do not hear this one, or are not heard by it, on any link."""
    limit_ms = _node_timeout_ms(cib)
    return [name for name, status in sorted(cib.status.nodes.items())
            if status.state is NodeState.ONLINE and name in cib.members and name != live.node
            and not _are_linked(live, live.node, name, limit_ms)]  # fmt: skip


def _are_linked(live: LiveView, one: NodeName, other: NodeName, limit_ms: int) -> bool:
    """Tell whether two nodes hear each other, as far as is known here; who says nothing of others is not judged.

    An age that another node has reported is up to three heartbeats old where all is well, a third of node-timeout.
    """
    return _hears(live, one, other, limit_ms) and _hears(live, other, one, limit_ms)


def _hears(live: LiveView, listener: NodeName, speaker: NodeName, limit_ms: int) -> bool:
    if listener == live.node:
        heard = live.heard.get(speaker)
        return heard is None or heard.age_ms is None or heard.age_ms < limit_ms
    known = live.heard.get(listener)
    if known is None or known.age_ms is None or known.age_ms >= limit_ms or not known.hears:
        return True
    return known.hears.get(speaker, limit_ms) < limit_ms


def _node_timeout_ms(cib: Cib) -> int:
    return ClusterProperties(cib.in_force).duration_ms("node-timeout")


def _failover(cib: Cib) -> Iterator[Headline]:
    """What keeps a failover from happening even though all is well."""
    voters = cib.voters()
    if not voters:
        yield Headline(Gravity.WARNING, "NOT FORMED", "no cluster is formed yet")
        return
    if len(voters) == 1:
        yield Headline(Gravity.WARNING, "NO FAILOVER", "there is only one voter", "add nodes: crm cluster invite")
    if len(voters) == 2:
        yield Headline(Gravity.WARNING, "NO AUTOMATIC FAILOVER", "two voters, no witness", "crm cluster witness")
    if not fencing_cover.is_enabled(cib):
        yield Headline(Gravity.WARNING, "NO FAILOVER", "fencing is disabled",
                       "crm configure property fencing-enabled=true")  # fmt: skip
        return
    bare = fencing_cover.nodes_without_device(cib)
    if bare:
        names = named(bare)
        yield Headline(Gravity.WARNING, f"NO FAILOVER for {names}", "no fencing device",
                       f"configure a fence device for {names}")  # fmt: skip
    weak = fencing_cover.weak_watchdogs(cib)
    if weak:
        why = "; ".join(f"{name} has {text}" for name, text in weak.items())
        yield Headline(Gravity.WARNING, f"WEAK WATCHDOG on {named(tuple(weak))}", why, "configure a fence device")
    for name, device, proof in fencing_cover.nodes_that_devices_fail(cib):
        detail = f": {proof.detail}" if proof.detail else ""
        yield Headline(Gravity.WARNING, f"NO FAILOVER for {name}", f"fence device {device} {_PROOF_WORDS[proof.state]}"
                       f"{detail}", f"repair the device, then: crm fencing test {name}")  # fmt: skip


_PROOF_WORDS = {ProofState.FAILING: "is failing", ProofState.LIED: "has lied"}


def _degraded(context: Context, overview: Overview) -> Iterator[Headline]:
    cib = context.cib
    for name, status in sorted(cib.status.nodes.items()):
        yield from _node(context, status)
        red = votes(cib, name, "red") if status.state is NodeState.ONLINE else ()
        if red:
            yield Headline(Gravity.WARNING, "DEGRADED", f"{name} is unhealthy: {', '.join(red)}")
        yield from _attended(context, status)
    for name, how_soon in ending(context):
        yield Headline(Gravity.WARNING, "DEGRADED", f"the certificate of {name} {how_soon}",
                       f"crm cluster certificates renew {name}")  # fmt: skip
    if context.live is not None:
        for node, why in sorted(context.live.held_joins.items()):
            yield Headline(Gravity.WARNING, "DEGRADED", f"{node} is not let in: {why}")
    for primitive in cib.configuration.primitives():
        yield from _resource(overview, primitive, context.now)
    for deleted in overview.deleted():
        yield from _deleted(overview, deleted, context.now)
    yield from _not_running(overview)
    yield from _not_promoted(overview)
    yield from _restarts(cib, context.now)
    yield from _bad_devices(cib)
    for text, remedy in troubles(cib):
        yield Headline(Gravity.WARNING, "DEGRADED", text, remedy)
    yield from _failures(overview, context.now)
    yield from _left_alone(overview)
    if overview.properties.boolean("maintenance-mode"):
        yield Headline(Gravity.WARNING, "MAINTENANCE", "all resources are left alone",
                       "crm configure property maintenance-mode=false")  # fmt: skip


def _restarts(cib: Cib, now: WallTime) -> Iterator[Headline]:
    """Say what is kept stopped for a restart, since when and for how long at most."""
    for name, restart in sorted(cib.status.restarts.items()):
        by = f" by {restart.author}" if restart.author else ""
        text = f"{name} is being restarted{by} for {span(now - restart.at)}: it runs again when it has stopped" \
               f" everywhere, or after {span(restart.limit_ms)}"
        yield Headline(Gravity.WARNING, "RESTARTING", text, f"crm resource why {name}")


def _bad_devices(cib: Cib) -> Iterator[Headline]:
    reported = {f"{device}/{name}" for name, device, _ in fencing_cover.nodes_that_devices_fail(cib)}
    for key, proof in sorted(cib.status.proofs.items()):
        device, _, target = key.partition("/")
        is_configured = device == WATCHDOG or device in cib.configuration.resources
        if proof.state in (ProofState.FAILING, ProofState.LIED) and is_configured and key not in reported:
            detail = f" ({proof.detail})" if proof.detail else ""
            yield Headline(Gravity.WARNING, "DEGRADED", f"fence device {device} for {target}: {proof.state}{detail}")


_NODE_WORDS = {
    NodeState.LOST: "is lost",
    NodeState.FENCED: "was fenced and is not back",
    NodeState.LEFT: "has left",
    NodeState.UNSEEN: "was never seen",
}


def _node(context: Context, status: NodeStatus) -> Iterator[Headline]:
    words = _NODE_WORDS.get(status.state)
    if status.name not in context.cib.members:
        return
    held = wait_to_join(context.cib, status, context.now)
    if held is not None:
        yield Headline(Gravity.WARNING, "DEGRADED", f"{status.name} {held.text}", held.remedy)
    if status.state is NodeState.ONLINE:
        waiting = wait_for_unfencing(context.cib, status, context.now)
        if waiting is not None:
            yield Headline(Gravity.WARNING, "DEGRADED", f"{status.name}: {waiting.text}", waiting.remedy)
    elif status.has_detached:
        yield Headline(Gravity.WARNING, "DEGRADED", f"{status.name} is detached: {status.detail}",
                       f"start haclusterd on {status.name}; it is fenced when something there is managed again")
    elif status.state is NodeState.LOST:
        wait = wait_for_fencing(context.cib, status, context.now) or Wait("")
        yield Headline(Gravity.CRITICAL, "DEGRADED", f"{status.name} {words} {wait.text}".rstrip(), wait.remedy)
    elif words is not None:
        yield Headline(Gravity.WARNING, "DEGRADED", f"{status.name} {words}")


_BRAIN_WORDS = {"hung": "does not answer, for {}", "restarting": "has been down for {}, and is expected to restart"}


def _attended(context: Context, status: NodeStatus) -> Iterator[Headline]:
    """Say that nobody attends to a node that counts as online, or that it is fenced again and again."""
    cib, name = context.cib, status.name
    if name not in cib.members:
        return
    heard = context.live.heard.get(name) if context.live is not None else None
    silent_ms = (heard.age_ms or 0) if heard is not None else 0
    if status.state is NodeState.ONLINE and heard is not None and heard.brain in _BRAIN_WORDS:
        text = f"the daemon of {name} " + _BRAIN_WORDS[heard.brain].format(span(heard.brain_since_ms))
        yield Headline(Gravity.WARNING, "DEGRADED", text, f"on {name}: systemctl status haclusterd")
    elif status.state is NodeState.ONLINE and 2 * silent_ms >= _node_timeout_ms(cib):
        yield Headline(Gravity.WARNING, "DEGRADED", f"{name} has not been heard for {span(silent_ms)}")
    fenced = fenced_lately(cib, name, context.now)
    if len(fenced) > 1:
        ago = span(context.now - fenced[-1].ended_at)
        text = f"{name} was fenced {len(fenced)} times, last {ago} ago: {fenced[-1].reason}"
        yield Headline(Gravity.WARNING, "DEGRADED", text, f"crm fencing history {name}")


def _failures(overview: Overview, now: WallTime) -> Iterator[Headline]:
    """Name what has failed and not been forgotten since, also where it runs again; the newest with its reason."""
    found = overview.failures
    if not found:
        return
    newest = max(found, key=lambda each: each.failed_at)
    record, count = newest.record, newest.count
    operation = record.operation if record is not None else count.operation if count is not None else "an operation"
    reason = f": {record.exit_reason}" if record is not None and record.exit_reason else ""
    text = f"{operation} of {newest.resource} failed on {newest.node} {span(now - newest.failed_at)} ago{reason}"
    if len(found) > 1:
        text += f"; and {counted(len(found) - 1, 'other failure')}"
    remedy = f"when that is fixed: crm resource cleanup {newest.resource}"
    yield Headline(Gravity.WARNING, "FAILURES", text, remedy)


def _left_alone(overview: Overview) -> Iterator[Headline]:
    """Name what nobody would start again, because somebody wants it so."""
    nodes = [name for name in overview.online if node_flag(overview.cib, name, "maintenance")]
    if nodes:
        yield Headline(Gravity.WARNING, "MAINTENANCE", f"everything on {named(nodes)} is left alone",
                       f"crm node ready {' '.join(nodes)}")  # fmt: skip
    alone = [each.id for each in overview.cib.configuration.primitives() if _is_left_alone(overview, each)]
    if alone and not overview.properties.boolean("maintenance-mode"):
        text = f"{named(alone)} {'is' if len(alone) == 1 else 'are'} left alone"
        remedy = f"crm resource manage {alone[0]}, or crm resource maintenance {alone[0]} off"
        yield Headline(Gravity.WARNING, "MAINTENANCE", text, remedy)


def _is_left_alone(overview: Overview, primitive: Primitive) -> bool:
    meta = overview.meta(primitive)
    return not meta_flag(meta, "is-managed") or meta_flag(meta, "maintenance")


_IN_MOTION = {
    InstanceState.STARTING: "starting",
    InstanceState.STOPPING: "stopping",
    InstanceState.UNVERIFIED: "being looked for",
}


def _resource(overview: Overview, primitive: Primitive, now: WallTime) -> Iterator[Headline]:
    found = overview.instances(primitive.id)
    reasons: dict[tuple[str, Wait], list[NodeName]] = {}
    for each in found:
        if each.state in (InstanceState.FAILED, InstanceState.BLOCKED):
            wait = wait_for_correction(overview.cib, primitive.id, each.node, now) or Wait("")
            reasons.setdefault((each.detail, wait), []).append(each.node)
    for (detail, wait), nodes in reasons.items():
        text = f"{primitive.id} has failed on {named(list(dict.fromkeys(nodes)))}: {detail}"
        yield Headline(Gravity.CRITICAL, "DEGRADED", f"{text}{wait.text}", wait.remedy)
    in_motion = [each for each in found if each.state in _IN_MOTION]
    if in_motion and len(in_motion) == len(found) and _should_run(overview, primitive):
        text = f"{primitive.id} is {_IN_MOTION[in_motion[0].state]} on {in_motion[0].node}"
        yield Headline(Gravity.WARNING, "DEGRADED", text)
    if len([each for each in found if each.state is InstanceState.STARTED]) > overview.most_copies(primitive.id):
        names = named([each.node for each in found])
        yield Headline(Gravity.CRITICAL, "DEGRADED", f"{primitive.id} is active on several nodes: {names}")


def _deleted(overview: Overview, name: ResourceId, now: WallTime) -> Iterator[Headline]:
    """Yield where a resource that was deleted runs nevertheless: no list of resources has it."""
    for each in overview.instances(name):
        if each.state in (InstanceState.FAILED, InstanceState.BLOCKED):
            text = f"{name} was deleted, and has failed on {each.node}: {each.detail}"
            wait = wait_for_correction(overview.cib, name, each.node, now) or Wait("", f"crm resource cleanup {name}")
            yield Headline(Gravity.CRITICAL, "DEGRADED", f"{text}{wait.text}", wait.remedy)
        elif each.state is InstanceState.STARTED and not overview.properties.boolean("stop-removed-resources"):
            text = f"{name} was deleted, and runs on {each.node}: stop-removed-resources is false"
            yield Headline(Gravity.WARNING, "DEGRADED", text)


def _not_running(overview: Overview) -> Iterator[Headline]:
    """Name what should run and does not; a fence device that does not run can still be used."""
    down = [
        primitive.id
        for primitive in overview.cib.configuration.primitives()
        if primitive.agent.standard != "stonith"
        and not overview.instances(primitive.id)
        and _should_run(overview, primitive)
    ]
    if down:
        words = "is not running" if len(down) == 1 else "are not running"
        yield Headline(Gravity.CRITICAL, "DEGRADED", f"{named(down)} {words}", f"crm resource why {down[0]}")
        for circle in circles(overview.cib.configuration):
            if not circle.is_of_stops and not circle.resources.isdisjoint(down):
                text = f"orders form a cycle, and what they name waits for ever: {circle.shown}"
                remedy = f"remove one of: {', '.join(circle.constraints)}"
                yield Headline(Gravity.CRITICAL, "DEGRADED", text, remedy)


def _not_promoted(overview: Overview) -> Iterator[Headline]:
    """Name what runs and of which nothing is promoted, though something should be."""
    for primitive in overview.cib.configuration.primitives():
        found = overview.instances(primitive.id)
        is_settled = bool(found) and all(each.state is InstanceState.STARTED for each in found)
        if not is_settled or not overview.is_promotable(primitive.id) or any(each.is_promoted for each in found):
            continue
        if overview.meta(primitive).get("target-role", "").lower() not in ("unpromoted", "slave", "stopped"):
            yield Headline(Gravity.WARNING, "DEGRADED", f"no instance of {primitive.id} is promoted",
                           f"crm resource why {primitive.id}")  # fmt: skip


def _should_run(overview: Overview, primitive: Primitive) -> bool:
    return not overview.not_wanted(primitive) and meta_flag(overview.meta(primitive), "is-managed")


def named(names: Sequence[str]) -> str:
    """Name some things, and count the rest."""
    if len(names) <= MAX_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: MAX_NAMED - 1])} and {len(names) - MAX_NAMED + 1} more"
