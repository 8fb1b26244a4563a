"""The watcher of GPUs over a stub of NVIDIA's library: who is there, how they are, who uses them; what hangs."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from haclusterd.agents.gpu_users import Ours
from haclusterd.agents.process_table import INSTANCE_MARK, SEAL_MARK, list_pids, read_marks, seal_of
from tests.control_groups import delegated, living_in
from tests.gpu_hardware import Watcher, pretend

QUICK = {"sweep_s": 0.05, "driver_timeout_s": 20.0, "device_timeout_s": 20.0, "look_timeout_s": 20.0}
WITHIN_S = 30


def gpu(index: int) -> str:
    return f"GPU-00000000-0000-0000-0000-{index:012}"


class Machine:
    """A machine whose devices are what a test says."""

    def __init__(self, library: Path, directory: Path) -> None:
        self.state = directory / "stub"
        self.kernel_log = directory / "kmsg"
        self.kernel_log.write_text("")
        self.sysfs, self.proc = directory / "sys", directory / "proc"
        self.environment = {**os.environ, "NVML_STUB": str(self.state), "LD_LIBRARY_PATH": str(library)}
        self.watchers: list[Watcher] = []
        self.sequence = 0

    def let(self, *lines: str) -> None:
        new = self.state.with_suffix(".new")
        new.write_text("\n".join(lines) + "\n")
        new.replace(self.state)

    def log(self, text: str) -> None:
        self.sequence += 1
        at = int(time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6)
        with self.kernel_log.open("a") as stream:
            stream.write(f"4,{self.sequence},{at},-;{text}\n")

    def watch(self, **settings: Any) -> Watcher:
        files = {"kernel_log": str(self.kernel_log), "sysfs": str(self.sysfs), "proc": str(self.proc)}
        one = Watcher(self.environment, **{**QUICK, **files, **settings})
        self.watchers.append(one)
        one.wait(lambda line: "report" in line, WITHIN_S, "the first report")
        return one

    def children(self) -> list[int]:
        return [pid for pid in list_pids() if read_marks(pid).get("NVML_STUB") == str(self.state)]


@pytest.fixture
def machine(library: Path, tmp_path: Path) -> Iterator[Machine]:
    one = Machine(library, tmp_path)
    yield one
    for each in one.watchers:
        each.end()


def states(report: dict[str, Any]) -> dict[int, str]:
    return {int(each["id"][-12:]): each["state"] for each in report["devices"] if each["kind"] == "gpu"}


def why(report: dict[str, Any], index: int) -> list[str]:
    reasons = next(each["reasons"] for each in report["devices"] if each["id"] == gpu(index))
    return [reason.partition(":")[0] for reason in reasons]


def until(one: Watcher, wanted: dict[int, str]) -> None:
    one.wait(lambda line: "report" in line and states(line["report"]) == wanted, WITHIN_S, f"states {wanted}")


def test_who_is_there(machine: Machine) -> None:
    device = machine.sysfs / "bus/pci/devices/0000:1b:00.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x10de\n")
    (device / "class").write_text("0x030200\n")
    (device / "numa_node").write_text("1\n")
    machine.let("gpus=4", "g2.group=2", "g3.group=2", "g3.ecc=!3", "g2.mig=1", "g2.instances=1g.18gb,3g.71gb")
    report = machine.watch().report
    assert (report["driver"], report["trouble"]) == ("570.86.10", "")
    shown = {each["id"]: each for each in report["devices"]}
    assert shown[gpu(1)] == {
        "id": gpu(1), "kind": "gpu", "bus": "0000:1b:00.0", "model": "NVIDIA H200", "memory_mib": 143771,
        "link": "nvlink-0000:1a:00.0", "numa": 1, "is_partitioned": False, "has_ecc": True, "state": "ok",
        "reasons": [], "users": [], "rung": "",
    }  # fmt: skip
    assert [shown[gpu(index)]["link"] for index in (0, 2, 3)] == [
        "nvlink-0000:1a:00.0", "nvlink-0000:1c:00.0", "nvlink-0000:1c:00.0",
    ]  # fmt: skip
    assert (shown[gpu(3)]["has_ecc"], shown[gpu(2)]["is_partitioned"]) == (None, True)
    assert shown["MIG-00000002-0000-0000-0000-000000000001"] == {
        "id": "MIG-00000002-0000-0000-0000-000000000001", "kind": "mig", "bus": "0000:1c:00.0", "numa": -1,
        "model": "NVIDIA H200", "memory_mib": 16384, "parent": gpu(2), "profile": "3g.71gb", "state": "ok",
        "reasons": [],
    }  # fmt: skip
    assert len(shown) == 6


FAULTS = [
    ("any=!15", "failed", "lost"),
    ("any=!16", "drain", "reset-required"),
    ("temperature=!999", "unknown", "no-answer"),
    ("field230=1", "drain", "recovery-reset"),
    ("field230=2", "failed", "recovery-reboot"),
    ("field230=3", "degraded", "recovery-drain-p2p"),
    ("field230=5", "drain", "recovery-imex"),
    ("ecc_uncorrected=2", "degraded", "ecc-uncorrected"),
    ("sram_exceeded=1", "drain", "sram-exceeded"),
    ("remap_pending=1", "degraded", "remap-pending"),
    ("remap_failed=1", "drain", "remap-failed"),
    ("pages_pending=1", "degraded", "pages-pending"),
    ("temperature=89", "degraded", "hot"),
    ("temperature=92", "drain", "too-hot"),
    ("reasons=0x40", "degraded", "slowed-down"),
    ("reasons=0x80", "degraded", "power-brake"),
    ("reasons=0x20", "degraded", "software-thermal"),
    ("link7=0", "degraded", "nvlink-down"),
    ("fabric=2", "degraded", "fabric-waits"),
    ("compute_mode=2", "drain", "compute-prohibited"),
    ("mig_pending=1", "drain", "mig-pending"),
    ("mig=1", "degraded", "mig-empty"),
    ("ecc_wanted=0", "degraded", "ecc-pending"),
    ("memory_used=500", "drain", "memory-held"),
    ("replays=100000000", "ok", ""),
    ("banks_none=1", "degraded", "remap-reserve"),
    ("ecc_uncorrected=!14", "degraded", "inforom"),
    ("reasons=0x04", "ok", ""),
    ("persistence=0", "ok", ""),
    ("vbios=96.00.FF.00.01", "ok", ""),
]


def test_each_fault_is_one_devices_own_and_is_what_the_table_says(machine: Machine) -> None:
    machine.let(f"gpus={len(FAULTS)}")
    one = machine.watch()
    until(one, dict.fromkeys(range(len(FAULTS)), "ok"))
    machine.let(f"gpus={len(FAULTS)}", *(f"g{index}.{fault}" for index, (fault, _, _) in enumerate(FAULTS)))
    until(one, {index: state for index, (_, state, _) in enumerate(FAULTS)})
    for index, (fault, _, code) in enumerate(FAULTS):
        assert not code or code in why(one.report, index), fault
    lost = next(each for each in one.report["devices"] if each["id"] == gpu(0))
    assert lost["reasons"] == ["lost: the driver has lost the device"]
    assert lost["rung"] == "reboot", "nothing else brings it back"
    machine.let(f"gpus={len(FAULTS)}")
    stay = {"lost", "sram-exceeded", "remap-failed"}
    until(one, {index: state if code in stay else "ok" for index, (_, state, code) in enumerate(FAULTS)})


XID = "NVRM: Xid (PCI:0000:1b:00): {code}, pid='{pid}', name=python3, Ch 00000001"


def test_an_error_counts_at_once_and_comes_once_by_two_ways(machine: Machine) -> None:
    machine.let("gpus=3")
    one = machine.watch(sweep_s=60.0)
    machine.log(XID.format(code=79, pid=4711))
    machine.let("gpus=3", "event=1:1:79")
    until(one, {0: "ok", 1: "failed", 2: "ok"})
    machine.log(XID.format(code=31, pid=4712))
    machine.let("gpus=3", "event=2:2:62")
    one.wait(lambda line: line.get("xid", {}).get("code") == 62, WITHIN_S, "an event of NVML")
    until(one, {0: "ok", 1: "failed", 2: "drain"})
    one.wait(lambda line: "report" in line, WITHIN_S, "a report")
    seen = [line["xid"] for _, line in one.lines if "xid" in line]
    assert sorted((each["code"], each["device"], each["severity"]) for each in seen) == [
        (31, gpu(1), "application"), (62, gpu(2), "drain"), (79, gpu(1), "failed"),
    ]  # fmt: skip
    assert why(one.report, 1) == ["xid-79"], "an error of an application condemns nothing"


def test_errors_from_before_the_watcher_are_in_its_first_report(machine: Machine) -> None:
    machine.let("gpus=2", "field230=!3")
    machine.log(XID.format(code=79, pid=1))
    assert states(machine.watch().report) == {0: "ok", 1: "failed"}


def test_an_error_of_a_switch_concerns_what_reaches_others_by_it(machine: Machine) -> None:
    machine.let("gpus=3", "g2.group=0")
    one = machine.watch()
    machine.log("nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 32")
    until(one, {0: "degraded", 1: "degraded", 2: "ok"})
    assert "nvswitch" in one.report["trouble"]


@pytest.mark.parametrize("how", ["temperature=@hang", "temperature=@hard"])
def test_a_device_that_hangs_is_named_and_the_others_are_judged(machine: Machine, how: str) -> None:
    machine.let("gpus=4")
    one = machine.watch(device_timeout_s=2.0)
    machine.let("gpus=4", f"g1.{how}", "g3.any=!15")
    until(one, {0: "ok", 1: "unknown", 2: "ok", 3: "failed"})
    assert why(one.report, 1) == ["hang"]
    until(one, {0: "ok", 1: "failed", 2: "ok", 3: "failed"})
    assert why(one.report, 1) == ["hang-lasts", "hang"]
    machine.let("gpus=4")
    until(one, {0: "ok", 1: "ok", 2: "ok", 3: "failed"})


def test_what_waits_for_events_and_hangs_is_replaced_and_the_devices_are_judged(machine: Machine) -> None:
    machine.let("gpus=2", "event=@hang")
    one = machine.watch(events_timeout_s=1.0)
    before = one.family()
    said = {"problem": "the driver's events are silent: the child that waits for them is replaced"}
    one.wait(lambda line: line == said, WITHIN_S, "that it is replaced")
    machine.let("gpus=2", "event=@hang", "g1.any=!15")
    until(one, {0: "ok", 1: "failed"})
    assert len(one.family()) == len(before)
    assert one.family() != before
    machine.log(XID.format(code=62, pid=1).replace("1b", "1a"))
    until(one, {0: "drain", 1: "failed"})


def test_a_device_that_hangs_from_the_start_has_its_name_from_the_drivers_files(machine: Machine) -> None:
    for index, bus in enumerate(("0000:1a:00.0", "0000:1b:00.0")):
        directory = machine.proc / "driver/nvidia/gpus" / bus
        directory.mkdir(parents=True)
        (directory / "information").write_text(f"Model: \t\t NVIDIA H200\nGPU UUID: \t {gpu(index)}\n")
    machine.let("gpus=2", "init=@hang")
    one = machine.watch(driver_timeout_s=2.0)
    assert states(one.report) == {0: "unknown", 1: "unknown"}
    assert one.report["trouble"] == "driver-hangs: the driver does not answer"
    assert one.report["devices"][1]["bus"] == "0000:1b:00.0"
    machine.let("gpus=2")
    until(one, {0: "ok", 1: "ok"})


@pytest.mark.parametrize(
    ("code", "state", "trouble"),
    [(9, "failed", "driver-not-loaded"), (18, "drain", "library-mismatch"), (999, "failed", "driver-error")],
)
def test_a_driver_that_does_not_work_is_every_devices_reason(
    machine: Machine, code: int, state: str, trouble: str
) -> None:
    machine.let("gpus=2")
    one = machine.watch(fresh_s=0.05)
    machine.let("gpus=2", f"init=!{code}")
    until(one, {0: state, 1: state})
    assert one.report["trouble"].startswith(f"{trouble}: ")
    assert why(one.report, 0) == [trouble]
    machine.let("gpus=2")
    until(one, {0: "ok", 1: "ok"})


def test_a_machine_without_the_library_says_so(machine: Machine) -> None:
    machine.environment["LD_LIBRARY_PATH"] = ""
    one = machine.watch(declared=8)
    assert one.report["devices"] == []
    assert one.report["trouble"] == "library-missing: libnvidia-ml.so.1 cannot be loaded"


def test_where_nobody_can_ask_the_driver_it_is_said_and_no_device_counts_as_well(
    machine: Machine, tmp_path: Path
) -> None:
    machine.let("gpus=2")
    one = machine.watch()
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    without = machine.watch(python=str(bare))
    assert without.report["devices"] == []
    assert without.report["trouble"] == (
        "not-watched: nobody can say how the devices are; the package nvidia-ml-py is missing: install it beside "
        "haclusterd (pip install 'haclusterd[gpu]')"
    )
    until(one, {0: "ok", 1: "ok"})


def test_fewer_devices_than_declared_are_said_and_a_missing_one_is_left_to_the_cluster(machine: Machine) -> None:
    machine.let("gpus=3")
    one = machine.watch(declared=3)
    assert one.report["trouble"] == ""
    machine.let("gpus=2")
    until(one, {0: "ok", 1: "ok"})
    assert one.report["trouble"] == "devices-missing: 2 of 3 declared are seen by the driver"
    machine.let("gpus=3")
    until(one, {0: "ok", 1: "ok", 2: "ok"})


def rows(tmp_path: Path, *lines: str) -> str:
    """Return the path of an administrator's table; some rows are believed only after minutes."""
    path = tmp_path / "rows.toml"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_what_is_wrong_around_the_devices(machine: Machine, tmp_path: Path) -> None:
    switch = machine.sysfs / "bus/pci/devices/0000:05:00.0"
    switch.mkdir(parents=True)
    (switch / "vendor").write_text("0x10de\n")
    (switch / "class").write_text("0x068000\n")
    manager = machine.proc / "4711"
    manager.mkdir(parents=True)
    (manager / "comm").write_text("nv-fabricmanage\n")
    ports = [machine.sysfs / f"class/infiniband/mlx5_{number}/ports/1/state" for number in range(2)]
    for port, state in zip(ports, ("4: ACTIVE", "1: DOWN"), strict=True):
        port.parent.mkdir(parents=True)
        port.write_text(f"{state}\n")
    machine.let("gpus=2")
    table = rows(tmp_path, "[fault.network-port]", "raise-after = 1", "clear-after = 1")
    one = machine.watch(faults=table)
    assert states(one.report) == {0: "ok", 1: "ok"}, "a port that was never up is no fault"
    ports[0].write_text("1: DOWN\n")
    until(one, {0: "degraded", 1: "degraded"})
    assert one.report["trouble"] == "network-port: a port of InfiniBand or RoCE is down (mlx5_0/1: 1: DOWN)"
    ports[0].write_text("4: ACTIVE\n")
    until(one, {0: "ok", 1: "ok"})
    (manager / "comm").write_text("bash\n")
    until(one, {0: "failed", 1: "failed"})
    assert why(one.report, 0) == ["fabric-manager"]
    (manager / "comm").write_text("nv-fabricmanage\n")
    until(one, {0: "ok", 1: "ok"})
    machine.log("mlx5_core 0000:98:00.0: mlx5_pcie_event:301: Detected insufficient power on the PCIe slot (27W).")
    until(one, {0: "degraded", 1: "degraded"})
    assert why(one.report, 0) == ["network-card"]


