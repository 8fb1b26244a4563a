"""The commands by which a transition issues orders and voids them, each of a size that the store takes."""

from collections.abc import Iterator, Sequence

from haclusterd.cib.commands import IssueOrders, VoidOrders
from haclusterd.model.cluster import Cib
from haclusterd.model.graph import GraphAction
from haclusterd.model.ids import OrderKey, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName
from haclusterd.model.orders import Order
from haclusterd.model.words import bytes_in_log

BATCH_BYTES = 24_000
"""Approximate size of the orders in one command: encoded it stays well below the store's limit."""
ORDER_BYTES = 700
"""Approximate size of an order without its parameters."""
VOIDED_MAX = 1000
"""Number of keys in one command: with many nodes more orders can be open than one entry of the log can name."""


def order_key(cluster_uuid: str, term: Term, transition: int, number: int) -> OrderKey:
    """Return the identity of an order: TERM.TRANSITION.NUMBER, and eight digits of the cluster's uuid.

    By it executors recognise agents that an earlier incarnation left at work in this boot. That incarnation may have
    been in another cluster, restored or formed on machines that were not rebooted, whose terms and numbers may be the
    same.
    """
    return OrderKey("-".join(filter(None, (f"{term}.{transition}.{number}", cluster_uuid[-8:]))))


def order_of(cib: Cib, action: GraphAction, term: Term, transition: int, wall: WallTime) -> Order | None:
    """Return the order of an action, issued at `wall`; None: the action has no agent, or its node is not there."""
    status = cib.status.nodes.get(action.node) if action.node is not None else None
    if status is None or status.incarnation is None or action.resource is None or action.agent is None:
        return None
    return Order(
        key=order_key(cib.cluster_uuid, term, transition, action.id),
        node=status.name,
        incarnation=status.incarnation,
        dc_term=term,
        resource=action.resource,
        action=ActionName(action.name),
        interval_ms=action.interval_ms,
        agent=action.agent,
        parameters=action.parameters,
        meta=action.meta,
        timeout_ms=action.timeout_ms,
        deadline_ms=max(action.timeout_ms, 10_000),
        target_exit_code=action.target_exit_code,
        devices=action.devices,
        device_memory_mib=action.device_memory_mib,
        digest=action.digest,
        definition=action.definition,
        resource_parameters=action.resource_parameters,
        start_delay_ms=action.start_delay_ms,
        reason=action.reason,
        issued_at=wall,
        transition=transition,
        is_probe=action.is_probe,
    )


def issuing(term: Term, units: Sequence[tuple[Order, ...]]) -> Iterator[IssueOrders]:
    """Yield the commands that issue orders; a unit (the orders of a gang, or one order) is not split."""
    batch: list[Order] = []
    size = 0
    for unit in units:
        weight = sum(map(_weight, unit))
        if batch and size + weight > BATCH_BYTES:
            yield IssueOrders(term, tuple(batch))
            batch, size = [], 0
        batch.extend(unit)
        size += weight
    if batch:
        yield IssueOrders(term, tuple(batch))


def voiding(term: Term, keys: Sequence[OrderKey], reason: str) -> Iterator[VoidOrders]:
    """Yield the commands that void orders."""
    for start in range(0, len(keys), VOIDED_MAX):
        yield VoidOrders(term, tuple(keys[start : start + VOIDED_MAX]), reason)


def _weight(order: Order) -> int:
    """Return the approximate size of an order in the log, in bytes."""
    own = order.resource_parameters or {}
    pairs = (*order.parameters.items(), *order.meta.items(), *own.items())
    return ORDER_BYTES + bytes_in_log(order.reason) + sum(bytes_in_log(text) for pair in pairs for text in pair)
