"""Makes a bundle's resources: its containers with their addresses and connections, and what runs inside them.

Names, parameters and their order are Pacemaker's, so that what a running cluster started is recognised. Source:
Pacemaker Explained, "Bundles - Containerized Resources".
"""

from collections.abc import Mapping
from ipaddress import AddressValueError, IPv6Address, ip_address

from haclusterd.model.configuration import (
    MAX_REPLICAS,
    AttributeSet,
    Bundle,
    BundleNetwork,
    Clone,
    Operation,
    Primitive,
)
from haclusterd.model.ids import AgentReference, NodeName, ResourceId
from haclusterd.model.ocf import ActionName
from haclusterd.model.records import replace
from haclusterd.model.scores import INFINITY
from haclusterd.model.templates import expanded
from haclusterd.scheduler.model.definition import Definition, Discovery, Variant
from haclusterd.scheduler.model.entities import NodeKind, Replica, Resource
from haclusterd.scheduler.model.meta_attributes import define, resolve_meta
from haclusterd.scheduler.model.readings import boolean
from haclusterd.scheduler.unpack.container_options import REMOTE_PORT, container_parameters
from haclusterd.scheduler.unpack.remote_nodes import add_remote_node, connection_primitive
from haclusterd.scheduler.unpack.resource_builder import Around, ResourceBuilder

_IP_AGENT = AgentReference("ocf", "heartbeat", "IPaddr2")
_MONITOR_MS = 60_000
_CHILD_SCORE = 500
_LAST_HOST = 253
_LAST_OCTET = 255


def build_bundle(item: Bundle, builder: ResourceBuilder) -> Resource | None:
    """Make a bundle; None, with a warning, when its containers could not be controlled."""
    network = item.network or BundleNetwork()
    child = builder.contained_in(item.id, item.primitive) if item.primitive is not None else None
    if item.primitive is not None and not isinstance(child, Primitive):
        builder.warn(f"{item.id} is left out: {item.primitive} cannot be in a bundle")
        return None
    if child is not None and not (network.ip_range_start or network.control_port):
        builder.warn(f"{item.id} is left out: with neither ip-range-start nor control-port nothing reaches {child.id}")
        return None
    promoted_max = max(0, item.promoted_max or 0)
    count = _count(item.replicas, promoted_max or 1)
    if count > MAX_REPLICAS:
        builder.warn(f"{item.id} is left out: it asks for {count} replicas, more than {MAX_REPLICAS}")
        return None
    addresses = _addresses(network.ip_range_start, count)
    if network.ip_range_start and len(set(addresses)) < count:
        builder.warn(f"{item.id} is left out: there are no {count} addresses from {network.ip_range_start} on")
        return None
    taken = builder.taken(_names(item, addresses, count))
    if taken:
        builder.warn(f"{item.id} is left out: it needs the name {taken} for itself")
        return None
    blocks = (*item.meta, *_target_of_attributes(item, child, builder)) if isinstance(child, Primitive) else item.meta
    meta = resolve_meta(blocks, (), None, None, builder.settings)
    per_host = 1 if child is not None and not network.ip_range_start else _count(item.replicas_per_host, 1)
    definition = replace(
        define(Definition(), Variant.BUNDLE, meta, builder.settings),
        clone_max=count,
        clone_node_max=per_host,
        is_unique=per_host > 1,
        promoted_max=promoted_max,
        is_promotable=promoted_max > 0,
        is_interleaved=boolean(meta.get("interleave"), default=False),
        notifies=boolean(meta.get("notify"), default=False),
    )
    bundle = builder.new(item.id, Variant.BUNDLE, definition)
    contents = _Contents(item, bundle, blocks, addresses, builder)
    if not contents.make(child if isinstance(child, Primitive) else None):
        del builder.inventory.by_id[bundle.id]
        return None
    builder.take_scores(bundle)
    return bundle


def _names(item: Bundle, addresses: tuple[str, ...], count: int) -> list[str]:
    """The names of everything that is made for a bundle."""
    made = [f"{item.id}-{number}" for number in range(count)] if item.primitive is not None else []
    made += [f"{item.id}-{item.engine}-{number}" for number in range(count)]
    made += [_address_name(item.id, address) for address in addresses]
    return [*made, f"{item.id}-clone", f"{item.id}-master"]


