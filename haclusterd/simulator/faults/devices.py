"""What devices, drivers and people do to what claims devices."""

import random
from collections.abc import Callable, Sequence
from functools import partial

from haclusterd.cib.commands import BeginRecovery, DeviceChange, SteerDevice
from haclusterd.model.devices import DeviceId, DeviceState, NodeDevices, Rung
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.simulator.faults.base import Drawn, End, Kind
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.devices import DeviceBehaviour
from haclusterd.simulator.hosts.world import MS
from haclusterd.simulator.scenario import Cluster

Nodes = Sequence[NodeName]
Chance = random.Random
Fault = Drawn[Cluster]
CLAIMANTS = (*configurations.CLAIMING, configurations.GANG, configurations.UNIQUE_GANG)
RECOVERY = "recovery of a device"
"""The section of the table of what was exercised (`checks.coverage`)."""
MEANWHILE = "the daemon of its node is killed meanwhile"


def _with_device(
    words: str,
    nodes: Nodes,
    chance: Chance,
    act: Callable[[Cluster, DeviceId], End | None],
    lasts_ms: int = 0,
) -> Fault:
    """Return a fault of one device of a node; mostly of one that is in use, where there is any."""
    node, place, wants_used = chance.choice(nodes), chance.random(), chance.random() < 0.7

    def begin(cluster: Cluster) -> End | None:
        truth = cluster.truth.devices
        devices = truth.devices_of(node)
        used = [name for name in devices if truth.users(node, name)]
        among = used if used and wants_used else devices
        return act(cluster, among[int(place * len(among))]) if among else None

    return Drawn(f"{words} on {node}", begin, lasts_ms)


def _free(cluster: Cluster, node: NodeName, rung: Rung) -> list[DeviceId]:
    """Return the devices of a node that a rung could recover now: nothing claims or uses what it would hit."""
    truth, known = cluster.truth.devices, cluster.cib.status.devices.get(node, NodeDevices())
    devices = truth.devices_of(node)
    free = [name for name in devices if not truth.users(node, name) and not known.claims.get(name)]
    return free if rung is Rung.RESET or len(free) == len(devices) else []


def fail(chance: Chance, nodes: Nodes) -> Fault:
    """A device is worse for a while."""
    states = (DeviceState.DEGRADED, DeviceState.DRAIN, DeviceState.FAILED, DeviceState.UNKNOWN)
    state, rung = chance.choice(states), chance.choice(("", "reset", "reset", "reload", "reboot"))

    def act(cluster: Cluster, device: DeviceId) -> End:
        cluster.truth.devices.set_state(device, state, rung)
        return lambda: cluster.truth.devices.set_state(device, DeviceState.OK)

    return _with_device(f"a device is {state}", nodes, chance, act, chance.randint(200, 15_000))


def lose(chance: Chance, nodes: Nodes) -> Fault:
    """A device falls off the bus, and comes back."""

    def act(cluster: Cluster, device: DeviceId) -> End:
        cluster.truth.devices.lose(device, is_lost=True)
        return lambda: cluster.truth.devices.lose(device, is_lost=False)

    return _with_device("a device is lost", nodes, chance, act, chance.randint(200, 15_000))


def swap(chance: Chance, nodes: Nodes) -> Fault:
    """A person switches a host off, and puts another device into the place of one."""
    node, place = chance.choice(nodes), chance.randrange(12)

    def begin(cluster: Cluster) -> End | None:
        if not cluster.truth.devices.devices_of(node):
            return None
        cluster.power_off(node)
        cluster.truth.devices.swap(node, place)
        return lambda: cluster.power_on(node)

    return Drawn(f"a device of {node} is replaced", begin, chance.randint(500, 10_000))


def hang(chance: Chance, nodes: Nodes) -> Fault:
    """The driver answers nothing about a device, or has not for long."""
    is_lasting = chance.random() < 0.5

    def act(cluster: Cluster, device: DeviceId) -> End:
        cluster.truth.devices.hang(device, is_hung=True, is_lasting=is_lasting)
        return lambda: cluster.truth.devices.hang(device, is_hung=False)

    return _with_device("a device hangs", nodes, chance, act, chance.randint(500, 20_000))


def stranger(chance: Chance, nodes: Nodes) -> Fault:
    """A person starts something on a device."""

    def act(cluster: Cluster, device: DeviceId) -> End:
        process = cluster.truth.devices.stranger_begins(device)
        return lambda: cluster.truth.devices.end(process)

    return _with_device("a stranger uses a device", nodes, chance, act, chance.randint(500, 20_000))


