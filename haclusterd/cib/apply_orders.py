"""`apply` for orders and their results (safety.md §1)."""

from collections.abc import Mapping, Sequence

from haclusterd.cib import commands
from haclusterd.cib.activity import (
    active_on_others,
    active_siblings,
    copies_of,
    former_names_active,
    history_says_active,
    history_says_promoted,
    promoted_on_others,
    promoted_siblings,
    starting_on_others,
    under_other_names,
    unfenced_holders,
)
from haclusterd.cib.apply_devices import objection_to_claims, with_claims, without_unused_claims
from haclusterd.cib.changes import Change, ChangeKind, Facts, Refusal, RefusalCode
from haclusterd.cib.migrations import with_doubt, with_expected_arrival, with_undecided
from haclusterd.cib.secrets.apply_secrets import forgotten_value
from haclusterd.cib.verdict import Entry, Verdict, accept, change, refuse, with_node, with_nodes
from haclusterd.model.activity import (
    HOLDING,
    could_not_look,
    known_promoted,
    may_be_active_or_begin,
    migrating_to_or_from,
    migrations_at,
    possibly_promoted,
    started_as,
)
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.history import FailCount, OperationRecord, ResourceHistory, history_of, operation_key
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import BEGINNINGS, ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import LOCKS, OperationResult, Order, ResultKind
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.records import replace
from haclusterd.model.reloads import after_reload, is_found, is_not_found, looked_for_next, settled_reloads
from haclusterd.model.scores import INFINITY, add

_BY_WHAT_RUNS = frozenset({
    ActionName.START, ActionName.STOP, ActionName.MONITOR, ActionName.PROMOTE, ActionName.DEMOTE,
    ActionName.MIGRATE_TO, ActionName.MIGRATE_FROM,
})  # fmt: skip
"""Actions that act on what runs, or find out whether anything does."""
_START = operation_key(ActionName.START, 0)
_ENDS_MONITORS = (ActionName.START, ActionName.STOP, ActionName.PROMOTE, ActionName.DEMOTE)
"""Actions that supersede older records."""


def issue_orders(cib: Cib, command: commands.IssueOrders, entry: Entry) -> Verdict:
    """Commit the DC's orders, all of them or none."""
    controller = cib.status.controller
    if entry.rules.refuse_old_term and (controller is None or controller.term != command.dc_term):
        return refuse(cib, RefusalCode.OLD_TERM, f"term {command.dc_term} is not the DC's")
    unconfigured = _shape_objection(cib, command.orders) if entry.rules.one_active_copy else None
    if unconfigured is not None:
        return Verdict(cib, (), unconfigured)
    nodes: dict[NodeName, NodeStatus] = {}
    changes: list[Change] = []
    claimed = cib
    for order in command.orders:
        so_far = with_nodes(claimed, nodes) if nodes else claimed
        status = so_far.status.nodes.get(order.node)
        refusal = _objection(so_far, status, order, entry)
        if refusal is not None or status is None:
            return Verdict(cib, (), refusal)
        claimed = with_claims(claimed, order)
        nodes[order.node] = replace(status, orders={**status.orders, order.key: order})
        other = so_far.status.nodes.get(order.other_node) if order.other_node is not None else None
        if other is not None and other.state in HOLDING and entry.rules.migration_counts_on_both:
            nodes[other.name] = with_doubt(other, order)
        text = f"{_words(order)} on {order.node}: {order.reason}"
        facts = _facts_of(order, reason=order.reason)
        changes.append(change(ChangeKind.ORDER_ISSUED, text, node=order.node, resource=order.resource, facts=facts))
    return accept(with_nodes(claimed, nodes), *changes)


def _shape_objection(cib: Cib, orders: Sequence[Order]) -> Refusal | None:
    """Refuse starts, by an earlier plan, of resources that the configuration no longer has in that shape.

    Otherwise two instances of a former unique clone that has become a primitive could start.
    """
    starts = [order for order in orders if order.action is ActionName.START]
    copies = copies_of(cib) if starts else None
    for order in starts:
        if copies is not None and not copies.may_be_wanted(order.resource):
            text = f"{order.resource} is not what the configuration has any more"
            return Refusal(RefusalCode.NOT_CONFIGURED, text)
    return None


