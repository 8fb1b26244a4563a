"""`apply` for the state of each node: joined, leaving, lost; its attributes and load (safety.md §1, §4, §6)."""

from haclusterd.cib import commands
from haclusterd.cib.activity import possibly_serving
from haclusterd.cib.apply_devices import booted
from haclusterd.cib.apply_fencing import may_be_hit, order_at_work, with_ended_order, without_abandoned_of
from haclusterd.cib.apply_watchdog import lease_in_force_ms
from haclusterd.cib.changes import Change, ChangeKind, Facts, RefusalCode
from haclusterd.cib.levels import level_of_all
from haclusterd.cib.migrations import with_doubt, without_orders_of
from haclusterd.cib.verdict import Entry, Verdict, accept, by, change, refuse, with_node, with_nodes, with_status
from haclusterd.model import durations
from haclusterd.model.activity import migrations_at, without_records
from haclusterd.model.availability import Cause
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.fencing import DEATHS, FailedOperation, FenceAction, FenceOutcome
from haclusterd.model.history import ResourceHistory, history_of
from haclusterd.model.ids import Incarnation, NodeName, ResourceId
from haclusterd.model.ocf import ActionName
from haclusterd.model.quorum import ends_quorum
from haclusterd.model.records import replace
from haclusterd.model.reloads import with_reload_in_doubt
from haclusterd.model.watchdog import WATCHDOG

_LOST = Facts(cause=str(Cause.NODE_LOST))
_ASKED = Facts(cause=str(Cause.FENCE_REQUESTED))


def join(cib: Cib, command: commands.Join, entry: Entry) -> Verdict:
    """Set a node online under a new incarnation; what its earlier incarnations left open is closed at the same time."""
    status = cib.status.nodes.get(command.node)
    if status is None:
        return refuse(cib, RefusalCode.NOT_A_MEMBER, f"{command.node} is not a member of this cluster")
    answer = _answer_at_once(cib, status, command)
    if answer is not None:
        return answer
    cib = _without_wait_for_watchdog(cib, status, command, entry)
    is_evading = _is_evading(status, command)
    held = _why_held(cib, status, command, entry)
    if held:
        return refuse(cib, RefusalCode.HELD_FENCING_IN_FLIGHT, held)
    is_same_boot = _is_same_boot(status, command)
    if not is_same_boot:
        cib = booted(cib, command.node, entry.at)
        cib = without_orders_of(cib, status, f"{command.node} has booted in the middle of it", entry)
    if is_same_boot or not entry.rules.reboot_clears_history:
        joined = _restarted(status, entry)
    else:
        joined = NodeStatus(status.name, fenced_incarnation=status.fenced_incarnation, locks=status.locks)
    joined = replace(
        joined,
        state=NodeState.ONLINE,
        incarnation=command.incarnation,
        since=entry.at,
        membership=status.membership if is_same_boot else cib.membership.version,
        feature_level=command.feature_level,
        secret_key=command.secret_key,
        watchdog=command.watchdog,
        longest_lease_ms=max(lease_in_force_ms(cib.in_force), status.longest_lease_ms if is_same_boot else 0),
    )
    if entry.rules.migration_counts_on_both:
        joined = _with_expected(cib, joined)
    manner = "restarted" if is_same_boot else "joined"
    manner = f"{manner} unfenced, since nobody is left to fence it" if is_evading else manner
    # The new incarnation killed the previous one's fence agents before it asked to join; a boot has ended them.
    after = with_node(with_status(cib, without_abandoned_of(cib.status, joined.name)), joined)
    facts = Facts(outcome="restarted" if is_same_boot else "joined")
    changes = [change(ChangeKind.NODE_JOINED, f"{command.node} {manner}", node=command.node, facts=facts)]
    level = level_of_all(after)
    if level > cib.feature_level:
        text = f"every member reads feature level {level} now; older versions are refused from here on"
        changes.append(change(ChangeKind.FEATURE_LEVEL_ROSE, text))
    return accept(replace(after, feature_level=level), *changes)


