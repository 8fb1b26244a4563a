"""What people do about a cluster once the last fault has ended: what no program can do for them.

They start what was stopped by hand, upgrade what is too old, and switch on machines that fencing has left off. What
they have configured stays as it is, but for what keeps nodes from being fenced or what was removed from being stopped.
"""

from haclusterd.cib.commands import DeviceChange, EndDeviceStorm, SteerDevice
from haclusterd.commands.status.fencing_cover import devices_for
from haclusterd.model.cluster import NodeState, NodeStatus
from haclusterd.model.configuration import Primitive, effective
from haclusterd.model.devices import RecoveryPhase
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.secrets import parameter_blocks, references_of
from haclusterd.scheduler.unpack.fence_executors import is_named_by_location
from haclusterd.simulator.hosts.world import MS, SECOND
from haclusterd.simulator.people import ask
from haclusterd.simulator.scenario import Cluster

LOOK_MS = 3000
"""How often people look what they have left undone."""


def look_after(cluster: Cluster) -> None:
    """Begin to look after a cluster that is healed, for as long as the run continues."""
    _keep_started(cluster)
    _put_right(cluster)
    _end_want_of_quorum(cluster, frozenset())


def _end_want_of_quorum(cluster: Cluster, off_before: frozenset[NodeName]) -> None:
    """Switch on what is off, where without it no majority of the voters has power: nobody can record then that it was
    fenced, and with `fencing-action=off` nobody else brings it back. A person needs two looks to be sure.
    """
    voters = cluster.cib.voters()
    off = frozenset(name for name in cluster.names if not cluster.hosts[name].is_powered)
    if cluster.is_being_repaired or 2 * len(off & set(voters)) < len(voters):
        off = frozenset()
    for name in sorted(off & off_before):
        cluster.power_on(name)
    cluster.world.after(LOOK_MS * MS, lambda: _end_want_of_quorum(cluster, off))


def _keep_started(cluster: Cluster) -> None:
    """Start again what leaves only now, because it was asked to before, upgrade what is too old to join, switch on what
    was fenced with `off`, and reset by hand what a person wanted fenced and no device can fence."""
    for name in () if cluster.is_being_repaired else cluster.names:
        cluster.hosts[name].brain.enable()
        cluster.upgrade(name)
        status = cluster.cib.status.nodes.get(name)
        if status is not None and status.state is NodeState.FENCED:
            cluster.power_on(name)
        if status is not None and _waits_for_a_hand(cluster, status):
            cluster.power_off(name)
            cluster.power_on(name)
    cluster.world.after(SECOND, lambda: _keep_started(cluster))


def _waits_for_a_hand(cluster: Cluster, status: NodeStatus) -> bool:
    """Tell whether a node may not join again in its boot because a person wanted it fenced, and nothing can do that."""
    is_wanted = status.is_fence_requested and status.state is NodeState.LOST
    if not is_wanted or status.incarnation is None or devices_for(cluster.cib, status.name):
        return False
    return cluster.boot_runs(status.name, status.incarnation.boot_id)


def _put_right(cluster: Cluster) -> None:
    """Let people start the fence devices that they have stopped, and allow those again that they have kept from all
    nodes: without them nothing that is lost is recovered. Let them give a secret again that a configuration to which
    was gone back names: nothing starts without it. And let what was removed be stopped: copies of an earlier shape
    would run on for ever, and a cluster that is recovered in the same boot does not know their names.
    """
    for device in _stopped_devices(cluster):
        ask(cluster, "resource.start", {"resources": [device]})
    configuration = cluster.cib.in_force
    is_opt_in = not ClusterProperties(configuration).boolean("symmetric-cluster")
    if is_opt_in and any(not is_named_by_location(configuration, each.id) for each in configuration.fence_devices()):
        ask(cluster, "configure.statement", {"words": ["property", "symmetric-cluster=true"]})
    if not ClusterProperties(configuration).boolean("stop-removed-resources"):
        ask(cluster, "configure.statement", {"words": ["property", "stop-removed-resources=true"]})
    for secret in _missing_secrets(cluster):
        ask(cluster, "secret.set", {"name": secret, "value": "one.pid"})
    _steer_devices(cluster)
    cluster.world.after(LOOK_MS * MS, lambda: _put_right(cluster))


def _missing_secrets(cluster: Cluster) -> list[str]:
    """Return what the configuration names as secrets, and what there is not."""
    blocks = (block for *_, found in parameter_blocks(cluster.cib.configuration) for block in found)
    return sorted({secret for _, secret in references_of(blocks)} - cluster.cib.secrets.values.keys())


def _steer_devices(cluster: Cluster) -> None:
    """Accept devices that are new or were not recovered, forget those that were taken out, and end what keeps others
    from being used."""
    storm = cluster.cib.status.device_storm
    if storm is not None and not storm.is_over:
        cluster.administer(EndDeviceStorm("healing"))
    for node, known in cluster.cib.status.devices.items():
        for name in sorted(name for name, device in known.devices.items() if device.is_missing):
            cluster.administer(SteerDevice(node, name, DeviceChange.FORGET, "healing"))
        unproven = (name for name, each in known.recoveries.items() if each.phase is not RecoveryPhase.ACTING)
        for name in sorted({*known.unaccepted, *unproven}):
            cluster.administer(SteerDevice(node, name, DeviceChange.ACCEPT, "healing"))
        for name in sorted(known.holds):
            cluster.administer(SteerDevice(node, name, DeviceChange.CLEAR, "healing"))


def _stopped_devices(cluster: Cluster) -> list[ResourceId]:
    return [
        primitive.id
        for primitive in cluster.cib.configuration.primitives()
        if primitive.agent.standard == "stonith" and _is_stopped(primitive)
    ]


def _is_stopped(primitive: Primitive) -> bool:
    return effective(primitive.meta).get("target-role", "").lower() == "stopped"
