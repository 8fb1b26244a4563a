"""What the orders of a live migration imply for the node at the other end (safety.md §1, "Live migration").

The order of a migration is open on one node, and the resource may be active on two. So on the other node it is
`unverified` from the commit of the order on. This doubt is independent of the order: it stays when the order ends, and
when the node with the order is fenced, restarts or is removed. No probe removes it while the order is open, because the
resource may arrive after the answer.
"""

from haclusterd.cib.verdict import Entry, with_node
from haclusterd.model.activity import HOLDING, history_says_active, started_as
from haclusterd.model.cluster import Cib, NodeStatus
from haclusterd.model.history import OperationRecord, ResourceHistory, history_of, operation_key
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import Order
from haclusterd.model.records import replace

_RECEIVED = operation_key(ActionName.MIGRATE_FROM, 0)


def with_doubt(status: NodeStatus, order: Order) -> NodeStatus:
    """Return a node's status in which the resource of a migration, ordered on another node, may be active."""
    history = status.histories.get(order.resource) or history_of(order)
    if order.action is ActionName.MIGRATE_TO and started_as(status, order.resource) is None:
        # Records of an earlier definition no longer count: what may arrive is defined by the order.
        parameters, definition = order.lasting_parameters, order.definition
        history = replace(
            history, agent=order.agent, parameters=parameters, definition=definition, devices=order.devices
        )
    return replace(
        status,
        histories={**status.histories, order.resource: with_expected_arrival(status, history, order)},
        probed=status.probed - {order.resource},
        unverified=status.unverified | {order.resource},
    )


def with_expected_arrival(status: NodeStatus, history: ResourceHistory, order: Order) -> ResourceHistory:
    """Return a history in which the resource of a migration, ordered here or on the other node, may arrive.

    Earlier records, such as a stop or a probe that found nothing, no longer count: a probe that could not find out must
    not fall back on them. The record corresponds to Pacemaker's record of a `migrate_from` that has not ended.
    """
    if history_says_active(history):
        return history
    source = order.other_node if order.action is ActionName.MIGRATE_FROM and order.node == status.name else order.node
    record = _received(status, source, ExecutionStatus.PENDING, "", order.issued_at)
    return replace(history, records={**history.records, _RECEIVED: record})


def _received(
    status: NodeStatus, source: NodeName | None, state: ExecutionStatus, reason: str, at: WallTime
) -> OperationRecord:
    """Return a record of a `migrate_from` of unknown outcome, newer than all other records."""
    return OperationRecord(
        operation=ActionName.MIGRATE_FROM,
        interval_ms=0,
        call_id=status.last_call_id + 1,
        exit_code=ExitCode.UNKNOWN,
        status=state,
        target_exit_code=ExitCode.OK,
        run_at=at,
        changed_at=at,
        exit_reason=reason,
        migrate_source=source,
        migrate_target=status.name,
    )


def with_undecided(cib: Cib, order: Order, reason: str, at: WallTime) -> Cib:
    """Return the CIB after a `migrate_to` that was interrupted, by whatever killed its agent.

    What a probe then finds on the target may be an incomplete copy: it has to be stopped, as after a `migrate_from`
    that failed (Pacemaker Explained, "Migrating Resources").
    """
    target = cib.status.nodes.get(order.other_node) if order.other_node is not None else None
    if order.action is not ActionName.MIGRATE_TO or target is None or target.state not in HOLDING:
        return cib
    doubted = with_doubt(target, order)
    history = doubted.histories[order.resource]
    record = _received(doubted, order.node, ExecutionStatus.UNKNOWN, reason, at)
    records = {**history.records, _RECEIVED: record}
    histories = {**doubted.histories, order.resource: replace(history, records=records)}
    return with_node(cib, replace(doubted, histories=histories))


def without_orders_of(cib: Cib, dead: NodeStatus, reason: str, entry: Entry) -> Cib:
    """Return the CIB without the open orders of an ended incarnation; the outcome of its migrations is unknown."""
    if entry.rules.migration_counts_on_both:
        for order in dead.orders.values():
            cib = with_undecided(cib, order, reason, entry.at)
    return cib