STUCK = """
import ctypes, os
print(os.getpid(), flush=True)
libc = ctypes.CDLL(None)
libc.vfork() or libc.pause()
"""
"""A parent waits in state D until its vfork child ends or runs another program."""


def test_what_takes_minutes_to_be_believed(machine: Machine, tmp_path: Path) -> None:
    lines = [f"[fault.{name}]\nraise-after = 2\nclear-after = 1" for name in ("straggler", "stuck-process")]
    table = rows(tmp_path, *lines, "[fault.nvlink-errors]", "raise-after = 1", "clear-after = 0")
    at_work = ("gpus=5", "busy=90", "g2.field38=0", "g4.busy=1", "g4.clock=300")
    machine.let(*at_work)
    one = machine.watch(faults=table)
    stuck = subprocess.Popen([sys.executable, "-c", STUCK], stdout=subprocess.PIPE)
    try:
        assert stuck.stdout is not None
        pid = int(stuck.stdout.readline())
        machine.let(*at_work, "g1.clock=1700", f"g2.field38={10**9}", f"g3.processes={pid}")
        until(one, {0: "ok", 1: "degraded", 2: "degraded", 3: "drain", 4: "ok"})
        assert [why(one.report, index) for index in (1, 2, 3)] == [["straggler"], ["nvlink-errors"], ["stuck-process"]]
    finally:
        for child in Path(f"/proc/{stuck.pid}/task/{stuck.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
        stuck.kill()
        stuck.communicate()
    machine.let(*at_work)
    until(one, {0: "ok", 1: "ok", 2: "degraded", 3: "ok", 4: "ok"})


def test_a_process_that_says_to_be_of_a_resource_and_has_no_seal_is_a_stranger(machine: Machine) -> None:
    """Any user can say so: a start would find the device free, or the end of its holder would never be proven."""
    key = b"k" * 32
    seal = seal_of("llm", key, 0)
    marks = ({INSTANCE_MARK: "llm"}, {INSTANCE_MARK: "llm", SEAL_MARK: seal}, {INSTANCE_MARK: "rag", SEAL_MARK: seal})
    processes = [
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={**os.environ, **each})
        for each in marks
    ]
    try:
        machine.let("gpus=1", f"g0.processes={','.join(str(each.pid) for each in processes)}")
        one = machine.watch()
        one.ask(seals=key.hex(), since=0)
        found = {text.split()[0]: resource for text, resource in one.look(gpu(0))["users"][gpu(0)]}
        assert [found[str(each.pid)] for each in processes] == ["", "llm", ""]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def test_a_control_group_is_the_daemons_only_below_its_own() -> None:
    """Every user to whom systemd delegates groups can make one of any name in the place that is theirs."""
    with ExitStack() as stack:
        try:
            daemons, users = (stack.enter_context(delegated(f"test-{uuid.uuid4().hex[:8]}")) for _ in "ab")
            groups = [each / "haclusterd.n1.0123" / "resource.llm" for each in (daemons, users)]
            for each in groups:
                each.mkdir(parents=True)
            with living_in(daemons):
                ours = Ours()
        except OSError as error:
            pytest.skip(f"no control group can be made: {error}")
        for group, resource in zip(groups, ("llm", ""), strict=True):
            with living_in(group):
                process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
            assert ours.resource_of(process.pid) == resource
            process.kill()
            process.communicate()


