"""Verbs about nodes: show, standby, online, maintenance, fence."""

from collections.abc import Sequence

from haclusterd.cib.commands import Command, RequestFence, SetTransientAttribute
from haclusterd.cib.derived.wishes import node_flag
from haclusterd.commands.attribute_sets import with_value, without
from haclusterd.commands.configure.change import change
from haclusterd.commands.context import Context
from haclusterd.commands.names import find_node, find_nodes, node_names
from haclusterd.commands.outcome import Condition, Outcome, refusal
from haclusterd.commands.planning.planning import settled, staleness
from haclusterd.commands.status import fencing_cover
from haclusterd.commands.status.resource_state import primitives_on
from haclusterd.commands.status.status import node_answer
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model import durations
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.configuration import Configuration, NodeEntry, effective
from haclusterd.model.fencing import FenceAction, FenceOutcome
from haclusterd.model.ids import Incarnation, NodeName, ResourceId
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.quorum import ends_quorum
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.items import ReportItem, report
from haclusterd.verbs.answers.answer import extended
from haclusterd.verbs.answers.configuration import Change
from haclusterd.verbs.answers.node import Fence, Nodes, ShownNode
from haclusterd.verbs.arguments import Arguments

STANDBY = "standby"
MAINTENANCE = "maintenance"



def show(context: Context, arguments: Arguments) -> Outcome[Nodes]:
    """Answer one node or all (schema `haclusterd.nodes/1`)."""
    names = node_names(context.cib)
    if arguments.word("node"):
        found = find_node(context, arguments.word("node"))
        if isinstance(found, ReportItem):
            return refusal(found)
        names = (found,)
    shown = tuple(_shown(context, name) for name in names)
    return Outcome(tuple(staleness(context)), answer=Nodes(now=context.now, nodes=shown))


def _shown(context: Context, name: NodeName) -> ShownNode:
    cib = context.cib
    entry = cib.configuration.nodes.get(name)
    known = cib.status.nodes.get(name)
    member = cib.members.get(name)
    return extended(
        ShownNode,
        node_answer(context, name),
        addresses=() if member is None else tuple(f"{host}:{port}" for host, port in member.addresses),
        attributes={} if entry is None else effective(entry.attributes),
        utilization={} if entry is None else effective(entry.utilization),
        transient_attributes={} if known is None else dict(sorted(known.attributes.items())),
        incarnation=None if known is None or known.incarnation is None else str(known.incarnation),
        resources=tuple(primitives_on(cib, name)),
    )


