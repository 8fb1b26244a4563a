"""Devices that are not as a configuration expects: a reason for who cannot run, and nobody else is disturbed."""

import pytest

from haclusterd.cib.commands import DeviceChange, SteerDevice
from haclusterd.model.devices import Device, DeviceId, DeviceKind, DeviceState
from haclusterd.model.ids import NodeName
from haclusterd.model.records import replace
from tests.scheduled_clusters import ScheduledCluster, configured

TEXT = """
property enable-startup-probes=false
primitive power stonith:fence_local
rsc_defaults resource-stickiness=100
primitive llm ocf:haclusterd:dummy utilization gpus=1
primitive web ocf:haclusterd:dummy
"""
RARE = "primitive rare ocf:haclusterd:dummy meta gpu-model=H300 utilization gpus=1\n"
PART = "primitive part ocf:haclusterd:dummy meta gpu-kind=mig gpu-profile=1g.18gb utilization gpus=1\n"


def gpus(count: int = 8) -> list[Device]:
    return [
        Device(DeviceId(f"gpu-{number}"), bus=f"0000:{number:02x}:00.0", model="NVIDIA H200", memory_mib=143_771)
        for number in range(count)
    ]


@pytest.fixture
def cluster() -> ScheduledCluster:
    """Return one in which llm holds a device of n1, and n2 has none."""
    made = ScheduledCluster.of(["n1", "n2"])
    made.publish("n1", gpus())
    made.configure(configured(TEXT))
    made.settle()
    assert ("llm", "n1") in made.running
    return made


def verdict(cluster: ScheduledCluster, resource: str) -> str:
    placements = cluster.plan(is_explaining=True).placements
    return next(str(each.verdict) for name, each in placements.items() if name == resource)


def test_a_model_that_nobody_has_is_waited_for(cluster: ScheduledCluster) -> None:
    cluster.configure(configured(TEXT + RARE))
    assert cluster.settle() == []
    assert "it needs 1 H300 GPU, which this node does not have" in verdict(cluster, "rare")


def test_of_devices_that_are_all_gone_the_holder_is_stopped_and_nobody_else(cluster: ScheduledCluster) -> None:
    cluster.publish("n1", [])
    assert cluster.settle() == ["stop llm on n1"]
    assert "device gpu-0 has failed: missing" in verdict(cluster, "llm") or "8 unfit" in verdict(cluster, "llm")
    known = cluster.cib.status.devices
    assert all(device.is_missing for each in known.values() for device in each.devices.values())
    cluster.publish("n1", gpus())
    assert "start llm on n1 with gpu-0" in cluster.settle()


def test_a_gpu_that_is_partly_cut_into_instances_is_given_as_what_it_is(cluster: ScheduledCluster) -> None:
    cut = replace(gpus()[7], is_partitioned=True)
    part = Device(DeviceId("mig-7-0"), kind=DeviceKind.MIG, parent=cut.id, profile="3g.71gb", memory_mib=71_000)
    cluster.publish("n1", [*gpus(7), cut, part])
    cluster.configure(configured(TEXT + PART))
    assert cluster.settle() == [], "the instance that is asked for is not made yet"
    assert "it needs 1 MIG instance 1g.18gb" in verdict(cluster, "part")
    asked = replace(part, id=DeviceId("mig-7-1"), profile="1g.18gb", memory_mib=18_000)
    cluster.publish("n1", [*gpus(7), cut, part, asked])
    assert cluster.settle() == [], "a person has not accepted it"
    cluster.do(SteerDevice(NodeName("n1"), asked.id, DeviceChange.ACCEPT, "root"))
    assert cluster.settle() == ["start part on n1 with mig-7-1"]


def test_a_device_that_changes_its_address_stays_its_holders(cluster: ScheduledCluster) -> None:
    cluster.publish("n1", [replace(gpus()[0], bus="0000:5b:00.0"), *gpus()[1:]])
    assert cluster.settle() == []


def test_of_two_devices_with_one_id_the_holder_leaves_and_nobody_else(cluster: ScheduledCluster) -> None:
    twice = replace(gpus()[0], state=DeviceState.FAILED, reasons=("uuid-twice: the driver shows two of them",))
    cluster.publish("n1", [twice, *gpus()[1:7]])
    assert cluster.settle() == ["stop llm on n1", "start llm on n1 with gpu-1"]