def test_two_devices_with_one_name_are_neither(machine: Machine) -> None:
    machine.let("gpus=3", f"g2.uuid={gpu(1)}")
    one = machine.watch()
    assert states(one.report) == {0: "ok", 1: "failed"}
    assert why(one.report, 1) == ["uuid-twice"]


def test_a_device_that_changes_its_address_is_the_same(machine: Machine) -> None:
    machine.let("gpus=2")
    one = machine.watch()
    machine.let("gpus=2", "g1.pci=00000000:5B:00.0")
    one.wait(lambda line: line["report"]["devices"][1]["bus"] == "0000:5b:00.0", WITHIN_S, "the new address")
    assert states(one.report) == {0: "ok", 1: "ok"}


def test_who_uses_a_device(machine: Machine) -> None:
    marks = {**os.environ, INSTANCE_MARK: "llm"}
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    ours = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=marks)
    try:
        users = (f"g0.processes={stranger.pid},{ours.pid}", "g1.memory_used=77", "g2.any=!15")
        machine.let("gpus=4", *users, "g3.mig=1", "g3.instances=1g.18gb", f"g3.m0.processes={ours.pid}")
        one = machine.watch()
        found = one.look(gpu(0))
        assert [text.split()[0] for text, _ in found["users"][gpu(0)]] == [*map(str, sorted((stranger.pid, ours.pid)))]
        assert {resource for _, resource in found["users"][gpu(0)]} == {"", "llm"}
        assert one.look(gpu(1))["users"] == {gpu(1): [["77 MiB in use and no process", ""]]}
        assert one.look(gpu(2))["unknown"] == [gpu(2)]
        assert one.look("GPU-of-nobody")["unknown"] == ["GPU-of-nobody"]
        instance = "MIG-00000003-0000-0000-0000-000000000000"
        assert one.look(instance)["users"][instance][0][1] == "llm"
        one.wait(lambda line: len(one.device()["users"]) == 2, WITHIN_S, "two users")
        assert {resource for _, resource in one.device()["users"]} == {"", "llm"}
        machine.let("gpus=4")
        assert one.look(gpu(0)) == {"look": 6, "users": {}, "unknown": []}
        machine.let("gpus=4", f"g0.processes={ours.pid}:5000", "g0.memory_used=5200", "g1.memory_used=9000",
                    f"g1.processes={ours.pid}:5000")  # fmt: skip
        assert len(one.look(gpu(0))["users"][gpu(0)]) == 1
        assert one.look(gpu(1))["users"][gpu(1)][1] == ["4000 MiB in use and no process", ""], "left by another sharer"
    finally:
        for process in (stranger, ours):
            process.kill()
            process.communicate()