def _answer_at_once(cib: Cib, status: NodeStatus, command: commands.Join) -> Verdict | None:
    """Return the answer to a Join that changes nothing, whatever the other conditions; None: they must be checked."""
    if status.is_retired:
        text = f"{command.node} is retired: it never comes back under this name"
        return refuse(cib, RefusalCode.NOT_A_MEMBER, text)
    if command.feature_level < cib.feature_level:
        text = f"{command.node} reads feature level {command.feature_level}, the cluster uses {cib.feature_level}: " \
               "upgrade haclusterd there"
        return refuse(cib, RefusalCode.NEEDS_UPGRADE, text)
    if status.incarnation == command.incarnation and status.state is NodeState.ONLINE:
        return accept(cib)
    if command.incarnation in (status.incarnation, status.fenced_incarnation):
        text = f"incarnation {command.incarnation} of {command.node} is over ({status.state}); join under a new one"
        return refuse(cib, RefusalCode.OLD_INCARNATION, text)
    return None


def _without_wait_for_watchdog(cib: Cib, status: NodeStatus, command: commands.Join, entry: Entry) -> Cib:
    """End the wait for a watchdog when the node is back after a boot: no agent is at work that could hit it late."""
    if _is_same_boot(status, command):
        return cib
    for order in cib.status.fence_orders.values():
        if order.target == command.node and WATCHDOG in order.devices:
            return with_ended_order(cib, order, FenceOutcome.FENCED, "it is back after a boot", entry.at)
    return cib


def _is_evading(status: NodeStatus, command: commands.Join) -> bool:
    return status.is_fence_requested and status.state is NodeState.LOST and _is_same_boot(status, command)


