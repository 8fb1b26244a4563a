"""Devices under random changes: plans settle, `apply` accepts what they order, and no device has two holders."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from haclusterd.cib import commands
from haclusterd.model.devices import Device, DeviceId, DeviceState
from haclusterd.model.ids import NodeName
from haclusterd.model.records import replace
from tests.examples import examples
from tests.scheduled_clusters import ScheduledCluster, configured

NODES = ("n1", "n2")
PER_NODE = 3
DEVICES = [(node, number) for node in NODES for number in range(PER_NODE)]
HEAD = "property fencing-enabled=false enable-startup-probes=false"

services = st.tuples(
    st.sampled_from([1, 1, 1, 2, 3]),
    st.sampled_from(["", "priority=5", "priority=9"]),
    st.sampled_from(["", "gpu-link=nvlink", "gpu-sharing=memory gpu-memory=60G", "gpu-health=ignore"]),
)
steps = st.one_of(
    st.tuples(st.just("configure"), st.lists(services, max_size=5), st.booleans()),
    st.tuples(st.just("state"), st.sampled_from(DEVICES), st.sampled_from(list(DeviceState))),
    st.tuples(st.just("steer"), st.sampled_from(DEVICES), st.sampled_from(["drain", "clear"])),
    st.tuples(st.just("keep"), st.booleans()),
)


def device(node: str, number: int) -> Device:
    return Device(
        DeviceId(f"{node}-{number}"), bus=f"0000:{number:02x}:00.0", model="NVIDIA H200", memory_mib=143_771,
        link="a" if number < 2 else "",
    )  # fmt: skip


def text_of(drawn: list[tuple[int, str, str]], *, has_gang: bool) -> str:
    """Return the configuration; a resource is called by what it asks for, so that none changes under its name."""
    lines = [HEAD]
    for number, (count, priority, more) in enumerate(drawn):
        meta = f" meta {priority} {more}" if priority or more else ""
        name = f"s{number}-{count}{priority[-1:]}{more[:8].replace('=', '')}"
        lines.append(f"primitive {name} ocf:haclusterd:dummy utilization gpus={count}{meta}")
    if has_gang:
        lines += [
            "primitive rank ocf:haclusterd:dummy utilization gpus=1",
            "clone gang rank meta gpu-gang=all clone-max=2 priority=5",
        ]
    return "\n".join(lines)


def play(cluster: ScheduledCluster, step: tuple[Any, ...]) -> None:
    if step[0] == "configure":
        cluster.configure(configured(text_of(step[1], has_gang=step[2])))
    elif step[0] == "state":
        node, number = step[1]
        known = cluster.cib.status.devices[NodeName(node)].devices
        name = DeviceId(f"{node}-{number}")
        cluster.publish(node, {**known, name: replace(known[name], state=step[2])}.values())
    elif step[0] == "steer":
        node, number = step[1]
        change = commands.DeviceChange(step[2])
        cluster.do(commands.SteerDevice(NodeName(node), DeviceId(f"{node}-{number}"), change, "root"))
    else:
        cluster.are_devices_kept = step[1]
        for node in NODES:
            cluster.release(NodeName(node))


def check(cluster: ScheduledCluster) -> None:
    """Judge by the claims: `apply` has refused nothing on the way, or `ScheduledCluster.do` would have failed."""
    for known in cluster.cib.status.devices.values():
        for name, claims in known.claims.items():
            alone = [claim for claim in claims if not claim.memory_mib]
            assert not alone or len(claims) == 1, (name, claims)
            assert sum(claim.memory_mib for claim in claims) <= known.devices[name].memory_mib
    running = {resource for resource, _node in cluster.running}
    assert len([None for resource, _node in cluster.running if resource == "rank"]) in (0, 2), running


@settings(max_examples=examples(100))
@given(st.lists(steps, min_size=1, max_size=8))
def test_plans_settle_and_no_device_has_two_holders(drawn: list[tuple[Any, ...]]) -> None:
    cluster = ScheduledCluster.of(NODES)
    for node in NODES:
        cluster.publish(node, [device(node, number) for number in range(PER_NODE)])
    for step in drawn:
        play(cluster, step)
        cluster.settle()
        check(cluster)
