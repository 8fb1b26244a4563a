"""What runs without a claim: it was started before its node reported devices, or by a cluster that is no more."""

from collections.abc import Collection

import pytest

from haclusterd.model.devices import Device, DeviceId
from haclusterd.model.ocf import ActionName, ExitCode
from tests.scheduled_clusters import ScheduledCluster, configured

BEFORE = """
property enable-startup-probes=false
primitive power stonith:fence_local
primitive llm ocf:haclusterd:dummy meta gpu-health=ignore utilization gpus=1 op monitor interval=10s
primitive embed ocf:haclusterd:dummy meta gpu-sharing=memory gpu-memory=30G utilization gpus=1
primitive rank ocf:haclusterd:dummy meta gpu-sharing=memory gpu-memory=30G utilization gpus=1
"""
PAIR = "primitive train ocf:haclusterd:dummy meta gpu-link=nvlink utilization gpus=2\n"


def report(cluster: ScheduledCluster, used: Collection[int], count: int = 4) -> None:
    """Let n1 report devices, of which two and two reach each other, and which of them processes without a claim use."""
    cluster.publish(
        "n1",
        [
            Device(DeviceId(f"gpu-{number}"), bus=f"0000:{number:02x}:00.0", memory_mib=143_771, link=str(number // 2),
                   strangers=(f"{number} python",) if number in used else ())
            for number in range(count)
        ],
    )  # fmt: skip


@pytest.fixture
def cluster() -> ScheduledCluster:
    """All run on n1, and no device was known when they were started."""
    made = ScheduledCluster.of(["n1"])
    made.configure(configured(BEFORE))
    made.settle()
    return made


def starts(cluster: ScheduledCluster) -> dict[str, tuple[str, ...]]:
    """Return which start with which devices by the next plan."""
    actions = cluster.plan().graph.actions.values()
    return {str(each.resource): each.devices for each in actions if each.is_named(ActionName.START)}


def test_it_keeps_no_others_from_the_devices_that_are_left(cluster: ScheduledCluster) -> None:
    report(cluster, used=(0, 1))
    cluster.configure(configured(BEFORE + PAIR))
    assert starts(cluster) == {"train": ("gpu-2", "gpu-3")}


def test_it_claims_one_that_is_free_when_it_starts_again(cluster: ScheduledCluster) -> None:
    report(cluster, used=(0, 1))
    cluster.fail("llm", "n1", "monitor", 10_000, ExitCode.NOT_RUNNING, "")
    cluster.configure(configured(BEFORE + PAIR))
    assert starts(cluster) == {"llm": ("gpu-2",)}, "of train's pair one is not free any more"


def test_it_does_not_start_again_without_a_claim(cluster: ScheduledCluster) -> None:
    report(cluster, used=(0, 1), count=2)
    cluster.fail("llm", "n1", "monitor", 10_000, ExitCode.NOT_RUNNING, "")
    assert starts(cluster) == {}
    assert cluster.settle() == ["stop llm on n1"]
    report(cluster, used=(1,), count=2)
    assert starts(cluster) == {"llm": ("gpu-0",)}
