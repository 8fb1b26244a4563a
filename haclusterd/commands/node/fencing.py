"""Verbs about fencing: what can fence whom, how far that is proven, what happened, and a person's word for a node.

A person's word (`confirm`) ends what fencing cannot: it is taken for a lost node only, and never while that is heard.
"""

from collections.abc import Iterator
from typing import Never

from haclusterd.cib.commands import Fenced, ForgetFencings
from haclusterd.commands.context import Context, LiveView
from haclusterd.commands.names import find_node, node_names
from haclusterd.commands.node import node
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.planning.injection import node_down
from haclusterd.commands.planning.planning import describe_action, plan, real_actions, standing
from haclusterd.commands.status import fencing_cover
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.machines.fencer import delay_bounds_ms
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.configuration import Primitive, effective
from haclusterd.model.fencing import FenceOrder, FenceOutcome, FencingRecord, ProofState
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.templates import expanded
from haclusterd.model.watchdog import WATCHDOG
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.scheduler.unpack.fence_executors import able_to_use
from haclusterd.scheduler.unpack.fencing_capability import unfencing_devices
from haclusterd.verbs.answers.answer import extended
from haclusterd.verbs.answers.fencing import (
    ConfiguredLevel,
    Cover,
    DelayedDevice,
    DeviceProof,
    EndedFencing,
    Fencing,
    FencingConfirmed,
    FencingHistory,
    FencingPlan,
    FencingStep,
    FencingTopology,
    NodeLevels,
    OpenFencing,
)
from haclusterd.verbs.answers.node import Fence
from haclusterd.verbs.arguments import Arguments


def show(context: Context, arguments: Arguments) -> Outcome[Fencing]:
    """Answer for each node what can fence it, and how far that is proven (schema `haclusterd.fencing/1`)."""
    nodes = _nodes(context, arguments)
    if isinstance(nodes, ReportItem):
        return refusal(nodes)
    rows = tuple(_cover(context.cib, name) for name in nodes)
    is_enabled = fencing_cover.is_enabled(context.cib)
    return Outcome(answer=Fencing(is_enabled=is_enabled, nodes=rows, now=context.now))


def _nodes(context: Context, arguments: Arguments) -> tuple[NodeName, ...] | ReportItem:
    if arguments.word("node"):
        found = find_node(context, arguments.word("node"))
        return found if isinstance(found, ReportItem) else (found,)
    cib = context.cib
    return tuple(name for name in node_names(cib) if name in cib.members and not cib.members[name].is_witness)


def _cover(cib: Cib, name: NodeName) -> Cover:
    levels = fencing_cover.levels_of(cib, name)
    return Cover(
        node=name,
        is_covered=bool(levels),
        levels=tuple(tuple(_proof(cib, device, name) for device in level) for level in levels),
        unfencing=tuple(_proof(cib, device, name) for device in unfencing_devices(cib.in_force, name)),
        is_unfenced=fencing_cover.is_unfenced(cib, name),
    )


def _proof(cib: Cib, device: ResourceId, name: NodeName) -> DeviceProof:
    found = fencing_cover.proof(cib, device, name)
    if device == WATCHDOG and found is None:
        watchdog = cib.status.nodes[name].watchdog
        assert watchdog is not None
        weakness = f"; weak: {watchdog.weakness}" if watchdog.weakness else ""
        detail = f"{watchdog.device}, {watchdog.timeout_ms} ms{weakness}"
        return DeviceProof(device=device, proof=str(ProofState.UNTESTED), at=None, detail=detail)
    return DeviceProof(
        device=device,
        proof=str(found.state if found is not None else ProofState.UNTESTED),
        at=found.at if found is not None else None,
        detail=found.detail if found is not None else "",
    )