def test_without_a_driver_nothing_uses_a_device_and_with_one_that_does_not_answer_nobody_can_say(
    machine: Machine,
) -> None:
    """What held a device before its driver was unloaded would else hold it for ever, and keep it from being loaded."""
    module = machine.sysfs / "module" / "nvidia"
    module.mkdir(parents=True)
    machine.let("gpus=1")
    one = machine.watch(fresh_s=0.05)
    until(one, {0: "ok"})
    machine.let("gpus=1", "init=!9")
    until(one, {0: "failed"})
    assert one.look(gpu(0)) == {"look": 1, "users": {}, "unknown": [gpu(0)]}
    module.rmdir()
    assert one.look(gpu(0)) == {"look": 2, "users": {}, "unknown": []}


def test_a_look_is_answered_between_sweeps_that_follow_each_other_without_a_pause(machine: Machine) -> None:
    machine.let("gpus=4", "temperature=~100~40")
    one = machine.watch(look_timeout_s=5.0)
    assert [one.look(gpu(0))["unknown"] for _ in range(3)] == [[], [], []]


def test_a_device_that_hangs_again_keeps_nobody_from_a_look(machine: Machine) -> None:
    machine.let("gpus=3")
    one = machine.watch(device_timeout_s=6.0)
    machine.let("gpus=3", "g2.temperature=@hang")
    until(one, {0: "ok", 1: "ok", 2: "unknown"})
    began = time.monotonic()
    assert one.look(gpu(0))["unknown"] == []
    assert time.monotonic() - began < 6.0
    until(one, {0: "ok", 1: "ok", 2: "failed"})