def _objection(cib: Cib, status: NodeStatus | None, order: Order, entry: Entry) -> Refusal | None:
    if status is None:
        return Refusal(RefusalCode.NOT_A_MEMBER, f"{order.node} is not a member of this cluster")
    if status.state is not NodeState.ONLINE:
        return Refusal(RefusalCode.WRONG_NODE_STATE, f"{order.node} is {status.state}")
    if status.incarnation != order.incarnation and entry.rules.order_names_incarnation:
        return Refusal(RefusalCode.OLD_INCARNATION, f"that incarnation of {order.node} is over")
    if order.key in status.orders:
        return Refusal(RefusalCode.DUPLICATE_KEY, f"order {order.key} is known already")
    if entry.rules.asked_as_started and _is_hidden_from(status, order):
        text = f"{order.resource} may run on {order.node}, started by another agent or with other parameters"
        return Refusal(RefusalCode.STILL_ACTIVE, text)
    forgotten = forgotten_value(cib, status, order) if entry.rules.asked_as_started else None
    if forgotten is not None:
        text = f"secret {forgotten} was changed since {order.action} of {order.resource} was planned"
        return Refusal(RefusalCode.NOT_CONFIGURED, text)
    return _activation_objection(cib, order, entry) or objection_to_claims(cib, order, entry)


def _activation_objection(cib: Cib, order: Order, entry: Entry) -> Refusal | None:
    """Refuse an order that could make one copy, or one promoted instance, too many."""
    if order.action is ActionName.PROMOTE:
        return _promotion_objection(cib, order, entry)
    if order.action is ActionName.MIGRATE_TO and entry.rules.migration_counts_on_both:
        return _migration_objection(cib, order, entry)
    if order.action is ActionName.RELOAD_AGENT:
        return _other_name_objection(cib, order, entry)
    if order.action not in (ActionName.START, ActionName.MIGRATE_FROM):
        return None
    return _start_objection(cib, order, entry)


def _is_hidden_from(status: NodeStatus, order: Order) -> bool:
    """Return whether an order uses another agent or other parameters than what may run there was started with.

    Its action would find nothing running, or stop nothing, and the running instance would be in no history any more.
    """
    started = started_as(status, order.resource)
    if started is None or started.agent.standard == "stonith" or order.action not in _BY_WHAT_RUNS:
        return False
    is_known = bool(started.definition and order.definition)
    return order.agent != started.agent or (is_known and order.definition != started.definition)


def _migration_objection(cib: Cib, order: Order, entry: Entry) -> Refusal | None:
    """Refuse to migrate a resource to where it may be active already, or to a node that is not online."""
    target = cib.status.nodes.get(order.other_node) if order.other_node is not None else None
    if target is None:
        return Refusal(RefusalCode.NOT_A_MEMBER, f"{order.key} names no member to migrate {order.resource} to")
    if target.state is not NodeState.ONLINE:
        return Refusal(RefusalCode.WRONG_NODE_STATE, f"{target.name} is {target.state}")
    if may_be_active_or_begin(target, order.resource) and entry.rules.one_active_copy:
        # Also for a clone, which may have several copies, but not two on one node.
        text = f"{order.resource} may be active on {target.name}"
        return Refusal(RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS, text)
    if _is_being_looked_at(target, order.resource) and entry.rules.one_active_copy:
        text = f"{order.resource} is being probed or stopped on {target.name}: the answer may come after it has arrived"
        return Refusal(RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS, text)
    return _start_objection(cib, order, entry)


def _is_being_looked_at(status: NodeStatus, resource: ResourceId) -> bool:
    """Return whether an order is open on a node whose answer would say that nothing runs there."""
    return any(
        order.resource == resource and order.action in (ActionName.MONITOR, ActionName.STOP)
        for order in status.orders.values()
    )


