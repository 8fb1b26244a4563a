"""gpu-health over a stub of NVIDIA's library: what breaks is named, what hangs hangs nothing, what heals is healed."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from haclusterd.agents.process_table import list_pids, read_marks, read_stat
from tests.agents.answering_daemon import AnsweringDaemon
from tests.agents.conftest import AgentUnderTest

NOT_CONFIGURED, NOT_RUNNING = 6, 7
BUSES = ("0000:1a:00", "0000:1b:00", "0000:1c:00", "0000:1d:00")


class Node:
    """A machine with four devices, or with whatever a test says."""

    def __init__(self, agent: AgentUnderTest, daemon: AnsweringDaemon, directory: Path) -> None:
        self.agent = agent
        self.daemon = daemon
        self.state = directory / "stub"
        self.kernel_log = directory / "kmsg"
        self.sequence = 0
        self.kernel_log.write_text("")
        agent.environment["NVML_STUB"] = str(self.state)
        agent.parameters["kernel_log"] = str(self.kernel_log)
        self.let()

    def let(self, *lines: str) -> None:
        new = self.state.with_suffix(".new")
        new.write_text("\n".join(("gpus=4", *lines)) + "\n")
        new.replace(self.state)

    def log(self, text: str, *, ago_s: float = 0.0) -> None:
        self.sequence += 1
        at = int((time.clock_gettime(time.CLOCK_MONOTONIC) - ago_s) * 1e6)
        with self.kernel_log.open("a") as stream:
            stream.write(f"4,{self.sequence},{at},-;{text}\n SUBSYSTEM=pci\n")

    def start(self) -> None:
        done = self.agent.run("start")
        assert done.returncode == 0, done.stderr

    def sample(self, times: int = 1, **changes: str) -> None:
        for _ in range(times):
            done = self.agent.run("monitor", **changes)
            assert done.returncode == 0, done.stderr

    @property
    def colour(self) -> str:
        return self.daemon.attributes()["#health-gpu"]

    def states(self) -> list[str]:
        return [self.daemon.attributes().get(f"gpu-{bus}-state", "-") for bus in BUSES]

    def why(self, index: int) -> str:
        return self.daemon.attributes().get(f"gpu-{BUSES[index]}-why", "")


@pytest.fixture
def node(
    make_watcher: Callable[..., AgentUnderTest], daemon: AnsweringDaemon, library: Path, tmp_path: Path
) -> Node:
    return Node(make_watcher("gpu-health", library_path=str(library)), daemon, tmp_path)


def test_healthy_devices_are_published_and_taken_away_at_the_end(node: Node) -> None:
    node.start()
    assert node.states() == ["ok"] * 4
    assert node.daemon.attributes() == {
        "#health-gpu": "green", "gpu-driver": "570.86.10", "gpu-usable": "4",
        **{f"gpu-{bus}-state": "ok" for bus in BUSES},
    }  # fmt: skip
    node.sample()
    assert node.agent.code("stop") == 0
    assert node.daemon.attributes() == {}
    assert node.agent.code("monitor") == NOT_RUNNING


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("fault", "samples", "state", "why"),
    [
        ("any=!15", 1, "failed", "lost"),
        ("handle=!15", 1, "failed", "lost"),
        ("any=!16", 1, "drain", "reset-required"),
        ("temperature=!999", 1, "unknown", "no-answer"),
        ("field230=1", 1, "drain", "recovery-reset"),
        ("field230=3", 1, "degraded", "recovery-drain-p2p"),
        ("field230=5", 1, "drain", "recovery-imex"),
        ("ecc_uncorrected=2", 1, "degraded", "ecc-uncorrected"),
        ("sram_exceeded=1", 1, "drain", "sram-exceeded"),
        ("remap_pending=1", 1, "degraded", "remap-pending"),
        ("remap_failed=1", 1, "drain", "remap-failed"),
        ("pages_pending=1", 1, "degraded", "pages-pending"),
        ("temperature=89", 3, "degraded", "hot"),
        ("temperature=92", 1, "drain", "too-hot"),
        ("reasons=0x40", 3, "degraded", "slowed-down"),
        ("reasons=0x80", 3, "degraded", "power-brake"),
        ("link7=0", 2, "degraded", "nvlink-down"),
        ("fabric=2", 3, "degraded", "fabric-waits"),
    ],
)
def test_one_faulty_device_of_four_is_named_and_the_node_is_yellow(
    node: Node, fault: str, samples: int, state: str, why: str
) -> None:
    node.start()
    node.let(f"g2.{fault}")
    if samples > 1:
        node.sample(samples - 1)
        assert (node.states(), node.colour) == (["ok"] * 4, "green"), "not believed yet"
    node.sample()
    assert (node.states(), node.colour) == (["ok", "ok", state, "ok"], "yellow")
    assert node.why(2) == why
    assert node.daemon.attributes()["gpu-usable"] == ("4" if state == "degraded" else "3")


@pytest.mark.parametrize(
    ("fault", "good_samples"),
    [("any=!16", 1), ("field230=1", 1), ("temperature=!999", 3), ("temperature=92", 3), ("ecc_uncorrected=2", 1)],
)
def test_what_heals_is_healed_after_enough_good_samples(node: Node, fault: str, good_samples: int) -> None:
    node.start()
    node.let(f"g2.{fault}")
    node.sample()
    assert node.colour == "yellow"
    node.let()
    if good_samples > 1:
        node.sample(good_samples - 1)
        assert node.colour == "yellow"
    node.sample()
    assert (node.colour, node.states(), node.why(2)) == ("green", ["ok"] * 4, "")


@pytest.mark.parametrize("fault", ["any=!15", "remap_failed=1", "sram_exceeded=1"])
def test_what_only_a_reboot_heals_stays_until_the_resource_is_stopped(node: Node, fault: str) -> None:
    node.start()
    node.let(f"g2.{fault}")
    node.sample()
    node.let()
    node.sample(5)
    assert node.colour == "yellow"
    assert node.agent.code("stop") == 0
    node.start()
    assert node.colour == "green"


def test_what_cannot_be_seen_is_no_fault(node: Node) -> None:
    keys = ("fields", "ecc_uncorrected", "sram_exceeded", "remap_pending", "temperature", "reasons", "link0", "busy")
    node.let(*(f"{key}=!{code}" for key, code in zip(keys, (3, 13, 4) * 3, strict=False)))
    node.start()
    node.sample(3)
    assert (node.states(), node.colour) == (["ok"] * 4, "green")


def test_without_a_verdict_of_the_driver_memory_errors_drain(node: Node) -> None:
    node.let("field230=!3", "g1.ecc_uncorrected=1")
    node.start()
    assert (node.states()[1], node.why(1)) == ("drain", "ecc-uncorrected")


def test_an_idle_link_is_narrow_by_right_and_a_busy_one_is_not(node: Node) -> None:
    node.let("g1.pcie_width=8")
    node.start()
    node.sample(4)
    assert node.states()[1] == "ok"
    node.let("g1.pcie_width=8", "g1.busy=90")
    node.sample(3)
    assert (node.states()[1], node.why(1)) == ("degraded", "pcie-width")
    node.let()
    node.sample(5)
    assert node.states()[1] == "degraded", "an idle link proves nothing"


def test_a_device_that_goes_missing_is_failed_and_is_known_again(node: Node) -> None:
    node.start()
    node.let("gpus=3")
    node.sample()
    assert node.states()[3] == "ok"
    node.sample()
    assert (node.states()[3], node.why(3), node.colour) == ("failed", "missing", "yellow")
    node.let()
    node.sample(2)
    assert node.states() == ["ok"] * 4


@pytest.mark.parametrize(
    "lines", [["any=!15"], ["field230=1"], ["g0.field230=2"], ["g1.field230=7"]]
)
def test_what_concerns_the_whole_node_is_red(node: Node, lines: list[str]) -> None:
    node.let(*lines)
    node.start()
    assert node.colour == "red"
    assert node.daemon.attributes()["gpu-why"] in ("no-device-usable", "node-reboot")


# -- the driver -----------------------------------------------------------------------------------------------------


def test_a_machine_without_the_library_has_no_devices_and_is_well(node: Node) -> None:
    node.agent.parameters.pop("library_path")
    node.start()
    node.sample(3)
    assert node.daemon.attributes() == {"#health-gpu": "green", "gpu-driver": "absent", "gpu-usable": "0"}


def test_where_devices_are_expected_a_missing_library_is_a_fault(node: Node) -> None:
    node.agent.parameters.pop("library_path")
    node.agent.parameters["expected"] = "4"
    node.start()
    assert node.colour == "green"
    node.sample()
    assert (node.colour, node.daemon.attributes()["gpu-why"]) == ("red", "library-missing")


@pytest.mark.parametrize(
    ("code", "word", "samples", "colour"),
    [(9, "not-loaded", 2, "red"), (18, "mismatch", 1, "yellow"), (999, "error-999", 2, "red")],
)
def test_a_driver_that_does_not_work_is_a_state(node: Node, code: int, word: str, samples: int, colour: str) -> None:
    node.start()
    node.let(f"init=!{code}")
    node.sample(samples)
    assert (node.colour, node.daemon.attributes()["gpu-driver"]) == (colour, word)
    node.let()
    node.sample()
    assert (node.colour, node.states()) == ("green", ["ok"] * 4)


def test_fewer_devices_than_expected_are_a_fault(node: Node) -> None:
    node.agent.parameters["expected"] = "8"
    node.start()
    node.sample()
    assert (node.colour, node.daemon.attributes()["gpu-why"]) == ("yellow", "devices-missing")


# -- what hangs -----------------------------------------------------------------------------------------------------


def workers(node: Node) -> list[int]:
    return [pid for pid in list_pids() if read_marks(pid).get("NVML_STUB") == str(node.state)]


@pytest.mark.parametrize("how", ["temperature=@hang", "handle=@hang", "temperature=@hard"])
def test_a_device_that_hangs_is_named_hides_no_other_and_hangs_nothing(node: Node, how: str) -> None:
    node.start()
    node.let(f"g1.{how}", "g3.any=!15")
    node.sample(device_timeout="2s")  # Within it the others have to answer.
    assert (node.states(), node.colour) == (["ok", "unknown", "ok", "failed"], "yellow")
    assert workers(node) == []
    node.sample(2, device_timeout="500ms")
    assert (node.states()[1], node.why(1)) == ("failed", "hang-lasts,hang")
    node.let()
    node.sample(3)
    assert node.states() == ["ok", "ok", "ok", "failed"]


def test_all_devices_that_hang_are_named(node: Node) -> None:
    node.start()
    node.let("temperature=@hang")
    node.sample(device_timeout="500ms")
    assert (node.states(), node.colour) == (["unknown"] * 4, "red")


def test_a_driver_that_hangs_is_yellow_and_red_when_it_lasts(node: Node) -> None:
    node.start()
    node.let("init=@hang")
    node.sample(driver_timeout="500ms")
    assert (node.colour, node.daemon.attributes()["gpu-driver"]) == ("yellow", "hung")
    assert node.states() == ["ok"] * 4, "nothing new is known of them"
    node.sample(2, driver_timeout="500ms")
    assert node.colour == "red"
    node.let()
    node.sample(3)
    assert node.colour == "green"


def test_while_a_child_that_cannot_be_killed_is_there_no_other_is_started(node: Node) -> None:
    node.start()
    unkillable = subprocess.Popen(["sleep", "1000"])
    try:
        path = next(node.agent.state.glob("*.state"))
        state = json.loads(path.read_text())
        stat = read_stat(unkillable.pid)
        assert stat is not None
        path.write_text(json.dumps({**state, "orphan": [unkillable.pid, stat.start_time], "hung": [1]}))
        node.let("any=!15")
        node.sample()
        assert node.states() == ["ok", "unknown", "ok", "ok"], "the others were not asked"
        node.sample(2)
        assert node.states()[1] == "failed"
    finally:
        unkillable.kill()
        unkillable.wait(10)
    node.let()
    node.sample(3)
    assert node.states() == ["ok"] * 4


def test_the_deadlines_fit_into_the_actions_timeout(node: Node) -> None:
    node.start()
    node.let("temperature=@hang")
    began = time.monotonic()
    done = node.agent.run("monitor", timeout_ms=13_000)
    assert (done.returncode, node.colour) == (0, "yellow")
    assert time.monotonic() - began < 13


# -- the kernel log -------------------------------------------------------------------------------------------------

XID = "NVRM: Xid (PCI:0000:1b:00): {code}, pid='{pid}', name=python3, Ch 00000001"


@pytest.mark.parametrize(
    ("text", "state", "why"),
    [
        (XID.format(code=79, pid=4711), "failed", "xid-79"),
        (XID.format(code=62, pid=4711), "drain", "xid-62"),
        (XID.format(code=92, pid=4711), "degraded", "xid-92"),
        (XID.format(code=9999, pid=4711), "degraded", "xid-9999"),
        (XID.format(code=109, pid=4711), "degraded", "xid-109"),
        (XID.format(code=31, pid=4711), "ok", ""),
        (XID.format(code=43, pid="<unknown>"), "ok", ""),
        (XID.format(code=154, pid=4711), "ok", ""),
        ("NVRM: GPU 0000:1b:00.0: GPU has fallen off the bus.", "failed", "xid-79"),
        ("NVRM: The NVIDIA GPU 0000:1b:00.0", "ok", ""),
        ("usb 1-1: new high-speed USB device number 79", "ok", ""),
    ],
)
def test_an_xid_is_as_grave_as_the_table_says(node: Node, text: str, state: str, why: str) -> None:
    node.start()
    node.log(text)
    node.sample()
    assert (node.states(), node.why(1)) == (["ok", state, "ok", "ok"], why)


def test_a_driver_that_wants_nothing_done_ends_an_xid_after_its_time_and_one_without_a_verdict_never(
    node: Node,
) -> None:
    node.agent.parameters["xid_hold"] = "1s"
    node.log(XID.format(code=62, pid=1), ago_s=2)  # Not long ago: the machine may have booted just now.
    node.start()
    assert node.states()[1] == "ok"
    node.let("field230=!3")
    node.sample()
    assert node.states()[1] == "drain"


def test_the_second_of_a_disputed_xid_counts(node: Node) -> None:
    for _ in range(2):
        node.log(XID.format(code=109, pid=1))
    node.start()
    assert node.states()[1] == "drain"


def test_errors_of_several_programs_on_one_device_point_to_the_device(node: Node) -> None:
    for pid in (1, 2, 2):
        node.log(XID.format(code=31, pid=pid))
    node.start()
    assert node.states()[1] == "ok"
    node.log(XID.format(code=13, pid=3))
    node.sample()
    assert (node.states()[1], node.why(1)) == ("degraded", "xid-application")


def test_an_administrator_overrules_the_table(node: Node) -> None:
    node.agent.parameters["xids"] = "62=ignored, 31=failed"
    node.log(XID.format(code=62, pid=1))
    node.start()
    assert node.states()[1] == "ok"
    node.log(XID.format(code=31, pid=1))
    node.sample()
    assert node.states()[1] == "failed"


def test_a_kernel_log_that_cannot_be_read_is_said_and_no_fault(node: Node) -> None:
    node.agent.parameters["kernel_log"] = "/no/such/log"
    done = node.agent.run("start")
    assert (done.returncode, node.colour) == (0, "green")
    assert "/no/such/log: No such file or directory" in done.stderr


@pytest.mark.parametrize(
    "wrong",
    [
        {"remap_pending": "fatal"}, {"xids": "62"}, {"xids": "62=bad"}, {"expected": "all"}, {"xid_hold": "long"},
        {"driver_timeout": "x"}, {"device_timeout": "x"}, {"dampen": "x"},
    ],
)  # fmt: skip
def test_an_impossible_parameter_is_refused(node: Node, wrong: dict[str, str]) -> None:
    done = node.agent.run("validate-all", **wrong)
    assert done.returncode == NOT_CONFIGURED
    assert next(iter(wrong)) in done.stderr