def standby(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Move everything away from nodes and keep it away, until `online` or, with `reboot`, until their next boots.

    All of them at once: resources move to none of the others, and one that is unknown changes nothing.
    """
    nodes, unknown = find_nodes(context, arguments)
    if unknown:
        return refusal(*(_or_lifetime(each) if arguments.words("others") else each for each in unknown))
    stopping = _stopping(context.cib, nodes)
    objection = _objection_to_stopping(context, stopping)
    if objection is not None and objection.severity is Severity.ERROR:
        return refusal(objection)
    objections = () if objection is None else (objection,)
    waiting_for = f"{', '.join(nodes)} to be empty"
    if arguments.word("lifetime") == "reboot":
        there = tuple(each for each in nodes if each in context.cib.status.nodes)
        known = there if there and arguments.flag("all") else nodes
        first, *others = known
        command = SetTransientAttribute(
            first, STANDBY, "on", context.author, context.reason, others=tuple(others)
        )
        requested = report(Code.REQUESTED, what=f"{_are(known)} on standby until {_they(known)}")
        return Outcome((*objections, requested), (command,), until=_emptied(context, known), until_plans=True,
                       waiting_for=waiting_for)
    new = _with_attributes(context, nodes, STANDBY, "on")
    whose = "its" if len(nodes) == 1 else "their"
    done = f"{_are(nodes)} on standby; {whose} resources {'stop' if stopping else 'move away'}"
    return change(context, new, done=done, reports=objections, until=_emptied(context, nodes), until_plans=True,
                  waiting_for=waiting_for)


def _or_lifetime(unknown: ReportItem) -> ReportItem:
    return replace(unknown, remedy=f"{unknown.remedy}; the last word may be forever or reboot")


def _are(nodes: Sequence[NodeName]) -> str:
    return f"{', '.join(nodes)} {'is' if len(nodes) == 1 else 'are'}"


def _they(nodes: Sequence[NodeName]) -> str:
    return "it reboots" if len(nodes) == 1 else "they reboot"


def _none_is(nodes: Sequence[NodeName]) -> str:
    return f"{nodes[0]} is not" if len(nodes) == 1 else f"none of {', '.join(nodes)} is"


def _stopping(cib: Cib, nodes: Sequence[NodeName]) -> tuple[ResourceId, ...]:
    """Return what runs on these nodes when no other node could take over; nothing: one could."""
    others = any(
        name not in nodes and status.state is NodeState.ONLINE and not node_flag(cib, name, STANDBY)
        and name in cib.members and not cib.members[name].is_witness
        for name, status in cib.status.nodes.items()
    )  # fmt: skip
    return () if others else tuple(dict.fromkeys(each for node in nodes for each in primitives_on(cib, node)))


def _objection_to_stopping(context: Context, stopping: Sequence[ResourceId]) -> ReportItem | None:
    if not stopping or context.is_forced:
        return None
    severity = Severity.WARNING if context.is_preview else None
    problem = f"no other node can take over: {', '.join(stopping)} would stop"
    return report(Code.UNSAFE, problem=problem, severity=severity)


def _emptied(context: Context, nodes: Sequence[NodeName]) -> Condition:
    """Wait until nothing runs on the nodes and what ran there has found its place."""
    is_settled = settled(context.now)
    return lambda cib, live: not any(primitives_on(cib, each) for each in nodes) and is_settled(cib, live)


def online(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Let nodes run resources again."""
    nodes, unknown = find_nodes(context, arguments)
    if unknown:
        return refusal(*unknown)
    status, entries = context.cib.status.nodes, context.cib.configuration.nodes
    until_boot = [each for each in nodes if each in status and STANDBY in status[each].attributes]
    for_ever = [each for each in nodes if each in entries and STANDBY in effective(entries[each].attributes)]
    concerned = [each for each in nodes if each in (*until_boot, *for_ever)]
    if not concerned:
        return Outcome((report(Code.NOTHING_TO_DO, state=f"{_none_is(nodes)} on standby"),))
    commands: tuple[Command, ...] = ()
    if until_boot:
        first, *others = until_boot
        commands = (
            SetTransientAttribute(first, STANDBY, None, context.author, context.reason, others=tuple(others)),
        )
    done = f"{', '.join(concerned)} may run resources again"
    if not for_ever:
        return Outcome((report(Code.REQUESTED, what=done),), commands)
    new = context.cib.configuration
    for each in for_ever:
        sets = without(entries[each].attributes, STANDBY, keeps_empty=context.is_foreign)
        new = _with_entry(new, replace(entries[each], attributes=sets))
    outcome = change(context, new, done=done)
    return outcome if outcome.is_refused else replace(outcome, commands=(*commands, *outcome.commands))


def maintenance(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Put nodes into maintenance mode: nothing on them is touched, monitors too, or no longer."""
    nodes, unknown = find_nodes(context, arguments)
    if unknown:
        return refusal(*unknown)
    is_over = arguments.flag("ready")
    value = ("off" if arguments.flag("as_crmsh") else "false") if is_over else "true"
    if is_over and arguments.flag("all"):
        entries = context.cib.configuration.nodes
        nodes = tuple(each for each in nodes if each in entries and MAINTENANCE in effective(entries[each].attributes))
        if not nodes:
            return Outcome((report(Code.NOTHING_TO_DO, state="no node is in maintenance"),))
    them = "it" if len(nodes) == 1 else "them"
    words = "managed again" if is_over else f"left alone: nothing on {them} is started, stopped or watched"
    return change(context, _with_attributes(context, nodes, MAINTENANCE, value), done=f"{_are(nodes)} {words}")


def _with_attributes(context: Context, nodes: Sequence[NodeName], name: str, value: str) -> Configuration:
    """Return the configuration in which these nodes have an attribute."""
    new = context.cib.configuration
    for node in nodes:
        entry = new.nodes.get(node, NodeEntry(node))
        sets = with_value(entry.attributes, owner=f"nodes-{node}", section="attributes", name=name, value=value)
        new = _with_entry(new, replace(entry, attributes=sets))
    return new


def _with_entry(configuration: Configuration, entry: NodeEntry) -> Configuration:
    return replace(configuration, nodes={**configuration.nodes, entry.name: entry})


def fence(context: Context, arguments: Arguments) -> Outcome[Fence]:
    """Declare a node lost and have it fenced, whatever it says."""
    node = find_node(context, arguments.word("node"))
    if isinstance(node, ReportItem):
        return refusal(node)
    tolerance_ms = _duration(arguments.word("tolerance") or "0")
    if tolerance_ms is None:
        return refusal(report(Code.BAD_VALUE, name="tolerance", problem=f"{arguments.word('tolerance')!r} is no time"))
    lately = _fenced_lately(context, node, tolerance_ms)
    if lately:
        return Outcome((report(Code.NOTHING_TO_DO, state=lately),))
    under_way = _under_way(context, node)
    if under_way is not None:
        return under_way
    objections = _objections_to_fencing(context, node)
    if any(each.severity is Severity.ERROR for each in objections):
        return refusal(*objections)
    done = _have_fenced(context, node, context.reason)
    return replace(done, reports=(*objections, *done.reports))


def terminate(context: Context, node: NodeName, value: str) -> Outcome[Fence]:
    """Have a node fenced for whom the attribute `terminate` was set, as DLM does (Pacemaker Explained, "Fencing").

    The attribute itself is not kept: it would be gone with the boot that it asks for.
    """
    under_way = _under_way(context, node)
    objections = _objections_to_fencing(replace(context, is_forced=True), node)
    if under_way is not None:
        return under_way
    return refusal(*objections) if objections else _have_fenced(context, node, f"terminate={value}")


def _have_fenced(context: Context, node: NodeName, reason: str) -> Outcome[Fence]:
    known = context.cib.status.nodes[node]
    device = fencing_cover.devices_for(context.cib, node)[0]
    what = f"{node} is declared lost and will be fenced with {device}{_end_of_quorum(context.cib, node)}"
    requested = report(Code.REQUESTED, what=what)
    return Outcome(
        reports=(requested,),
        commands=(RequestFence(node, known.incarnation, context.author, reason),),
        answer=Fence(node=node, device=device),
        until=_fenced(node, known.incarnation),
        waiting_for=f"{node} to be fenced",
    )


def _under_way(context: Context, node: NodeName) -> Outcome[Fence] | None:
    """Join a fencing of the node that is under way already, no matter who asked for it; None: there is none."""
    known = context.cib.status.nodes.get(node)
    orders = [order for order in context.cib.status.fence_orders.values() if order.target == node]
    if context.live is None or known is None or known.state is not NodeState.LOST or not orders:
        return None
    requested = report(Code.REQUESTED, what=f"{node} is being fenced already, with {', '.join(orders[0].devices)}")
    return Outcome(
        reports=(requested,),
        answer=Fence(node=node, device=orders[0].device),
        until=_fenced(node, known.incarnation),
        waiting_for=f"{node} to be fenced",
    )


def _duration(text: str) -> int | None:
    """Read a time; None when it is none."""
    try:
        return durations.parse(text)
    except ValueError:
        return None


def _fenced_lately(context: Context, node: NodeName, tolerance_ms: int) -> str:
    """Say that the node was fenced within a time, or is being fenced: then there is nothing to do; else empty."""
    status = context.cib.status
    if tolerance_ms and any(order.target == node and order.action is not FenceAction.ON
                            for order in status.fence_orders.values()):  # fmt: skip
        return f"{node} is being fenced"
    for record in reversed(status.fencing_history):
        is_dead = record.outcome in (FenceOutcome.FENCED, FenceOutcome.CONFIRMED)
        ago_ms = context.now - record.ended_at
        if record.target == node and is_dead and ago_ms <= tolerance_ms:
            return f"{node} was fenced {durations.render(ago_ms)} ago"
    return ""


def _objections_to_fencing(context: Context, node: NodeName) -> tuple[ReportItem, ...]:
    cib = context.cib
    known = cib.status.nodes.get(node)
    found: list[ReportItem] = []
    if context.live is None:
        found.append(report(Code.NOT_OFFLINE, what="fencing"))
    if known is None:
        found.append(report(Code.NO_SUCH_NODE, node=f"{node} in the cluster", remedy="only members are fenced"))
    elif known.state not in (NodeState.ONLINE, NodeState.UNSEEN):
        found.append(report(Code.REFUSED, problem=f"{node} is {known.state} already", remedy="crm status"))
    if not fencing_cover.is_enabled(cib):
        found.append(report(Code.REFUSED, problem="fencing is disabled", remedy="set fencing-enabled=true"))
    if not fencing_cover.devices_for(cib, node):
        found.append(report(Code.NO_DEVICE, node=node))
    if not found and not context.is_forced:
        running = ", ".join(primitives_on(cib, node)) or "nothing"
        problem = f"{node} would be powered off or reset at once; it runs {running}"
        severity = Severity.WARNING if context.is_preview else None
        found.append(report(Code.UNSAFE, problem=f"{problem}{_end_of_quorum(cib, node)}", severity=severity))
    return tuple(found)


def _end_of_quorum(cib: Cib, node: NodeName) -> str:
    """Say that the rest has no quorum until the node is back; what is fenced with `off` does not come by itself."""
    problem = ends_quorum(cib, node)
    is_off = ClusterProperties(cib.in_force).text("fencing-action") == FenceAction.OFF
    back = f"; with fencing-action=off {node} stays off until somebody switches it on" if is_off else ""
    return f"; {problem}{back}" if problem else ""


def _fenced(node: NodeName, incarnation: Incarnation | None) -> Condition:
    def is_fenced(cib: Cib, _live: object) -> bool:
        known = cib.status.nodes.get(node)
        if known is None:
            return True
        return known.state is NodeState.FENCED or known.incarnation != incarnation

    return is_fenced



VERBS = (
    carry_out_by("node.show", show, answers(Nodes)),
    carry_out_by("node.standby", standby, answers(Change)),
    carry_out_by("node.online", online, answers(Change)),
    carry_out_by("node.maintenance", maintenance, answers(Change)),
    carry_out_by("node.fence", fence, answers(Fence)),
)