def _start_objection(cib: Cib, order: Order, entry: Entry) -> Refusal | None:
    """Refuse a start that could make one copy too many, whatever the scheduler assumed."""
    former = former_names_active(cib, order.resource) if entry.rules.one_active_copy else ()
    if former:
        text = f"{' and '.join(former)} may be active, which {order.resource} was before"
        return Refusal(RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS, text)
    renamed = _other_name_objection(cib, order, entry) or _surplus_objection(cib, order, entry)
    if renamed is not None:
        return renamed
    if order.action is ActionName.START and _is_on_its_way(cib, order) and entry.rules.migration_counts_on_both:
        text = f"{order.resource} is being migrated to or from {order.node}"
        return Refusal(RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS, text)
    is_fencing_enabled = ClusterProperties(cib.in_force).boolean("fencing-enabled")
    lost = unfenced_holders(cib, order.resource) if entry.rules.fence_before_recovery and is_fencing_enabled else ()
    starting = starting_on_others(cib, order.resource, order.node) if entry.rules.open_orders_possibly_active else ()
    if not is_fencing_enabled:  # Then nothing ends the orders of a lost node, and they are not waited for.
        starting = tuple(name for name in starting if cib.status.nodes[name].state is NodeState.ONLINE)
    active = active_on_others(cib, order.resource, order.node) if entry.rules.one_active_copy else ()
    others = {*lost, *starting, *active} - {_migration_source(cib, order)}
    if not others or len(others) < copies_of(cib).most(order.resource):
        return None
    for names, words in (
        (lost, f"{order.resource} may be active on {', '.join(lost)}, lost and not fenced"),
        (starting, f"{order.resource} is being started on {', '.join(starting)}"),
        (active, f"{order.resource} may be active on {', '.join(active)}"),
    ):
        if others & set(names):
            return Refusal(RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS, words)
    return None


def _other_name_objection(cib: Cib, order: Order, entry: Entry) -> Refusal | None:
    """Refuse to run under one name what may run under another: it was renamed, or its name is to run something else."""
    others = under_other_names(cib, order) if entry.rules.one_active_copy else ()
    if not others:
        return None
    text = f"{' and '.join(others)} may be active, started by the same agent with the same parameters"
    return Refusal(RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS, text)


def _surplus_objection(cib: Cib, order: Order, entry: Entry) -> Refusal | None:
    """Refuse to start an instance of a unique clone while as many others as there may be are active, or may be."""
    is_start = order.action is ActionName.START and entry.rules.one_active_copy
    others = active_siblings(cib, order.resource) if is_start else ()
    if not others or len({name for _, name in others}) < copies_of(cib).most_instances(order.resource):
        return None
    text = f"{' and '.join(f'{name} on {node}' for node, name in others)} may be active, and there may be no more"
    return Refusal(RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS, text)


def _is_on_its_way(cib: Cib, order: Order) -> bool:
    """Return whether a live migration may bring the resource of an order to its node, or back to it.

    The migrating resource may have become a clone meanwhile, whose additional copy could start on that node.
    """
    return order.resource in migrating_to_or_from(cib, order.node)


def _migration_source(cib: Cib, order: Order) -> NodeName | None:
    """Return the source of the live migration that an order completes: it still counts as running the one copy.

    A lost source may have taken the copy back, and is fenced first: then None is returned.
    """
    source = order.other_node if order.action is ActionName.MIGRATE_FROM else None
    if source is None or source not in cib.status.nodes or cib.status.nodes[source].state is NodeState.LOST:
        return None
    return source


def _promotion_objection(cib: Cib, order: Order, entry: Entry) -> Refusal | None:
    """Refuse a promotion that could make one promoted instance too many."""
    if not entry.rules.one_active_copy:
        return None
    judge = possibly_promoted if entry.rules.unverified_may_be_promoted else known_promoted
    others = [(name, order.resource) for name in promoted_on_others(cib, order.resource, order.node, judge)]
    others += promoted_siblings(cib, order.resource, judge)
    if not ClusterProperties(cib.in_force).boolean("fencing-enabled"):
        others = [each for each in others if cib.status.nodes[each[0]].state is NodeState.ONLINE]
    if not others or len(others) < copies_of(cib).most_promoted(order.resource):
        return None
    places = (name if copy == order.resource else f"{name} as {copy}" for name, copy in others)
    text = f"{order.resource} may be promoted on {', '.join(places)}"
    return Refusal(RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS, text)