def _address_name(bundle: ResourceId, address: str) -> str:
    return f"{bundle}-ip-{address.replace(':', '.')}"


def _target_of_attributes(item: Bundle, child: Primitive, builder: ResourceBuilder) -> tuple[AttributeSet, ...]:
    """Return, as a block, whose attributes count for what is inside: unless the bundle says so itself, for all of it.

    Measured with Pacemaker 3; the containers, addresses and connections of 2.1.5 heed only what the bundle says.
    """
    name = "container-attribute-target"
    given = _meta_of(child, builder).get(name)
    if given is None or name in resolve_meta(item.meta, (), None, None, builder.settings):
        return ()
    return (AttributeSet(f"{item.id}-of-{child.id}", ((name, given),)),)


def _meta_of(child: Primitive, builder: ResourceBuilder) -> Mapping[str, str]:
    whole = expanded(child, builder.configuration)
    return resolve_meta(whole.meta, (), None, whole.agent, builder.settings)


def _asks_for_notifications(child: Primitive, builder: ResourceBuilder) -> bool:
    """Tell whether what runs inside has `notify` itself: nobody configured the clone that it becomes."""
    return boolean(_meta_of(child, builder).get("notify"), default=False)


def _count(number: int | None, default: int) -> int:
    return default if number is None else max(1, number)


class _Contents:
    """Makes what is in one bundle."""

    def __init__(
        self,
        item: Bundle,
        bundle: Resource,
        meta: tuple[AttributeSet, ...],
        addresses: tuple[str, ...],
        builder: ResourceBuilder,
    ) -> None:
        self._item = item
        self._bundle = bundle
        self._network = item.network or BundleNetwork()
        self._builder = builder
        self._around = Around(bundle, None, (meta,), (item.parameters,))
        self._addresses = addresses

    def make(self, primitive: Primitive | None) -> bool:
        """Make the clone of the primitive, then one replica after the other; tell whether the former could be made."""
        clone = self._clone(primitive) if primitive is not None else None
        if primitive is not None and clone is None:
            return False
        for number in range(self._bundle.definition.clone_max):
            self._replica(number, clone)
        return True

    def _clone(self, primitive: Primitive) -> Resource | None:
        bundle = self._bundle
        pairs = [
            ("ordered", "true"),
            ("clone-max", str(bundle.definition.clone_max)),
            ("clone-node-max", str(bundle.definition.clone_node_max)),
            ("globally-unique", "true" if bundle.definition.is_unique else "false"),
        ]
        if bundle.definition.is_promotable:
            pairs += [("promotable", "true"), ("promoted-max", str(bundle.definition.promoted_max))]
        if bundle.definition.notifies or _asks_for_notifications(primitive, self._builder):
            pairs.append(("notify", "true"))
        name = f"{bundle.id}-master" if bundle.definition.is_promotable else f"{bundle.id}-clone"
        meta = AttributeSet(f"{bundle.id}-{name}-meta", tuple(pairs))
        clone = self._builder.clone(Clone(ResourceId(name), primitive.id, meta=(meta,)), self._around, primitive)
        if clone is not None:
            bundle.children.append(clone)
        return clone

    def _replica(self, number: int, clone: Resource | None) -> None:
        address = self._addresses[number] if self._addresses else ""
        container = self._add(self._container(number, has_child=clone is not None))
        container.number = number
        container.definition = replace(container.definition, is_replica_container=True)
        replica = Replica(number, container)
        replica.address = address
        if address:
            replica.ip = self._add(self._ip(address))
        if clone is not None:
            replica.child = clone.children[number]
            if address:
                inside = replica.child.definition
                parameters = {**inside.parameters, "pcmk_external_ip": address}
                replica.child.definition = replace(inside, parameters=parameters)
            self._connect(replica, clone)
        self._bundle.replicas.append(replica)

    def _add(self, item: Primitive) -> Resource:
        made = self._builder.primitive(item, self._around)
        assert made is not None, "it is made from no template"
        self._bundle.children.append(made)
        return made

    def _container(self, number: int, *, has_child: bool) -> Primitive:
        name = f"{self._bundle.id}-{self._item.engine}-{number}"
        parameters = container_parameters(
            self._item, f"{self._bundle.id}-{number}", number, self._addresses, has_child=has_child
        )
        return Primitive(
            ResourceId(name),
            AgentReference("ocf", "heartbeat", self._item.engine),
            (AttributeSet(f"{name}-attributes", parameters),),
            operations=(_monitor(name),),
        )

    def _ip(self, address: str) -> Primitive:
        name = _address_name(self._bundle.id, address)
        pairs = [("ip", address)]
        if self._network.host_interface:
            pairs.append(("nic", self._network.host_interface))
        pairs.append(("cidr_netmask", self._network.host_netmask or "32"))
        return Primitive(
            ResourceId(name),
            _IP_AGENT,
            (AttributeSet(f"{name}-attributes", tuple(pairs)),),
            operations=(_monitor(name),),
        )

    def _connect(self, replica: Replica, clone: Resource) -> None:
        """Make the guest node that the container is, and let nothing but the replica's child run there."""
        name = NodeName(f"{self._bundle.id}-{replica.number}")
        builder = self._builder
        self._ban_others(name)
        node = add_remote_node(builder.cib, builder.inventory, name, NodeKind.GUEST, builder.settings)
        node.base_score = -INFINITY
        node.is_bundle_node = True
        builder.take_nodes()
        address = replica.address or "#uname"
        parameters = [("addr", address), ("port", self._network.control_port or REMOTE_PORT)]
        item = connection_primitive(
            ResourceId(name), [("internal_rsc", "true"), ("container", replica.container.id)], parameters
        )
        connection = self._add(item)
        connection.definition = replace(connection.definition, is_nesting_allowed=True)
        for each in builder.inventory.nodes:
            if each.is_remote and each.name in connection.base_scores.allowed:
                _forbid(connection, each.name, f"{each.name} is a remote node")
                connection.base_scores.discovery[each.name] = Discovery.NEVER
        connection.launcher = replica.container
        replica.container.launched.append(connection)
        replica.connection, replica.node = connection, node
        child = replica.child
        assert child is not None, "a connection leads to a child"
        child.base_scores.allowed = {name: _CHILD_SCORE}
        child.base_scores.discovery = {name: Discovery.EXCLUSIVE}
        _forbid(clone, name, f"{name} is a container")
        container = replica.container
        container.definition = replace(container.definition, utilization=child.definition.utilization)
        child.definition = replace(child.definition, utilization={})

    def _ban_others(self, node: NodeName) -> None:
        """A node that was known before may have been offered to others."""
        if node not in self._builder.inventory.nodes_by_name:
            return
        for resource in self._builder.inventory.by_id.values():
            if node in resource.base_scores.allowed:
                _forbid(resource, node, f"{node} is a container")
                resource.base_scores.discovery[node] = Discovery.NEVER