def drain(chance: Chance, nodes: Nodes) -> Fault:
    """A person drains a device, and takes that back."""

    def act(cluster: Cluster, device: DeviceId) -> End:
        node = cluster.truth.devices.node_of(device)

        def steer(change: DeviceChange) -> None:
            cluster.administer(SteerDevice(node, device, change, "swarm", "drawn"))

        steer(DeviceChange.DRAIN)
        return lambda: steer(DeviceChange.CLEAR)

    return _with_device("a device is drained", nodes, chance, act, chance.randint(500, 20_000))


def recover(chance: Chance, nodes: Nodes) -> Fault:
    """A person has a device recovered, mostly one that is free; mostly its node's daemon is killed while that is done,
    or a stranger comes."""
    rung = chance.choice((*(Rung.RESET,) * 4, Rung.RELOAD, Rung.RELOAD, Rung.REBOOT))
    wait_ms, is_daemon_killed = chance.choice((0, 50, 200, 500, 1_000, 3_000, 12_000)), chance.random() < 0.6
    is_spoilt, wants_free = chance.random() < 0.2, chance.random() < 0.85
    order, place = chance.sample(list(nodes), len(nodes)), chance.random()

    def begin(cluster: Cluster) -> None:
        free = [name for node in order for name in _free(cluster, node, rung)[:1]] if wants_free else []
        every = [name for node in order for name in cluster.truth.devices.devices_of(node)]
        if every:
            act(cluster, free[0] if free else every[int(place * len(every))])

    def act(cluster: Cluster, device: DeviceId) -> None:
        node = cluster.truth.devices.node_of(device)
        cluster.administer(BeginRecovery(node, device, rung, "swarm", "drawn"))
        if is_daemon_killed:
            cluster.world.after(wait_ms * MS, partial(_kill_brain, cluster, node))
        elif is_spoilt:
            cluster.truth.devices.stranger_begins(device)

    return Drawn(f"a person wants the {rung} of a device", begin)


def _kill_brain(cluster: Cluster, node: NodeName) -> None:
    if cluster.cib.status.devices.get(node, NodeDevices()).recoveries:
        cluster.coverage.count(RECOVERY, MEANWHILE)
    cluster.kill_brain(node)


def leftovers(chance: Chance, _nodes: Nodes) -> Fault:
    """What has ended uses its devices for long, or for good."""
    behaviour = DeviceBehaviour(
        slow_ms=(500, chance.choice((3_000, 20_000))),
        slow_share=chance.choice((0.3, 1.0)),
        hanging_share=chance.choice((0.0, 0.2)),
    )

    def begin(cluster: Cluster) -> End:
        cluster.truth.devices.behaviour = behaviour

        def end() -> None:
            cluster.truth.devices.behaviour = DeviceBehaviour()

        return end

    return Drawn(f"processes linger: {behaviour}", begin, chance.randint(2_000, 20_000))


def kill_claimant(chance: Chance, _nodes: Nodes) -> Fault:
    """What holds a device dies; mostly its node's daemon is killed when that is being answered."""
    resource, wait_ms = chance.choice(CLAIMANTS), chance.choice((0, 100, 300, 1_000, 2_000))
    is_daemon_killed, place = chance.random() < 0.5, chance.random()

    def begin(cluster: Cluster) -> None:
        nodes = cluster.truth.copies_of(ResourceId(resource))
        if not nodes:
            return
        node = nodes[int(place * len(nodes))]
        if is_daemon_killed:
            cluster.world.after(wait_ms * MS, partial(cluster.kill_brain, node))
        for name in cluster.truth.services_on(node):
            if name.partition(":")[0] == resource:
                cluster.truth.service_ends(node, name)

    return Drawn(f"the claimant {resource} dies", begin)


def move_claimant(chance: Chance, nodes: Nodes) -> Fault:
    """A person prefers another place for what holds devices."""
    resource, node = chance.choice(configurations.CLAIMING), chance.choice(nodes)
    edit = configurations.prefers(resource, node, chance.choice((200, 500)))
    return Drawn(f"{resource} prefers {node}", lambda cluster: cluster.edit((edit,)))


OF_DEVICES: tuple[Kind[Cluster], ...] = (
    Kind("device fails", 10, fail),
    Kind("device is lost", 4, lose),
    Kind("device is replaced", 2, swap),
    Kind("device hangs", 4, hang),
    Kind("stranger on a device", 4, stranger),
    Kind("drain a device", 3, drain),
    Kind("recover a device", 16, recover),
    Kind("processes linger", 6, leftovers),
    Kind("kill a claimant", 8, kill_claimant),
    Kind("move a claimant", 5, move_claimant),
)