def void_orders(cib: Cib, command: commands.VoidOrders, entry: Entry) -> Verdict:
    """Mark orders as no longer wanted; they stay open until their executor answers."""
    controller = cib.status.controller
    if entry.rules.refuse_old_term and (controller is None or controller.term != command.dc_term):
        return refuse(cib, RefusalCode.OLD_TERM, f"term {command.dc_term} is not the DC's")
    wanted = frozenset(command.keys)
    nodes: dict[NodeName, NodeStatus] = {}
    changes: list[Change] = []
    for name, status in cib.status.nodes.items():
        voided = {
            key: replace(order, is_voided=True)
            for key, order in status.orders.items()
            if key in wanted and not order.is_voided
        }
        if not voided:
            continue
        kept = {key: order for key, order in status.orders.items() if key not in voided}
        because = f": {command.reason}" if command.reason else ""
        stays = voided if entry.rules.open_orders_possibly_active else {}
        nodes[name] = replace(status, orders={**kept, **stays})
        changes.extend(
            change(ChangeKind.ORDER_VOIDED, f"{_words(order)} on {name} is no longer wanted{because}", node=name,
                   resource=order.resource, facts=_facts_of(order))
            for order in voided.values()
        )
    return accept(with_nodes(cib, nodes), *changes)


def record_results(cib: Cib, command: commands.RecordResults, entry: Entry) -> Verdict:
    """Record an executor's results; only those of the node's present incarnation, while it is online, are accepted."""
    status = cib.status.nodes.get(command.node)
    is_older = status is not None and status.incarnation != command.incarnation
    if status is None or (is_older and entry.rules.close_orders_of_older_incarnations):
        return refuse(cib, RefusalCode.OLD_INCARNATION, f"that incarnation of {command.node} is over")
    if status.state is not NodeState.ONLINE:
        return refuse(cib, RefusalCode.WRONG_NODE_STATE, f"{command.node} is {status.state}")
    changes: list[Change] = []
    is_start_fatal = ClusterProperties(cib.in_force).boolean("start-failure-is-fatal")
    for result in command.results:
        status, happened = _record(status, result, entry, is_start_fatal=is_start_fatal)
        changes.extend(happened)
    before = cib.status.nodes[command.node].orders
    not_begun = before.keys() & {each.order for each in command.results if each.kind is ResultKind.NOT_BEGUN}
    if not entry.rules.migration_counts_on_both:
        return accept(without_unused_claims(with_node(cib, status), command.node, not_begun), *changes)
    recorded = with_node(cib, _with_doubts_of_migrations(cib, status))
    recorded = without_unused_claims(recorded, command.node, not_begun)
    for result in command.results:
        is_cut_off = result.kind is ResultKind.UNKNOWN and result.status is not ExecutionStatus.UNKNOWN
        if is_cut_off and result.order is not None and result.order in before:
            recorded = with_undecided(recorded, before[result.order], result.exit_reason, entry.at)
    return accept(recorded, *changes)


def _with_doubts_of_migrations(cib: Cib, status: NodeStatus) -> NodeStatus:
    """Keep resources unverified whose migration is open on another node, whatever was found: they may still arrive."""
    known = cib.status.nodes[status.name]
    answered = known.unverified - status.unverified
    kept = {order.resource: order for order in migrations_at(cib, status.name) if order.resource in answered} \
        if answered else {}
    if not kept:
        return status
    # Sorted: the order of a set differs between processes, and replicas are compared by the bytes of their CIBs.
    doubted = {
        resource: with_expected_arrival(status, status.histories.get(resource) or known.histories[resource], order)
        for resource, order in sorted(kept.items())
    }
    return replace(
        status,
        histories={**status.histories, **doubted},
        probed=status.probed - frozenset(kept),
        unverified=status.unverified | frozenset(kept),
    )