def _forbid(resource: Resource, node: NodeName, source: str) -> None:
    """Give a node -INFINITY, whatever it had."""
    resource.base_scores.allowed[node] = -INFINITY
    if resource.base_scores.addends is not None:
        resource.base_scores.addends[node] = [(-INFINITY, source)]


def _monitor(name: str) -> Operation:
    return Operation(f"{name}-monitor-60s", ActionName.MONITOR, _MONITOR_MS)


def _addresses(start: str, count: int) -> tuple[str, ...]:
    """Count up from the first address; fewer when it is none, or the numbers end."""
    found = [start] if start and _next_address(start) else []
    while found and len(found) < count:
        found.append(_next_address(found[-1]))
    return tuple(each for each in found if each)


def _next_address(text: str) -> str:
    """The next address, of IPv4 as Pacemaker has it: the last octet goes from 254 to 1 of the next network."""
    try:
        address = ip_address(text)
        if isinstance(address, IPv6Address):
            return str(address + 1)
    except (ValueError, AddressValueError):
        return ""
    octets = list(address.packed)
    if octets[3] <= _LAST_HOST:
        octets[3] += 1
    elif octets[2] <= _LAST_HOST:
        octets[2], octets[3] = octets[2] + 1, 1
    elif octets[1] < _LAST_OCTET:
        octets[1], octets[2], octets[3] = octets[1] + 1, 1, 1
    else:
        return ""
    return ".".join(str(octet) for octet in octets)