def _why_held(cib: Cib, status: NodeStatus, command: commands.Join, entry: Entry) -> str:
    """Return what fencing a Join waits for; empty: none. With no other node online, all would wait for each other."""
    is_another_online = _is_another_online(cib, command.node)
    if _is_evading(status, command) and is_another_online:
        return f"{command.node} is to be fenced; its join is held"
    device = _device_that_lied(cib, status, command)
    if device is not None and entry.rules.same_boot_disproves_fencing and is_another_online:
        return f"{command.node} runs on in the boot that {device} was recorded to have ended: it is fenced again first"
    # Unfencing (`on`) hits nobody, and its executor is usually the node itself: it could wait for its own end.
    is_being_fenced = any(
        order.target == command.node and order.action is not FenceAction.ON
        for order in cib.status.fence_orders.values()
    )
    if is_being_fenced and entry.rules.join_held_while_fencing:
        return f"{command.node} is being fenced; its join is held"
    abandoned = may_be_hit(cib, command.node)
    if abandoned is not None and abandoned.executor != command.node and entry.rules.abandoned_agent_holds_join:
        longest = durations.render(-(-cib.status.abandoned_fencings[abandoned.key].longest_ms // 1000) * 1000)
        return (
            f"{command.node} waits to join: {abandoned.executor} was lost while it fenced it, and a fence agent may be "
            f"at work there: until {abandoned.executor} is fenced or back, or {longest} have passed"
        )
    return ""


def _device_that_lied(cib: Cib, status: NodeStatus, command: commands.Join) -> ResourceId | None:
    """Return the device whose success was recorded for the very boot that asks to join; None: there is none.

    A watchdog is no such device: it leaves an empty node alone. Nor is an administrator's confirmation. The record
    counts also where the node is lost again because it did not join in time; attempts since may have failed.
    """
    if status.state not in (NodeState.FENCED, NodeState.LOST) or not _is_same_boot(status, command):
        return None
    records = [record for record in cib.status.fencing_history if record.target == status.name]
    if status.state is NodeState.LOST:
        records = [
            record for record in records
            if record.outcome in DEATHS and record.target_incarnation == status.incarnation
        ]  # fmt: skip
    last = records[-1] if records else None
    is_of_device = last is not None and last.outcome is FenceOutcome.FENCED and last.device != WATCHDOG
    return last.device if last is not None and is_of_device else None


def _is_another_online(cib: Cib, node: NodeName) -> bool:
    return any(name != node and status.state is NodeState.ONLINE for name, status in cib.status.nodes.items())


def _is_same_boot(status: NodeStatus, command: commands.Join) -> bool:
    return status.incarnation is not None and status.incarnation.boot_id == command.incarnation.boot_id


def _restarted(status: NodeStatus, entry: Entry) -> NodeStatus:
    """Return the status of a node whose daemon is new and whose services may run on: nothing is certain any more.

    Agents of its previous incarnation may still be at work. So activating orders stay open, as voided, until the new
    incarnation reports that their agents have ended.
    """
    histories = dict(status.histories)
    for order in status.orders.values():
        if order.resource not in histories:
            histories[order.resource] = history_of(order)
        if order.action is ActionName.RELOAD_AGENT and entry.rules.reload_keeps_both:
            histories[order.resource] = with_reload_in_doubt(histories[order.resource], order)
    unverified: frozenset[ResourceId] = frozenset(histories)
    kept = {key: replace(order, is_voided=True) for key, order in status.orders.items() if order.is_activating}
    return replace(
        status,
        detail="",
        causes=(),
        is_fence_requested=False,
        is_leaving=False,
        has_detached=False,
        histories={resource: _without_recurring(history) for resource, history in histories.items()},
        probed=frozenset() if entry.rules.unverified_is_probed else status.probed,
        unverified=unverified if entry.rules.unverified_is_probed else frozenset(),
        orders=kept if entry.rules.restart_keeps_orders else {},
    )


def _with_expected(cib: Cib, status: NodeStatus) -> NodeStatus:
    """Return the status of a joining node, with migrations to it or from it marked as possibly active."""
    for order in migrations_at(cib, status.name):
        status = with_doubt(status, order)
    return status


def _without_recurring(history: ResourceHistory) -> ResourceHistory:
    """Remove the recurring monitors: the daemon that ran them is gone."""
    return without_records(history, [key for key, record in history.records.items() if record.interval_ms])


def publish_load(cib: Cib, command: commands.PublishLoad, entry: Entry) -> Verdict:
    """Record a live node's limit on actions by its load."""
    status = _of_incarnation(cib, command.node, command.incarnation)
    if status is None or status.state is not NodeState.ONLINE:
        return refuse(cib, RefusalCode.OLD_INCARNATION, f"{command.node} is not online in that incarnation")
    if status.actions_max == command.actions_max:
        return accept(cib)
    most = f"at most {command.actions_max} actions at once" if command.actions_max else "any number of actions at once"
    noted = change(ChangeKind.LOAD_CHANGED, f"{command.node}: its load leaves room for {most}", node=command.node)
    return accept(with_node(cib, replace(status, actions_max=command.actions_max)), noted)


def request_leave(cib: Cib, command: commands.RequestLeave, entry: Entry) -> Verdict:
    """Start draining a node."""
    status = _of_incarnation(cib, command.node, command.incarnation)
    if status is None or status.state is not NodeState.ONLINE:
        return refuse(cib, RefusalCode.OLD_INCARNATION, f"{command.node} is not online in that incarnation")
    if status.is_leaving:
        return accept(cib)
    return accept(
        with_node(cib, replace(status, is_leaving=True)),
        change(ChangeKind.NODE_LEAVING, f"{command.node} is leaving", node=command.node),
    )


def leaving(cib: Cib, command: commands.Leaving, entry: Entry) -> Verdict:
    """Mark a node as left, when nothing may be active there any more, except what is unmanaged.

    A node that leaves something running is treated as lost in recovery, with the difference that its loss is no reason
    to fence it (`NodeStatus.has_detached`). Its lease was not withdrawn, so its watchdog proves nothing about it.
    """
    status = _of_incarnation(cib, command.node, command.incarnation)
    if status is None or status.state is not NodeState.ONLINE:
        return refuse(cib, RefusalCode.OLD_INCARNATION, f"{command.node} is not online in that incarnation")
    fencing = order_at_work(cib, command.node)
    if fencing is not None and entry.rules.executor_answers_before_leaving:
        text = f"{command.node} is to fence {fencing.target}, and leaves when it has answered"
        return refuse(cib, RefusalCode.FENCING_IN_FLIGHT, text)
    active = sorted(possibly_serving(status))
    unmanaged = frozenset(command.unmanaged)
    remaining = [resource for resource in active if resource not in unmanaged]
    if remaining:
        return refuse(cib, RefusalCode.STILL_ACTIVE, f"{', '.join(remaining)} may still be active on {command.node}")
    if active:
        return _detached(cib, status, f"it left with {', '.join(active)} running, unmanaged", entry)
    left = NodeStatus(
        status.name,
        state=NodeState.LEFT,
        incarnation=status.incarnation,
        since=entry.at,
        fenced_incarnation=status.fenced_incarnation,
        locks=status.locks,
        longest_lease_ms=status.longest_lease_ms,
    )
    return accept(with_node(cib, left), change(ChangeKind.NODE_LEFT, f"{command.node} left", node=command.node))


def _detached(cib: Cib, status: NodeStatus, why: str, entry: Entry) -> Verdict:
    gone = replace(
        status,
        state=NodeState.LOST,
        since=entry.at,
        detail=why,
        is_leaving=False,
        has_detached=True,
        watchdog=None,
        orders={key: replace(order, is_voided=True) for key, order in status.orders.items()},
    )
    return accept(with_node(cib, gone), change(ChangeKind.NODE_LEFT, f"{status.name}: {why}", node=status.name))


def lost(cib: Cib, command: commands.Lost, entry: Entry) -> Verdict:
    """Declare an incarnation lost; what may be active there stays so until its fencing is recorded."""
    controller = cib.status.controller
    if entry.rules.refuse_old_term and (controller is None or controller.term != command.dc_term):
        return refuse(cib, RefusalCode.OLD_TERM, f"term {command.dc_term} is not the DC's")
    status = _of_incarnation(cib, command.node, command.incarnation)
    if status is not None and command.is_pending and status.state in (NodeState.LEFT, NodeState.FENCED):
        # Its earlier incarnation is recorded as ended; nothing is known of this one.
        gone = replace(status, state=NodeState.LOST, since=entry.at, detail=command.reason, fenced_incarnation=None)
        text = f"{command.node} is lost: {command.reason}"
        return accept(with_node(cib, gone), change(ChangeKind.NODE_LOST, text, node=command.node, facts=_LOST))
    if status is not None and status.state is NodeState.FENCED:
        # It was heard afterwards: the record of its death was wrong. What it runs is in no record any more, so it must
        # not come back in that boot before it was fenced, unless only an administrator has said that it is dead.
        records = [record for record in cib.status.fencing_history if record.target == command.node]
        is_of_device = bool(records) and records[-1].outcome is FenceOutcome.FENCED and records[-1].device != WATCHDOG
        is_of_device = is_of_device and entry.rules.same_boot_disproves_fencing
        cib = with_node(
            cib,
            replace(status, state=NodeState.ONLINE, fenced_incarnation=None, is_fence_requested=is_of_device),
        )
    objection = ends_quorum(cib, command.node) if command.causes else ""
    if objection:
        return refuse(cib, RefusalCode.ENDS_QUORUM, objection)
    return _declare_lost(cib, command.node, command.incarnation, command.reason, entry, causes=command.causes)


def request_fence(cib: Cib, command: commands.RequestFence, entry: Entry) -> Verdict:
    """Declare a node lost because an administrator wants it fenced."""
    reason = f"fencing requested by {command.author}" + (f": {command.reason}" if command.reason else "")
    known = _of_incarnation(cib, command.node, command.incarnation)
    if known is not None and known.has_detached:
        fenced_too = replace(known, has_detached=False, is_fence_requested=True, detail=reason)
        text = f"{command.node}: {reason}"
        return accept(with_node(cib, fenced_too), change(ChangeKind.NODE_LOST, text, node=command.node, facts=_ASKED))
    verdict = _declare_lost(cib, command.node, command.incarnation, reason, entry, facts=_ASKED)
    status = verdict.cib.status.nodes.get(command.node)
    if verdict.refusal is not None or status is None:
        return verdict
    return replace(verdict, cib=with_node(verdict.cib, replace(status, is_fence_requested=True)))


def _declare_lost(
    cib: Cib,
    node: NodeName,
    incarnation: Incarnation | None,
    reason: str,
    entry: Entry,
    *,
    causes: tuple[FailedOperation, ...] = (),
    facts: Facts = _LOST,
) -> Verdict:
    status = _of_incarnation(cib, node, incarnation)
    if status is None:
        return refuse(cib, RefusalCode.OLD_INCARNATION, f"that incarnation of {node} is over")
    if status.state not in (NodeState.ONLINE, NodeState.UNSEEN):
        return refuse(cib, RefusalCode.WRONG_NODE_STATE, f"{node} is {status.state}")
    orders = {key: replace(order, is_voided=True) for key, order in status.orders.items()}
    gone = replace(
        status, state=NodeState.LOST, since=entry.at, detail=reason, causes=causes, is_leaving=False, orders=orders
    )
    lost_now = change(ChangeKind.NODE_LOST, f"{node} is lost: {reason}", node=node, facts=facts)
    return accept(with_node(cib, gone), lost_now)


def set_transient_attribute(cib: Cib, command: commands.SetTransientAttribute, entry: Entry) -> Verdict:
    """Set or delete an attribute of nodes that a reboot clears; a private one stays private until it is deleted."""
    unknown = [each for each in command.nodes if each not in cib.status.nodes]
    if unknown:
        verb = "is not a member" if len(unknown) == 1 else "are not members"
        return refuse(cib, RefusalCode.NOT_A_MEMBER, f"{', '.join(unknown)} {verb} of this cluster")
    changed, changes = dict[NodeName, NodeStatus](), list[Change]()
    for node in command.nodes:
        status, news = _with_transient(cib.status.nodes[node], command)
        changed[node] = status
        changes += news
    if all(status is cib.status.nodes[node] for node, status in changed.items()):
        return accept(cib)
    return accept(with_nodes(cib, changed), *changes)


def _with_transient(
    status: NodeStatus, command: commands.SetTransientAttribute
) -> tuple[NodeStatus, tuple[Change, ...]]:
    """Return a node's status with the attribute, itself where that changes nothing, and the news of it."""
    if command.name in status.private_attributes or (command.is_private and command.name not in status.attributes):
        return _with_private(status, command), ()
    attributes = {name: value for name, value in status.attributes.items() if name != command.name}
    if command.value is not None:
        attributes[command.name] = command.value
    if attributes == status.attributes:
        return status, ()
    what = f"{command.name} deleted" if command.value is None else f"{command.name}={command.value}"
    news = change(ChangeKind.ATTRIBUTE_CHANGED, f"{status.name}: {what}{by(command.author, command.reason)}",
                  node=status.name)  # fmt: skip
    return replace(status, attributes=attributes), (news,)


def _with_private(status: NodeStatus, command: commands.SetTransientAttribute) -> NodeStatus:
    kept = {name: value for name, value in status.private_attributes.items() if name != command.name}
    if command.value is not None:
        kept[command.name] = command.value
    return replace(status, private_attributes=kept)


def _of_incarnation(cib: Cib, node: NodeName, incarnation: Incarnation | None) -> NodeStatus | None:
    status = cib.status.nodes.get(node)
    return status if status is not None and status.incarnation == incarnation else None