def _record(
    status: NodeStatus, result: OperationResult, entry: Entry, *, is_start_fatal: bool
) -> tuple[NodeStatus, list[Change]]:
    order = status.orders.get(result.order) if result.order is not None else None
    what = f"{result.operation} of {result.resource} on {status.name}"
    if result.order is not None:
        status = replace(status, orders={key: item for key, item in status.orders.items() if key != result.order})
    if result.operation == ActionName.NOTIFY:  # Its result has no consequences.
        text = f"{what} ended with exit code {int(result.exit_code)}"
        return status, [_ended(ChangeKind.OPERATION_SUCCEEDED, text, status.name, result, "ok")]
    if result.kind is ResultKind.NOT_BEGUN:
        text = f"{what} was not begun: {result.exit_reason}"
        return status, [_ended(ChangeKind.ORDER_NOT_BEGUN, text, status.name, result, "not-begun")]
    known = status.histories.get(result.resource)
    if known is None and order is None:
        return status, []
    history = known if known is not None else _of_order(order)
    history = after_reload(history, order, result) if entry.rules.reload_keeps_both else history
    if order is not None and result.kind is ResultKind.UNKNOWN and order.action in BEGINNINGS:
        is_kept = order.action is ActionName.START and entry.rules.unverified_is_probed
        history = _in_doubt(history, order, result) if is_kept else _begun_by(history, order)
        if order.action is ActionName.MIGRATE_FROM and entry.rules.migration_counts_on_both:
            history = with_expected_arrival(status, history, order)
    status = replace(status, last_call_id=max(status.last_call_id, result.call_id))
    if result.kind is ResultKind.UNKNOWN:
        doubted = frozenset({result.resource}) if entry.rules.unverified_is_probed else frozenset()
        status = replace(
            status,
            histories={**status.histories, result.resource: history},
            unverified=status.unverified | doubted,
            probed=status.probed - doubted,
        )
        text = f"the outcome of {what} is unknown: {result.exit_reason}"
        return status, [_ended(ChangeKind.OUTCOME_UNKNOWN, text, status.name, result, "unknown")]
    if _is_overtaken(history, result):
        return status, []
    made, changes = _record_finished(status, history, order, result, is_start_fatal=is_start_fatal)
    has_left = result.operation == ActionName.MIGRATE_TO and result.exit_code is ExitCode.OK
    if has_left and entry.rules.migration_counts_on_both:
        # It counts as active until it was stopped here, and must not be taken for a running instance before that.
        made = replace(made, unverified=made.unverified | {result.resource})
    return replace(made, locks=_locks(status, order, result, entry)), changes


def _is_overtaken(history: ResourceHistory, result: OperationResult) -> bool:
    """Return whether a later, more significant action is recorded: proposals may be committed in another order."""
    key = operation_key(result.operation, result.interval_ms)
    later = [(known, record) for known, record in history.records.items() if record.call_id > result.call_id]
    return any(
        known == key or record.is_probe or record.operation in _ENDS_MONITORS
        for known, record in later
    )


def _of_order(order: Order | None) -> ResourceHistory:
    assert order is not None
    return history_of(order)


def _in_doubt(history: ResourceHistory, order: Order, result: OperationResult) -> ResourceHistory:
    """Return a history in which a start of unknown outcome may have made the resource active.

    Earlier records, such as a stop, no longer count: a probe that could not find out must not fall back on them.
    """
    begun = replace(result, exit_code=ExitCode.UNKNOWN, status=ExecutionStatus.UNKNOWN)
    return _with_record(history, order, _as_record(history, order, begun, _START), _START)


def _settled(history: ResourceHistory) -> ResourceHistory:
    """Return a history without an undecided start or arrival: a probe has given the answer."""
    records = {
        key: item
        for key, item in history.records.items()
        if not (item.is_expected_arrival or (item.is_undecided and key == _START))
    }
    return history if len(records) == len(history.records) else replace(history, records=records)


def _begun_by(history: ResourceHistory, order: Order) -> ResourceHistory:
    return replace(
        history,
        agent=order.agent,
        parameters=order.lasting_parameters,
        definition=order.definition,
        devices=order.devices,
        reloads=(),
    )


def _record_finished(
    status: NodeStatus, history: ResourceHistory, order: Order | None, result: OperationResult, *, is_start_fatal: bool
) -> tuple[NodeStatus, list[Change]]:
    reported = result
    if result.operation == ActionName.RELOAD_AGENT and result.exit_code is result.target_exit_code:
        # From now on it counts as started with the new parameters.
        result = _as_start(result, history.records.get(operation_key(ActionName.START, 0)))
        if order is not None:
            history = replace(history, parameters=order.lasting_parameters, definition=order.definition)
    key = operation_key(result.operation, result.interval_ms)
    record = _as_record(history, order, result, key)
    if reported.operation == ActionName.RELOAD_AGENT and result is not reported:
        history, record = _in_the_same_role(history, record)
    if history.reloads and is_not_found(record):
        return _looked_for_next(status, history, record)
    if is_found(record):
        history = settled_reloads(history)
    is_probe = result.operation == ActionName.MONITOR and result.interval_ms == 0
    is_in_vain = could_not_look(record) and history_says_active(history)
    if not (is_in_vain and key in history.records):  # An earlier probe may be the only record that it runs.
        history = _with_record(history, order, record, key)
    if record.is_failure:
        history = _with_failure(history, record, key, is_fatal=is_start_fatal and record.operation == ActionName.START)
    is_answered = is_probe and not is_in_vain
    if is_answered:
        history = _settled(history)
    is_nothing_left = is_probe and record.exit_code is ExitCode.NOT_RUNNING and not history.fail_counts
    histories = {name: item for name, item in status.histories.items() if name != result.resource}
    if not is_nothing_left:
        histories[result.resource] = history
    is_arrival = result.operation == ActionName.MIGRATE_FROM and not record.is_failure
    is_conclusive = is_arrival or is_answered or result.operation in (ActionName.START, ActionName.STOP)
    updated = replace(
        status,
        histories=histories,
        probed=status.probed | {result.resource} if is_nothing_left else status.probed - {result.resource},
        unverified=status.unverified - {result.resource} if is_conclusive else status.unverified,
    )
    return updated, [_change_of(status.name, record, reported)]