def test_a_look_at_what_hangs_is_answered_in_time(machine: Machine) -> None:
    machine.let("gpus=2")
    one = machine.watch(look_timeout_s=0.3)
    machine.let("gpus=2", "g1.any=@hang")
    assert one.look(gpu(1)) == {"look": 1, "users": {}, "unknown": [gpu(1)]}


def test_a_pretended_state_is_marked_and_ends(machine: Machine, tmp_path: Path) -> None:
    machine.let("gpus=2")
    path = tmp_path / "pretended"
    pretend(path, gpu(0), "failed", 600)
    one = machine.watch(pretended=str(path))
    until(one, {0: "failed", 1: "ok"})
    pretend(path, gpu(1), "drain", 2)
    until(one, {0: "ok", 1: "drain"})
    assert why(one.report, 1) == ["simulated"]
    until(one, {0: "ok", 1: "ok"})
    path.write_text("{")
    one.ask(look=1, devices=[])
    one.wait(lambda line: "look" in line, WITHIN_S, "an answer in spite of a damaged file")


def test_a_table_of_the_administrator_counts_and_a_bad_one_is_refused_by_name(machine: Machine, tmp_path: Path) -> None:
    table = tmp_path / "gpu-faults.toml"
    table.write_text('[fault.hot]\nseverity = "drain"\nraise-after = 1\n[xid]\n31 = { severity = "failed" }\n')
    machine.let("gpus=2", "g0.temperature=89")
    machine.log(XID.format(code=31, pid=1))
    one = machine.watch(faults=str(table))
    assert states(one.report) == {0: "drain", 1: "failed"}
    table.write_text('# ours\n[fault.hot]\nseverity = "bad"\n')
    other = machine.watch(faults=str(table))
    problem = next(line["problem"] for _, line in other.lines if "problem" in line)
    assert problem.startswith(f"{table}: line 2: fault.hot: severity: 'bad' is none of: failed")
    assert states(other.report)[1] == "ok"