def history(context: Context, arguments: Arguments) -> Outcome[FencingHistory]:
    """Answer the remembered fencings, newest last, and those under way (schema `haclusterd.fencing_history/1`)."""
    nodes = _nodes(context, arguments) if arguments.word("node") else ()
    if isinstance(nodes, ReportItem):
        return refusal(nodes)
    status = context.cib.status
    records = tuple(_record(each) for each in status.fencing_history if not nodes or each.target in nodes)
    open_orders = tuple(
        _under_way(order)
        for _, order in sorted(status.fence_orders.items())
        if not nodes or order.target in nodes
    )
    return Outcome(answer=FencingHistory(context.now, records, open_orders))


def _record(record: FencingRecord) -> EndedFencing:
    return EndedFencing(
        target=record.target,
        action=str(record.action),
        devices=tuple(each for each in (record.device, *record.others) if each is not None),
        executor=record.executor,
        outcome=str(record.outcome),
        detail=record.detail,
        reason=record.reason,
        began=record.issued_at,
        ended=record.ended_at,
    )


def _under_way(order: FenceOrder) -> OpenFencing:
    return OpenFencing(
        target=order.target,
        action=str(order.action),
        devices=tuple(order.devices),
        executor=order.executor,
        state=str(order.state),
        since=order.issued_at,
        reason=order.reason,
        attempt=order.attempt,
    )


def topology(context: Context, arguments: Arguments) -> Outcome[FencingTopology]:
    """Answer the configured levels, and what they make for each node (schema `haclusterd.fencing_topology/1`)."""
    nodes = _nodes(context, arguments)
    if isinstance(nodes, ReportItem):
        return refusal(nodes)
    configured = tuple(
        ConfiguredLevel(
            target=level.target or level.target_pattern or f"{level.target_attribute}={level.target_value}",
            index=level.index,
            devices=tuple(level.devices),
        )
        for level in context.cib.configuration.fencing_levels
    )
    effective_levels = tuple(
        NodeLevels(name, tuple(tuple(level) for level in fencing_cover.levels_of(context.cib, name))) for name in nodes
    )
    return Outcome(answer=FencingTopology(configured, effective_levels))


def plan_fencing(context: Context, arguments: Arguments) -> Outcome[FencingPlan]:
    """Answer what would happen if a node died now (schema `haclusterd.fencing_plan/1`)."""
    name = find_node(context, arguments.word("node"))
    if isinstance(name, ReportItem):
        return refusal(name)
    cib = context.cib
    supposed = node_down(cib, name, context.now)
    if isinstance(supposed, ReportItem):
        return refusal(supposed)
    stands = standing(context, supposed)
    found = plan(supposed, context.now, options=stands.options)
    if isinstance(found, ReportItem):
        return refusal(found)
    return Outcome(stands.reports, answer=FencingPlan(
        node=name,
        has_quorum=stands.has_quorum,
        steps=tuple(_steps(cib, name)) if stands.has_quorum else (),
        actions=tuple(describe_action(action) for action in real_actions(found)),
        warnings=tuple(found.warnings),
    ))  # fmt: skip


def _steps(cib: Cib, name: NodeName) -> Iterator[FencingStep]:
    properties = ClusterProperties(cib.in_force)
    for number, level in enumerate(fencing_cover.levels_of(cib, name), start=1):
        executors = able_to_use(cib, name, level)
        yield FencingStep(
            level=number,
            devices=tuple(_delayed(cib, device, name) for device in level),
            action=properties.text("fencing-action"),
            executors=tuple(executors),
        )


def _delayed(cib: Cib, device: ResourceId, name: NodeName) -> DelayedDevice:
    found = cib.configuration.resources.get(device)
    least = most = 0
    if isinstance(found, Primitive):
        least, most = delay_bounds_ms(effective(expanded(found, cib.in_force).parameters), name)
    return extended(DelayedDevice, _proof(cib, device, name), delay_min_ms=least, delay_max_ms=most)


