"""The table of devices: as wide as a terminal, with a line of its own for what is wrong with one."""

from haclusterd.cli.render.gpus import render_devices
from haclusterd.cli.render.terminal import WIDTH, Screen
from haclusterd.model.records import replace
from haclusterd.verbs.answers.devices import Devices, NodeOfDevices, ShownClaim, ShownDevice

NOW = 1_800_000_000_000
TROUBLE = "driver-not-loaded: the driver is not loaded"
NODE = NodeOfDevices("n1", 1, 2, "570.86.10", "", NOW)


def device(number: int, **values: object) -> ShownDevice:
    made = ShownDevice(
        id=f"GPU-779be6a7-aaff-5cf8-9307-61b6eadcd65{number}", node="n1", kind="gpu", bus=f"0000:{number}a:00.0",
        model="NVIDIA H200", memory_mib=143_771, link="", numa=-1, parent="", profile="", is_partitioned=False,
        has_ecc=None, state="ok", seen="ok", reasons=(), since=NOW - 5000, is_accepted=True, drained_by="",
        drain_reason="", claims=(), strangers=(), rung="", recovery=None, remedies=(),
    )  # fmt: skip
    return replace(made, **values)


def table(*devices: ShownDevice, node: NodeOfDevices = NODE) -> list[str]:
    return render_devices(Screen(), Devices(NOW, (node,), devices, ""))


def test_what_is_wrong_with_a_device_stands_below_it_and_no_line_is_wider_than_a_terminal() -> None:
    why = (
        "remap-pending: a row of memory waits for a reset to be replaced; "
        "programs that it does not concern may continue"
    )
    lines = table(
        device(1, state="degraded", reasons=(why,), claims=(ShownClaim("llm", 0, is_over=False),)), device(2)
    )
    assert lines == [
        "n1: 1/2 can be used, NVIDIA H200 143771 MiB, driver 570.86.10",
        "  GPU-779be6a7-aaff-5cf8-9307-61b6eadcd651  0000:1a:00.0  degraded  llm",
        "      remap-pending: a row of memory waits for a reset to be replaced; programs",
        "      that it does not concern may continue (5.0 s ago)",
        "  GPU-779be6a7-aaff-5cf8-9307-61b6eadcd652  0000:2a:00.0  ok        -",
    ]
    assert max(map(len, lines)) <= WIDTH


def test_what_is_wrong_with_all_is_said_once() -> None:
    lines = table(*(device(number, state="failed", reasons=(TROUBLE,)) for number in (1, 2)),
                  node=replace(NODE, trouble=TROUBLE))  # fmt: skip
    assert [line for line in lines if "driver-not-loaded" in line] == [f"  {TROUBLE}"]


def test_models_are_said_of_each_where_they_differ_and_instances_have_their_profile() -> None:
    parts = device(2, kind="mig", id="MIG-00000001-0000-0000-0000-000000000000", profile="3g.71gb", model="NVIDIA H200")
    lines = table(device(1, is_partitioned=True), parts, device(3, model="NVIDIA L40S", memory_mib=46_068))
    assert lines == [
        "n1: 1/2 can be used, driver 570.86.10",
        "  GPU-779be6a7-aaff-5cf8-9307-61b6eadcd651    0000:1a:00.0  NVIDIA H200 143771 MiB  partitioned  -",
        "    MIG-00000001-0000-0000-0000-000000000000  MIG 3g.71gb                           ok           -",
        "  GPU-779be6a7-aaff-5cf8-9307-61b6eadcd653    0000:3a:00.0  NVIDIA L40S 46068 MiB   ok           -",
    ]