def _in_the_same_role(history: ResourceHistory, record: OperationRecord) -> tuple[ResourceHistory, OperationRecord]:
    """Return a history and the start that a reload is recorded as, such that a promoted resource stays promoted.

    A start as the newest record would make it unpromoted. So the newest other record, such as the promote, stays the
    newest and gets the reload's number, and the start is numbered like the one before.
    """
    if not history_says_promoted(history):
        return history, record
    lasting = [(each.call_id, key) for key, each in history.records.items() if not each.interval_ms]
    _, newest = max(lasting, default=(0, _START))
    if newest == _START:
        return history, record
    started = history.records.get(_START)
    before = started.call_id if started is not None else min(lasting)[0] - 1
    records = {**history.records, newest: replace(history.records[newest], call_id=record.call_id)}
    return replace(history, records=records), replace(record, call_id=before)


def _looked_for_next(
    status: NodeStatus, history: ResourceHistory, record: OperationRecord
) -> tuple[NodeStatus, list[Change]]:
    """Have a resource probed by an interrupted reload's parameters: not finding it by the old ones proves nothing."""
    updated = replace(
        status,
        histories={**status.histories, history.resource: looked_for_next(history)},
        probed=status.probed - {history.resource},
        unverified=status.unverified | {history.resource},
    )
    text = f"{record.operation} of {history.resource} on {status.name} found nothing by its older parameters; " \
           "a reload was cut off, so those of the reload are looked for"
    return updated, [change(ChangeKind.OUTCOME_UNKNOWN, text, node=status.name, resource=history.resource)]


def _as_start(result: OperationResult, started: OperationRecord | None) -> OperationResult:
    """Return the result of a reload as that of a start; parameters that only a restart changes stay as they were."""
    result = replace(result, operation=str(ActionName.START))
    if started is None or started.restart_parameters is None:
        return result
    return replace(result, restart_digest=started.restart_digest, restart_parameters=started.restart_parameters)


def _locks(
    status: NodeStatus, order: Order | None, result: OperationResult, entry: Entry
) -> Mapping[ResourceId, WallTime]:
    """Return a node's shutdown locks: on what was stopped because it shuts down, until that has started there again.

    A lock begins when the DC ordered the stop: by the DC's clock it ends, and the node's may differ.
    """
    is_success = result.status is ExecutionStatus.DONE and result.exit_code is result.target_exit_code
    if order is None or not is_success:
        return status.locks
    if order.action is ActionName.STOP and LOCKS in order.meta and order.resource not in status.locks:
        return {**status.locks, order.resource: order.issued_at or entry.at}
    if order.action is ActionName.START and order.resource in status.locks:
        return {name: at for name, at in status.locks.items() if name != order.resource}
    return status.locks


def _as_record(
    history: ResourceHistory, order: Order | None, result: OperationResult, key: str
) -> OperationRecord:
    previous = history.records.get(key)
    is_same = previous is not None and (previous.exit_code, previous.status, previous.exit_reason) == (
        result.exit_code,
        result.status,
        result.exit_reason,
    )
    return OperationRecord(
        operation=result.operation,
        interval_ms=result.interval_ms,
        call_id=result.call_id,
        exit_code=result.exit_code,
        status=result.status,
        target_exit_code=result.target_exit_code,
        run_at=result.run_at,
        changed_at=previous.changed_at if previous is not None and is_same else result.run_at,
        executed_ms=result.executed_ms,
        queued_ms=result.queued_ms,
        exit_reason=result.exit_reason,
        digest=order.digest if order is not None else previous.digest if previous is not None else "",
        restart_digest=result.restart_digest,
        restart_parameters=result.restart_parameters,
        order=result.order,
        migrate_source=_meta_node(order, "migrate_source"),
        migrate_target=_meta_node(order, "migrate_target"),
    )


