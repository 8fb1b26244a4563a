"""`crm status`: everything a person looks at first, as data."""

from haclusterd.cib.derived.wishes import node_flag
from haclusterd.commands.context import Context, HeardFrom
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.status import fencing_cover
from haclusterd.commands.status.devices import claimable, usable
from haclusterd.commands.status.headlines import Headline, headlines, missing_voters, reaches_majority
from haclusterd.commands.status.node_health import votes
from haclusterd.commands.status.overview import Overview, overview_of
from haclusterd.commands.status.resource_state import Failure, Instance, meta_flag
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model import loop_stalls
from haclusterd.model.cluster import Cib, Member, NodeState, NodeStatus, TicketState
from haclusterd.model.configuration import Group, Location, Primitive, Resource, TicketConstraint, contained
from haclusterd.model.fencing import FenceOrder, FencingRecord
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.orders import Order
from haclusterd.model.scores import render as render_score
from haclusterd.scheduler.model.lifetimes import BAN, end_of, moves, node_of, score_of
from haclusterd.verbs.answers.answer import extended
from haclusterd.verbs.answers.node import GpusOfNode, Node
from haclusterd.verbs.answers.status import (
    ConfigurationVersion,
    DeviceOfNode,
    FencingInShort,
    LoopStall,
    Move,
    OpenFenceOrder,
    OpenOrder,
    Quorum,
    RecentFencing,
    ShownFailure,
    ShownHeadline,
    ShownInstance,
    ShownResource,
    Status,
    TicketInShort,
    TransitionProgress,
    Verdict,
)
from haclusterd.verbs.arguments import Arguments

RECENT_FENCING = 5
RECENT_FENCING_MS = 7 * 86_400_000


def status(context: Context, arguments: Arguments) -> Outcome[Status | Verdict]:
    """Answer the state of the whole cluster; with `simple`, the verdict as a line and an exit status for monitoring."""
    if arguments.word("form") != "simple":
        return Outcome(answer=whole_status(context))
    first = headlines(context, overview_of(context))[0]
    return Outcome(answer=extended(Verdict, _headline(first)), exit_status=int(first.gravity))


def whole_status(context: Context) -> Status:
    """Return the state of the whole cluster (schema `haclusterd.status/1`). Times are epoch ms."""
    cib = context.cib
    overview = overview_of(context)
    found = headlines(context, overview)
    live = context.live
    return Status(
        cluster=cib.cluster_name,
        now=context.now,
        verdict=found[0].verdict,
        gravity=int(found[0].gravity),
        headlines=tuple(_headline(each) for each in found),
        answered_by=None if live is None else live.node,
        started_at=None if live is None else live.started_at,
        stale_ms=0 if live is None else live.stale_ms,
        index=cib.index,
        dc=acting_dc(context),
        leader=None if live is None else live.leader,
        term=_term(context),
        quorum=_quorum(context),
        configuration=ConfigurationVersion(
            cib.version.epoch, cib.version.author, cib.version.at, cib.version.reason
        ),
        maintenance=overview.properties.boolean("maintenance-mode"),
        transition=_transition(context),
        nodes=tuple(node_answer(context, name) for name in sorted(cib.members)),
        resources=_resources(overview),
        tickets=_tickets(cib),
        orders=tuple(
            _order(order) for _, node in sorted(cib.status.nodes.items()) for _, order in sorted(node.orders.items())
        ),
        moves=tuple(map(_move, moves(cib.configuration))),
        failures=tuple(_failure(each) for each in overview.failures),
        fencing=_fencing(context),
        warnings=() if live is None else (*live.warnings, *live.plan_warnings),
        holds=() if live is None else tuple(_loop_stall(each) for each in live.loop_stalls),
    )


def acting_dc(context: Context) -> NodeName | None:
    """Return who controls the cluster now: the leader, once it has taken office; offline, who last did."""
    controller = context.cib.status.controller
    if controller is None or (context.live is not None and context.live.leader != controller.node):
        return None
    return controller.node


def _headline(headline: Headline) -> ShownHeadline:
    return ShownHeadline(
        gravity=int(headline.gravity), verdict=headline.verdict, text=headline.text,
        remedy=headline.remedy,
    )  # fmt: skip


def _term(context: Context) -> int:
    if context.live is not None:
        return context.live.term
    controller = context.cib.status.controller
    return 0 if controller is None else controller.term