def confirm(context: Context, arguments: Arguments) -> Outcome[FencingConfirmed]:
    """Take a person's word that a lost node is down: what ran there is recovered."""
    name = find_node(context, arguments.word("node"))
    if isinstance(name, ReportItem):
        return refusal(name)
    status = context.cib.status.nodes.get(name)
    objections = tuple(_objections_to_confirming(context, name, status, has_checked=arguments.flag("has_checked")))
    if objections or status is None:
        return refusal(*objections)
    detail = f"confirmed by {context.author}" + (f": {context.reason}" if context.reason else "")
    command = Fenced(name, status.incarnation, None, FenceOutcome.CONFIRMED, detail)
    requested = report(Code.REQUESTED, what=f"{name} counts as fenced; what ran there is recovered")
    return Outcome((requested,), (command,), answer=FencingConfirmed(node=name))


def _objections_to_confirming(
    context: Context, name: NodeName, status: NodeStatus | None, *, has_checked: bool
) -> Iterator[ReportItem]:
    if context.live is None:
        yield report(Code.NOT_OFFLINE, what="a confirmation")
    if status is None or status.state is not NodeState.LOST:
        state = status.state if status is not None else "no member"
        yield report(Code.REFUSED, problem=f"{name} is {state}, not lost", remedy="crm status")
        return
    if any(order.target == name for order in context.cib.status.fence_orders.values()):
        problem = f"{name} is being fenced right now, and a fence agent could hit it after it came back"
        yield report(Code.REFUSED, problem=problem, remedy="wait for it to end: crm fencing history")
    if context.live is not None:
        yield from _objections_of_voters(context.cib, context.live, name)
    if not has_checked:
        problem = f"if {name} still runs, its data will be destroyed: power it off, look that it is off"
        yield report(Code.UNSAFE, problem=f"{problem}, then add --i-have-checked")


def _objections_of_voters(cib: Cib, live: LiveView, name: NodeName) -> Iterator[ReportItem]:
    """Ask every voter that is online whether it has heard a node lately: by what their heartbeats say to this one."""
    ages_ms = {live.node: live.heard[name].age_ms if name in live.heard else None}
    for voter in cib.voters():
        if voter in (name, live.node) or cib.status.nodes[voter].state is not NodeState.ONLINE:
            continue
        known = live.heard.get(voter)
        if known is None or known.age_ms is None or known.age_ms >= HEARD_LATELY_MS:
            problem = f"{voter} is online and is not heard here: whether it hears {name} cannot be asked"
            remedy = f"type it on another node, or find out why {voter} is silent"
            yield report(Code.REFUSED, problem=problem, remedy=remedy)
        else:
            ages_ms[voter] = known.hears.get(name)
    for voter, age_ms in sorted(ages_ms.items()):
        if age_ms is not None and age_ms < HEARD_LATELY_MS:
            problem = f"{voter} heard {name} {age_ms} ms ago: it is not down"
            yield report(Code.REFUSED, problem=problem, remedy="power it off first")


def cleanup(context: Context, arguments: Arguments) -> Outcome[Never]:
    """Forget ended fencings: what failed counts no more, and what waits for that is tried again.

    What ended a node that is away stays until it has joined.
    """
    nodes = _nodes(context, arguments) if arguments.word("node") else ()
    if isinstance(nodes, ReportItem):
        return refusal(nodes)
    if context.live is None:
        return refusal(report(Code.NOT_OFFLINE, what="a clean-up"))
    name = nodes[0] if nodes else None
    requested = report(Code.REQUESTED, what=f"the fencing history of {name or 'all nodes'} is forgotten")
    return Outcome((requested,), (ForgetFencings(name, context.author, context.reason),))


HEARD_LATELY_MS = 10_000

VERBS = (
    carry_out_by("fencing.list", show, answers(Fencing)),
    carry_out_by("fencing.history", history, answers(FencingHistory)),
    carry_out_by("fencing.topology", topology, answers(FencingTopology)),
    carry_out_by("fencing.plan", plan_fencing, answers(FencingPlan)),
    carry_out_by("fencing.test", node.fence, answers(Fence)),
    carry_out_by("fencing.cleanup", cleanup, answers()),
    carry_out_by("fencing.confirm", confirm, answers(FencingConfirmed)),
)