def test_it_ends_with_its_input_and_leaves_nothing(machine: Machine) -> None:
    machine.let("gpus=2")
    one = machine.watch()
    assert machine.children()
    one.end()
    machine.watchers.clear()
    assert machine.children() == []


def test_while_a_device_is_reset_nobody_asks_the_driver_and_errors_from_before_count_no_more(
    machine: Machine, tmp_path: Path
) -> None:
    machine.let("gpus=2", "field230=!3")
    begun, go_on = tmp_path / "begun", tmp_path / "go-on"
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    waits = f"echo $PPID >{begun}; while [ ! -e {go_on} ]; do sleep 0.05; done"
    program.write_text(f'#!/bin/sh\ncase "$*" in *reset*) {waits};; esac\n')
    program.chmod(0o755)
    machine.environment["PATH"] = f"{program.parent}:{machine.environment['PATH']}"
    files = {"lock": str(tmp_path / "lock"), "recovered": str(tmp_path / "recovered")}
    one = machine.watch(**files)
    machine.log("NVRM: Xid (PCI:0000:1b:00): 119, pid=7, name=x, Timeout waiting for RPC from GSP")
    until(one, {0: "ok", 1: "drain"})
    assert next(each["rung"] for each in one.report["devices"] if each["id"] == gpu(1)) == "reset"
    one.ask(do=1, what="reset", device=gpu(1), timeout_s=20)
    while not begun.exists():
        time.sleep(0.01)
    assert one.look(gpu(0)) == {"look": 1, "users": {}, "unknown": [gpu(0)]}
    assert one.family() == [one.process.pid, int(begun.read_text())]
    later = machine.watch(**files)
    assert later.look(gpu(0))["unknown"] == [gpu(0)], "an earlier watcher's reset goes on"
    go_on.touch()
    _, answer = one.wait(lambda line: "answer" in line, WITHIN_S, "the end of the reset")
    assert (answer["answer"], answer["is_done"]) == (1, True)
    until(one, {0: "ok", 1: "ok"})
    assert one.look(gpu(0))["unknown"] == []
    until(machine.watch(**files), {0: "ok", 1: "ok"})
