"""The watcher of GPUs as a process of the daemon's: what it says is believed when it fits, and what ends it is said."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from haclusterd.adapters.devices import gpu_watch
from haclusterd.adapters.devices.gpu_watch import GpuWatch
from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.model.device_reports import DevicesReport, DeviceUse, DeviceUser, RecoveryAnswer
from haclusterd.model.devices import Device, DeviceId, DeviceState, Rung
from tests.agents.nvml_stub import build_nvml_stub

WITHIN_S = 30
ONE = DeviceId("GPU-1")
REPORT = {
    "devices": [
        {"id": "GPU-1", "kind": "gpu", "bus": "0000:1a:00.0", "model": "H200", "memory_mib": 143771, "link": "a",
         "numa": 1, "is_partitioned": False, "has_ecc": None, "state": "ok", "reasons": [], "users": [["7 x", "llm"]]},
    ],
    "driver": "580", "trouble": "",
}  # fmt: skip
SEEN = Device(ONE, bus="0000:1a:00.0", model="H200", memory_mib=143771, link="a", numa=1)
SCRIPT = """
import json, os, sys
def tell(item): os.write(0, json.dumps(item).encode() + b"\\n")
report = json.loads(sys.argv[1])
"""
ANSWERS = SCRIPT + """
tell({"report": report})
for line in sys.stdin.buffer:
    asked = json.loads(line)
    tell({"look": asked["look"], "users": {"GPU-1": [["7 x", ""]]}, "unknown": ["GPU-2"]})
