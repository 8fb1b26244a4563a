"""Which resources may be active where, judged by the CIB alone and always conservatively (safety.md §1).

The scheduler knows more about each resource; wrong answers to these few questions corrupt data, so they are asked
again, independently, where orders are issued and accepted.
"""

from collections.abc import Callable

from haclusterd.model.activity import HOLDING, may_be_active_or_begin
from haclusterd.model.activity import history_says_active as history_says_active
from haclusterd.model.activity import history_says_promoted as history_says_promoted
from haclusterd.model.activity import known_promoted as known_promoted
from haclusterd.model.activity import may_be_active as may_be_active
from haclusterd.model.activity import possibly_active as possibly_active
from haclusterd.model.activity import possibly_promoted as possibly_promoted
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.copies import Copies
from haclusterd.model.ids import NodeName, ResourceId, base_of
from haclusterd.model.orders import Order
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.renaming import has_been_started, may_be_configured, names_running, service_of


def possibly_serving(status: NodeStatus) -> frozenset[ResourceId]:
    """Return what of `possibly_active` is more than a fence device, which runs nothing."""
    return frozenset(name for name in possibly_active(status) if not _is_only_a_device(status, name))


def _is_only_a_device(status: NodeStatus, resource: ResourceId) -> bool:
    """Return whether all that is ordered or recorded of a name on a node is of a fence device.

    The name may stand for a service by now whose start is ordered, while the newest record is still of the device.
    """
    history = status.histories.get(resource)
    agents = [order.agent for order in status.orders.values() if order.resource == resource and order.is_activating]
    agents += [history.agent] if history is not None else []
    return bool(agents) and all(agent.standard == "stonith" for agent in agents)


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
    """Return the other online nodes on which a resource is active by its history, or may be."""
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
    return tuple(
        f"{name} on {status.name}"
        for status in _holding(cib)
        for name in sorted(_of_primitive(status, base, is_unique=not colon))
        if name in possibly_active(status)
    )


def _of_primitive(status: NodeStatus, base: str, *, is_unique: bool) -> set[ResourceId]:
    """Return the known names of a primitive's copies on a node: numbered ones of a unique clone, or the plain one."""
    if not is_unique:
        name = ResourceId(base)
        is_known = name in status.histories or any(order.resource == name for order in status.orders.values())
        return {name} if is_known or name in status.unverified else set()
    known = {*status.histories, *status.unverified, *(order.resource for order in status.orders.values())}
    return {name for name in known if name.startswith(f"{base}:")}


def under_other_names(cib: Cib, order: Order) -> tuple[str, ...]:
    """Return under which other names, and where, what an order makes active may be active already: `db on n1`.

    Names that are configured to run the same service beside the order's own name are left out: they are separate
    services. So is everything if the service already runs under the order's own name.
    """
    service = service_of(order)
    if not service.is_recognisable:
        return ()
    base = base_of(order.resource)
    holding = _holding(cib)
    found = [
        (status.name, name)
        for status in holding
        for name in sorted(names_running(status, service))
        if base_of(name) != base
    ]
    if not found:
        return ()
    configuration = cib.configuration
    if may_be_configured(configuration, base, service):
        apart = {name for _, name in found if may_be_configured(configuration, base_of(name), service)}
        found = [(node, name) for node, name in found if name not in apart]
    own = (history for status in holding for name, history in status.histories.items() if base_of(name) == base)
    if not found or has_been_started(own, service):
        return ()
    return tuple(f"{name} on {node}" for node, name in found)


def _holding(cib: Cib) -> list[NodeStatus]:
    """Return the nodes on which something counts as active: a lost one until it is fenced, where fencing is enabled."""
    states = HOLDING if ClusterProperties(cib.in_force).boolean("fencing-enabled") else (NodeState.ONLINE,)
    return [status for _, status in sorted(cib.status.nodes.items()) if status.state in states]


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

    A resource without an instance number has none.
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


def active_siblings(cib: Cib, resource: ResourceId) -> tuple[tuple[NodeName, ResourceId], ...]:
    """Return where other instances of a unique clone may be active: of `db:0`, (n2, `db:1`); they can share a node.

    A lost node counts until it is fenced, where fencing is enabled. A resource without an instance number has none.
    """
    base, colon, _ = resource.partition(":")
    if not colon:
        return ()
    return tuple(
        (status.name, name)
        for status in _holding(cib)
        for name in sorted(_of_primitive(status, base, is_unique=True) - {resource})
        if may_be_active_or_begin(status, name)
    )


def copies_of(cib: Cib) -> Copies:
    """Return the limits on copies in this CIB's configuration."""
    return Copies(cib.in_force, sum(1 for member in cib.members.values() if not member.is_witness))
