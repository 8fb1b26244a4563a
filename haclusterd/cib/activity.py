"""Which resources may be active where, judged by the CIB alone and always on the side of caution (safety.md §1).

The scheduler knows more about each resource; these few questions are the ones whose wrong answer corrupts data, so they
are asked again, independently, where orders are issued and accepted.
"""

from collections.abc import Callable

from haclusterd.model.activity import HOLDING, started_as
from haclusterd.model.activity import history_says_active as history_says_active
from haclusterd.model.activity import history_says_promoted as history_says_promoted
from haclusterd.model.activity import known_promoted as known_promoted
from haclusterd.model.activity import may_be_active as may_be_active
from haclusterd.model.activity import possibly_active as possibly_active
from haclusterd.model.activity import possibly_promoted as possibly_promoted
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.copies import Copies
from haclusterd.model.history import ResourceHistory
from haclusterd.model.ids import UNITS, NodeName, ResourceId
from haclusterd.model.orders import Order
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.renaming import has_run_beside, is_run_by


def unfenced_holders(cib: Cib, resource: ResourceId) -> tuple[NodeName, ...]:
    """Return the lost, not yet fenced nodes on which a resource may be active."""
    return tuple(
        sorted(
            name
            for name, status in cib.status.nodes.items()
            if status.state is NodeState.LOST and resource in possibly_active(status)
        )
    )


def starting_on_others(cib: Cib, resource: ResourceId, node: NodeName) -> tuple[NodeName, ...]:
    """Return the other nodes that hold an open activating order for a resource."""
    return tuple(
        sorted(
            name
            for name, status in cib.status.nodes.items()
            if name != node
            and any(order.resource == resource and order.is_activating for order in status.orders.values())
        )
    )


def active_on_others(cib: Cib, resource: ResourceId, node: NodeName) -> tuple[NodeName, ...]:
    """Return the other online nodes on which a resource is active by its history, or nobody knows whether it is."""
    return tuple(
        sorted(
            name
            for name, status in cib.status.nodes.items()
            if name != node and status.state is NodeState.ONLINE and may_be_active(status, resource)
        )
    )


def former_names_active(cib: Cib, resource: ResourceId) -> tuple[str, ...]:
    """Return under which other names, and where, the resource's primitive may be active: `db on n1`.

    A primitive `db` has the copies `db:0`, `db:1` ... while its clone is unique, and `db` otherwise; never both.
    A lost node counts until it is fenced, where fencing is enabled.
    """
    base, colon, _ = resource.partition(":")
    states = HOLDING if ClusterProperties(cib.in_force).boolean("fencing-enabled") else (NodeState.ONLINE,)
    return tuple(
        f"{name} on {node}"
        for node, status in sorted(cib.status.nodes.items())
        if status.state in states
        for name in sorted(_of_primitive(status, base, is_unique=not colon))
        if name in possibly_active(status)
    )


def _of_primitive(status: NodeStatus, base: str, *, is_unique: bool) -> set[ResourceId]:
    """Return the names that are known on a node of a primitive's copies, as those of a unique clone or as others."""
    if not is_unique:
        name = ResourceId(base)
        is_known = name in status.histories or any(order.resource == name for order in status.orders.values())
        return {name} if is_known or name in status.unverified else set()
    known = {*status.histories, *status.unverified, *(order.resource for order in status.orders.values())}
    return {name for name in known if name.startswith(f"{base}:")}


def under_names_given_up(cib: Cib, order: Order) -> tuple[str, ...]:
    """Return under which names that are configured no more, and where, what an order starts may be active: `db on n1`.

    It is the same service when agent and parameters are the same, and it has not run under the name of the order since
    it was started under the other one: somebody has renamed it, or deleted and configured it again. Without parameters
    the name is what tells two apart.
    """
    if not (order.definition and (order.parameters or order.agent.standard in UNITS)):
        return ()
    states = HOLDING if ClusterProperties(cib.in_force).boolean("fencing-enabled") else (NodeState.ONLINE,)
    return tuple(
        f"{name} on {node}"
        for node, status in sorted(cib.status.nodes.items())
        if status.state in states
        for name in _given_up(cib, status)
        if name != order.resource and _is_renamed(cib, started_as(status, name), order)
    )


def _given_up(cib: Cib, status: NodeStatus) -> list[ResourceId]:
    known = {*status.histories, *(order.resource for order in status.orders.values())}
    configured = cib.configuration.resources
    return sorted(name for name in known if ResourceId(name.partition(":")[0]) not in configured)


def _is_renamed(cib: Cib, started: Order | ResourceHistory | None, order: Order) -> bool:
    if started is None or not is_run_by(started, order.agent, order.definition):
        return False
    own = (status.histories.get(order.resource) for status in cib.status.nodes.values())
    return not has_run_beside([history for history in own if history is not None], started)


def promoted_on_others(
    cib: Cib,
    resource: ResourceId,
    node: NodeName,
    judge: Callable[[NodeStatus, ResourceId], bool] = possibly_promoted,
) -> tuple[NodeName, ...]:
    """Return the other nodes on which a resource may be promoted; a lost one counts until it is fenced."""
    return tuple(
        sorted(name for name, status in cib.status.nodes.items() if name != node and judge(status, resource))
    )


def promoted_siblings(
    cib: Cib, resource: ResourceId, judge: Callable[[NodeStatus, ResourceId], bool] = possibly_promoted
) -> tuple[tuple[NodeName, ResourceId], ...]:
    """Return where other instances of a unique clone may be promoted: of `db:0`, (n2, `db:1`); they can share a node.

    Of what has no number of an instance there are none.
    """
    base, colon, _ = resource.partition(":")
    if not colon:
        return ()
    return tuple(
        (node, name)
        for node, status in sorted(cib.status.nodes.items())
        for name in sorted(_of_primitive(status, base, is_unique=True) - {resource})
        if judge(status, name)
    )


def copies_of(cib: Cib) -> Copies:
    """Return the limits on copies in this CIB's configuration."""
    return Copies(cib.in_force, sum(1 for member in cib.members.values() if not member.is_witness))