def _meta_node(order: Order | None, name: str) -> NodeName | None:
    found = order.meta.get(name) if order is not None else None
    return NodeName(found) if found else None


def _with_record(
    history: ResourceHistory, order: Order | None, record: OperationRecord, key: str
) -> ResourceHistory:
    """Keep the records that still count: a start, stop or probe supersedes what came before it.

    Any other action on a running resource ends its recurring monitors; those that are wanted afterwards are ordered
    again.
    """
    if record.operation == ActionName.CANCEL:
        name = operation_key(ActionName.MONITOR, record.interval_ms)
        return replace(history, records={known: item for known, item in history.records.items() if known != name})
    if record.status is ExecutionStatus.CANCELLED:
        return history
    if record.is_probe and order is not None and not history_says_active(history):
        # Nothing of what was configured before is left here: what the probe finds goes by what it asked with.
        history = replace(
            history, agent=order.agent, parameters=order.lasting_parameters, definition=order.definition
        )
    is_over = record.operation == ActionName.STOP and not record.is_failure
    is_reload = order is not None and order.action is ActionName.RELOAD_AGENT
    is_begun = record.operation in BEGINNINGS and not is_reload
    if is_begun or is_over or (record.is_probe and record.exit_code is ExitCode.NOT_RUNNING):
        records = {key: record}
    elif record.operation == ActionName.MONITOR:
        records = {**history.records, key: record}
    else:
        records = {known: item for known, item in history.records.items() if not item.interval_ms}
        records[key] = record
    history = replace(history, records=records)
    if is_begun and order is not None:
        history = _begun_by(history, order)
    return history


def _with_failure(history: ResourceHistory, record: OperationRecord, key: str, *, is_fatal: bool) -> ResourceHistory:
    known = history.fail_counts.get(key)
    is_final = is_fatal or record.operation == ActionName.STOP
    count = INFINITY if is_final else add(known.count if known is not None else 0, 1)
    failure = FailCount(record.operation, record.interval_ms, count, record.ended_at)
    return replace(history, fail_counts={**history.fail_counts, key: failure}, last_failure=record)


def _change_of(node: NodeName, record: OperationRecord, result: OperationResult) -> Change:
    what = f"{result.operation} of {result.resource} on {node}"
    reason = f": {record.exit_reason}" if record.exit_reason else ""
    if record.is_probe and record.exit_code is ExitCode.NOT_RUNNING:
        text = f"{result.resource} is not running on {node}"
        return _ended(ChangeKind.OPERATION_SUCCEEDED, text, node, result, "not-running")
    if record.is_probe and record.exit_code is ExitCode.OK:
        text = f"{result.resource} is running on {node}"
        return _ended(ChangeKind.OPERATION_SUCCEEDED, text, node, result, "running")
    if record.is_failure:
        answer = record.exit_code.name.lower()
        text = f"{what} failed: {answer} ({record.status}){reason}"
        is_answered = record.status in (ExecutionStatus.DONE, ExecutionStatus.ERROR)
        cause = answer if is_answered else str(record.status)
        return _ended(ChangeKind.OPERATION_FAILED, text, node, result, "failed", cause=cause)
    text = f"{what} succeeded in {record.executed_ms} ms"
    return _ended(ChangeKind.OPERATION_SUCCEEDED, text, node, result, "ok")


def _ended(
    kind: ChangeKind, text: str, node: NodeName, result: OperationResult, outcome: str, *, cause: str = ""
) -> Change:
    facts = Facts(
        action=result.operation, outcome=outcome, cause=cause, order=str(result.order or ""),
        interval=str(result.interval_ms or ""),
    )  # fmt: skip
    return change(kind, text, node=node, resource=result.resource, facts=facts)


def _facts_of(order: Order, *, reason: str = "") -> Facts:
    return Facts(
        action=str(order.action), order=str(order.key), reason=reason, interval=str(order.interval_ms or "")
    )


def _words(order: Order) -> str:
    if order.action is ActionName.MONITOR and order.interval_ms == 0:
        return f"probe of {order.resource}"
    return f"{order.action} of {order.resource}"