def _quorum(context: Context) -> Quorum:
    voters = context.cib.voters()
    if context.live is None:
        return Quorum(known=False, has=False, connected=0, voters=len(voters), missing=())
    missing = missing_voters(context.cib, context.live)
    return Quorum(
        known=True,
        has=context.live.has_quorum or reaches_majority(context.cib, context.live),
        connected=len(voters) - len(missing),
        voters=len(voters),
        missing=tuple(missing),
    )


def _transition(context: Context) -> TransitionProgress | None:
    progress = None if context.live is None else context.live.transition
    return None if progress is None else TransitionProgress(progress.number, progress.done, progress.total)


def node_answer(context: Context, name: NodeName) -> Node:
    """Return how a node is, as the CIB and the answering daemon have it."""
    cib, live = context.cib, context.live
    member = cib.members.get(name, Member(name, (), is_voter=False))
    known = cib.status.nodes.get(name, NodeStatus(name))
    heard = HeardFrom(None) if live is None else live.heard.get(name, HeardFrom(None))
    return Node(
        name=name,
        is_member=name in cib.members,
        state=str(known.state),
        since=known.since,
        detail=known.detail,
        is_local=live is not None and live.node == name,
        is_dc=acting_dc(context) == name,
        is_voter=member.is_voter,
        is_witness=member.is_witness,
        is_standby=node_flag(cib, name, "standby"),
        is_maintenance=node_flag(cib, name, "maintenance"),
        is_leaving=known.is_leaving,
        is_being_fenced=any(order.target == name for order in cib.status.fence_orders.values()),
        held_join="" if live is None else live.held_joins.get(name, ""),
        heard_age_ms=heard.age_ms,
        brain=heard.brain,
        brain_since_ms=heard.brain_since_ms,
        unverified=len(known.unverified) if known.state is NodeState.ONLINE else 0,
        unhealthy=tuple(votes(cib, name, "yellow", "red")),
        gpus=_gpus(cib, name),
    )


def _gpus(cib: Cib, name: NodeName) -> GpusOfNode | None:
    known = cib.status.devices.get(name)
    if known is None or not known.devices:
        return None
    shown = claimable(known)
    return GpusOfNode(usable(known), len(shown), sum(bool(known.claims.get(device.id)) for device in shown))


def _tickets(cib: Cib) -> tuple[TicketInShort, ...]:
    """Return the tickets that are known or needed."""
    needed = {each.ticket for each in cib.configuration.constraints.values() if isinstance(each, TicketConstraint)}
    found = {name: cib.status.tickets.get(name, TicketState(name)) for name in sorted({*needed, *cib.status.tickets})}
    return tuple(
        TicketInShort(name, state.is_granted, state.is_standby, is_needed=name in needed)
        for name, state in found.items()
    )


def _resources(overview: Overview) -> tuple[ShownResource, ...]:
    configuration = overview.cib.configuration
    parents = configuration.parents()
    shown = [resource for resource in configuration.resources.values() if resource.id not in parents]
    return tuple(resource_answer(overview, resource) for resource in shown)


def resource_answer(overview: Overview, resource: Resource) -> ShownResource:
    """Return how a resource is, what contains others with those."""
    if isinstance(resource, Primitive):
        return _primitive(overview, resource)
    known = overview.cib.configuration.resources
    return ShownResource(
        id=resource.id,
        kind=type(resource).__name__.lower(),
        agent="",
        is_promotable=not isinstance(resource, Group) and overview.is_promotable(resource.id),
        members=tuple(resource_answer(overview, known[child]) for child in contained(resource) if child in known),
    )


def _primitive(overview: Overview, primitive: Primitive) -> ShownResource:
    meta = overview.meta(primitive)
    found = overview.instances(primitive.id)
    has_roles = overview.is_promotable(primitive.id)
    return ShownResource(
        id=primitive.id,
        kind="fence device" if primitive.agent.standard == "stonith" else "primitive",
        agent=str(primitive.agent),
        is_cloned=overview.most_copies(primitive.id) != 1,
        has_roles=has_roles,
        stopped_on=_stopped_on(overview, primitive, [each.node for each in found]),
        instances=tuple(_shown_instance(each, has_roles=has_roles) for each in found),
        is_managed=meta_flag(meta, "is-managed"),
        is_maintenance=meta_flag(meta, "maintenance"),
        not_wanted=overview.not_wanted(primitive),
        why_stopped="" if found else why_stopped(overview, primitive.id),
    )