"""


class Bench:
    def __init__(self, script: str, **settings: object) -> None:
        self.reports: list[DevicesReport] = []
        self.uses: list[DeviceUse] = []
        self.said: list[tuple[str, str]] = []
        command = (sys.executable, "-c", script, json.dumps(REPORT)) if script else None
        options = {"command": command} if command else {}
        loop = asyncio.get_running_loop()
        self.watch = GpuWatch(
            BoottimeClock(loop), loop, settings, say=lambda kind, text: self.said.append((kind, text)), **options
        )
        self.watch.watch(self.reports.append)

    async def until(self, wanted: Callable[[], object]) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not wanted():
                await asyncio.sleep(0.01)

    def look(self, *devices: str) -> None:
        self.watch.look(tuple(map(DeviceId, devices)), self.uses.append)


@pytest.fixture
async def make() -> AsyncIterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def one(script: str = "", **settings: object) -> Bench:
        made.append(Bench(script, **settings))
        return made[-1]

    yield one
    for each in made:
        each.watch.stop()


async def test_a_report_is_read_and_a_look_is_answered(make: Callable[..., Bench]) -> None:
    bench = make(ANSWERS)
    await bench.until(lambda: bench.reports)
    assert bench.reports == [DevicesReport((SEEN,), "580", "", {ONE: (DeviceUser("7 x", "llm"),)})]
    bench.look("GPU-1", "GPU-2", "GPU-3")
    await bench.until(lambda: bench.uses)
    assert bench.uses == [DeviceUse({ONE: (DeviceUser("7 x"),)}, (DeviceId("GPU-2"),))]


@pytest.mark.parametrize(
    "line", ["nonsense", '{"report": {"devices": [{}]}}', '{"report": 1}', '{"look": "x"}', '["look"]', "x" * 1_100_000]
)
async def test_what_is_no_report_ends_the_watcher_and_is_said(make: Callable[..., Bench], line: str) -> None:
    script = f"import os, sys\ndata = {line[:40]!r} * {max(1, len(line) // 40) if len(line) > 1000 else 1}\n"
    bench = make(script + "while data: data = data[os.write(0, data.encode()):]\nos.write(0, b'\\n'); sys.stdin.read()")
    await bench.until(lambda: bench.said)
    assert "the watcher of devices cannot be understood" in bench.said[0][1]
    assert bench.reports == []


async def test_one_that_keeps_ending_makes_what_was_seen_unknown_and_one_that_is_back_is_believed(
    make: Callable[..., Bench], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_watch, "BACKOFF_MS", (10,))
    flag = tmp_path / "ends"
    bench = make(SCRIPT + f"if os.path.exists({str(flag)!r}): sys.exit(9)\ntell({{'report': report}})\n"
                 f"import time\nwhile not os.path.exists({str(flag)!r}): time.sleep(0.01)\nsys.exit(9)")  # fmt: skip
    await bench.until(lambda: bench.reports)
    flag.touch()
    await bench.until(lambda: len(bench.reports) > 1)
    (device,) = bench.reports[-1].devices
    assert (device.state, bench.reports[-1].trouble) == (
        DeviceState.UNKNOWN, "not-watched: the worker ended with status 9",
    )  # fmt: skip
    flag.unlink()
    await bench.until(lambda: bench.reports[-1].devices == (SEEN,))


async def test_one_that_is_silent_is_begun_again_and_looks_are_answered_as_unknown(
    make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_watch, "SILENT_MS", 1_000)
    monkeypatch.setattr(gpu_watch, "LOOK_MS", 100)
    bench = make("import sys; sys.stdin.read()")
    bench.look("GPU-1")
    await bench.until(lambda: bench.uses)
    assert bench.uses == [DeviceUse(unknown=(ONE,))]
    await bench.until(lambda: bench.said)
    assert bench.said[0][1].startswith("the watcher of devices has said nothing for")


async def test_the_real_watcher_over_the_stub(
    make: Callable[..., Bench], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "stub"
    state.write_text(f"gpus=2\ng1.processes={os.getpid()}\n")
    log = tmp_path / "kmsg"
    log.write_text("")
    monkeypatch.setenv("NVML_STUB", str(state))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(build_nvml_stub(tmp_path)))
    bench = make(kernel_log=str(log), sysfs=str(tmp_path), sweep_s=0.1)
    await bench.until(lambda: bench.reports)
    first, second = (device.id for device in bench.reports[0].devices)
    bench.look(first, second)
    await bench.until(lambda: bench.uses)
    assert [each.text.split()[0] for each in bench.uses[0].users[second]] == [str(os.getpid())]
    assert first not in bench.uses[0].users
    assert bench.uses[0].unknown == ()
    state.write_text("gpus=2\nevent=1:0:79\n")
    await bench.until(lambda: bench.reports[-1].devices[0].state is DeviceState.FAILED)
    assert ("xid", f"{first}: Xid 79 (GPU has fallen off the bus), failed, process ?") in bench.said


def test_of_a_device_with_more_users_than_are_counted_nobody_can_say() -> None:
    """The one that matters may be among those that were left out."""
    crowd = [[f"{pid} python", "web"] for pid in range(gpu_watch.USERS_MAX + 1)]
    few, many = DeviceId("GPU-few"), DeviceId("GPU-many")
    use = gpu_watch.read_use((few, many), {"users": {few: crowd[:2], many: crowd}, "unknown": []})
    assert use.unknown == (many,)
    assert use.users[few] == (DeviceUser("0 python", "web"), DeviceUser("1 python", "web"))


DOES = SCRIPT + """
tell({"report": report})
for line in sys.stdin.buffer:
    asked = json.loads(line)
    if asked["device"] == "GPU-2": os._exit(1)
    tell({"answer": asked["do"], "is_done": asked["what"] != "reload", "has_begun": False, "text": json.dumps(asked)})
"""


async def test_what_is_to_be_done_is_answered_once_and_a_watcher_that_ends_may_have_done_it(
    make: Callable[..., Bench]
) -> None:
    bench = make(DOES)
    answers: list[RecoveryAnswer] = []
    bench.watch.recover(ONE, Rung.RESET, answers.append)
    await bench.until(lambda: answers)
    assert answers[0].is_done
    assert json.loads(answers[0].text) == {"do": 1, "what": "reset", "device": "GPU-1", "timeout_s": 120}
    bench.watch.recover(ONE, Rung.RELOAD, answers.append)
    await bench.until(lambda: len(answers) == 2)
    assert (answers[1].is_done, answers[1].has_begun) == (False, False)
    bench.watch.test(DeviceId("GPU-2"), "/opt/burn-in", 5_000, answers.append)
    await bench.until(lambda: len(answers) == 3)
    assert (answers[2].is_done, answers[2].has_begun) == (False, True)


async def test_where_nobody_watches_nothing_is_done_for_certain(make: Callable[..., Bench]) -> None:
    bench = make(DOES)
    bench.watch.stop()
    answers: list[RecoveryAnswer] = []
    bench.watch.recover(ONE, Rung.RESET, answers.append)
    await bench.until(lambda: answers)
    assert (answers[0].is_done, answers[0].has_begun) == (False, False)