def _stopped_on(overview: Overview, primitive: Primitive, running: list[NodeName]) -> tuple[NodeName, ...]:
    """Return the nodes where an instance of a clone is missing; none when as many run as may."""
    if len(running) >= overview.most_copies(primitive.id) or not running:
        return ()
    return tuple(name for name in overview.online if name not in running and not overview.is_witness(name))


def _shown_instance(instance: Instance, *, has_roles: bool) -> ShownInstance:
    role = "Promoted" if instance.is_promoted else "Unpromoted" if has_roles else "Started"
    return ShownInstance(node=instance.node, state=str(instance.state), role=role, detail=instance.detail)


def why_stopped(overview: Overview, resource: ResourceId) -> str:
    """Say in short what is known of a primitive that runs nowhere; `resource why` says it in full."""
    if resource in overview.stopped_alone:
        return f"{overview.stopped_alone[resource]} has no lease and stopped it"
    if not overview.online:
        return "no node is online"
    if all(node_flag(overview.cib, name, "standby") for name in overview.online):
        return "every node is on standby"
    failed = overview.failed_on(resource)
    return f"failed on {', '.join(failed)}" if failed else ""


def _order(order: Order) -> OpenOrder:
    return OpenOrder(
        node=order.node, resource=order.resource, action=str(order.action),
        interval_ms=order.interval_ms, reason=order.reason, issued_at=order.issued_at,
        is_voided=order.is_voided, is_probe=order.is_probe,
    )  # fmt: skip


def _loop_stall(stall: loop_stalls.LoopStall) -> LoopStall:
    return LoopStall(
        loop=stall.loop,
        longest_ms=stall.longest_ms,
        recent_ms=stall.recent_ms,
        longest_work_ms=stall.longest_work_ms,
    )


def _move(location: Location) -> Move:
    return Move(
        id=location.id, resource=location.resource, node=node_of(location),
        score=render_score(score_of(location)), is_ban=location.id.startswith(BAN), until=end_of(location),
    )  # fmt: skip


def _failure(failure: Failure) -> ShownFailure:
    record, count = failure.record, failure.count
    operation, interval_ms = ("", 0)
    if record is not None:
        operation, interval_ms = record.operation, record.interval_ms
    elif count is not None:
        operation, interval_ms = count.operation, count.interval_ms
    return ShownFailure(
        node=failure.node,
        resource=failure.resource,
        operation=operation,
        interval_ms=interval_ms,
        count=None if count is None else render_score(count.count),
        failed_at=failure.failed_at,
        exit_code=None if record is None else int(record.exit_code),
        status=None if record is None else str(record.status),
        exit_reason="" if record is None else record.exit_reason,
    )


def _fencing(context: Context) -> FencingInShort:
    cib = context.cib
    recent = [
        record for record in cib.status.fencing_history if context.now - record.ended_at <= RECENT_FENCING_MS
    ]
    return FencingInShort(
        enabled=fencing_cover.is_enabled(cib),
        open=tuple(_fence_order(order) for _, order in sorted(cib.status.fence_orders.items())),
        recent=tuple(_fencing_record(record) for record in recent[-RECENT_FENCING:]),
        devices=_devices(cib),
    )


def _fence_order(order: FenceOrder) -> OpenFenceOrder:
    return OpenFenceOrder(
        target=order.target, action=str(order.action), device=order.device, executor=order.executor,
        state=str(order.state), attempt=order.attempt, issued_at=order.issued_at, reason=order.reason,
    )  # fmt: skip


def _fencing_record(record: FencingRecord) -> RecentFencing:
    return RecentFencing(
        target=record.target, action=str(record.action), device=record.device, executor=record.executor,
        outcome=str(record.outcome), detail=record.detail, ended_at=record.ended_at,
        reason=record.reason,
    )  # fmt: skip


def _devices(cib: Cib) -> tuple[DeviceOfNode, ...]:
    rows: list[DeviceOfNode] = []
    for name, member in sorted(cib.members.items()):
        if member.is_witness:
            continue
        for device in fencing_cover.devices_for(cib, name):
            evidence = fencing_cover.proof(cib, device, name)
            rows.append(DeviceOfNode(
                target=name,
                device=device,
                state="untested" if evidence is None else str(evidence.state),
                at=None if evidence is None else evidence.at,
                detail="" if evidence is None else evidence.detail,
            ))
    return tuple(rows)


VERBS = (carry_out_by("status", status, answers(Status, Verdict)),)
