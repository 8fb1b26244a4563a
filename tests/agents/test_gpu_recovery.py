"""What resets a GPU, loads its driver again or tests it: with stand-ins for the programs that do it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from haclusterd.agents.recovering import gpu_recovery

SCRIPT = Path(gpu_recovery.__file__)
GPU = "GPU-00000000-0000-0000-0000-000000000001"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Return a directory of programs that write down how they were called."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name in ("nvidia-smi", "modprobe", "systemctl", "burn-in"):
        program = directory / name
        program.write_text(
            f'#!/bin/sh\necho {name} "$@" "$CUDA_VISIBLE_DEVICES" >>{tmp_path}/calls\n. {tmp_path}/{name}.does\n'
        )
        program.chmod(0o755)
        (tmp_path / f"{name}.does").write_text("")
    return directory


def run(programs: Path, what: str, **settings: Any) -> dict[str, Any]:
    directory = programs.parent
    wanted = {
        "what": what, "device": GPU, "timeout_s": 20, "lock": str(directory / "lock"),
        "recovered": str(directory / "recovered"), "program": str(programs / "burn-in"), **settings,
    }  # fmt: skip
    environment = {"PATH": f"{programs}:/usr/bin:/bin"}
    ended = subprocess.run(
        [sys.executable, "-S", "-E", SCRIPT, json.dumps(wanted)], env=environment, capture_output=True, check=True,
        timeout=60,
    )  # fmt: skip
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def calls(programs: Path) -> list[str]:
    return [line.strip() for line in (programs.parent / "calls").read_text().splitlines()]


def test_a_reset_is_noted_and_lets_go_of_the_lock(programs: Path) -> None:
    assert run(programs, "reset") == {"is_done": True, "has_begun": True, "text": "exit status 0"}
    assert calls(programs)[-1] == f"nvidia-smi --gpu-reset -i {GPU}"
    assert list(gpu_recovery.recovered(str(programs.parent / "recovered"))) == [GPU]
    assert not gpu_recovery.is_locked(str(programs.parent / "lock"))


def test_persistence_is_switched_off_around_a_reset(programs: Path) -> None:
    (programs.parent / "nvidia-smi.does").write_text('case "$*" in *query*) echo Enabled;; *reset*) exit 1;; esac\n')
    assert run(programs, "reset")["is_done"] is False
    assert [call.split(GPU)[-1].split("--")[0].strip() for call in calls(programs)] == ["", "-pm 0", "", "-pm 1"]
    assert gpu_recovery.recovered(str(programs.parent / "recovered")) == {}


def test_a_device_in_use_is_declined_with_nothing_done(programs: Path) -> None:
    (programs.parent / "nvidia-smi.does").write_text("echo 'GPU is in use by another client'; exit 19\n")
    answer = run(programs, "reset")
    assert answer == {"is_done": False, "has_begun": False, "text": "GPU is in use by another client"}


def test_what_is_missing_is_said(programs: Path) -> None:
    (programs / "nvidia-smi").unlink()
    answer = run(programs, "reset")
    assert (answer["is_done"], answer["has_begun"]) == (False, False)
    assert "nvidia-smi" in answer["text"]


def test_nothing_begins_while_an_earlier_recovery_goes_on(programs: Path) -> None:
    lock = str(programs.parent / "lock")
    assert not gpu_recovery.is_locked(lock)
    held = gpu_recovery.lock(lock)
    assert held is not None
    try:
        assert gpu_recovery.is_locked(lock)
        assert gpu_recovery.lock(lock) is None
        assert run(programs, "reset") == {
            "is_done": False, "has_begun": False, "text": "an earlier recovery has not ended yet",
        }  # fmt: skip
    finally:
        os.close(held)
    assert not gpu_recovery.is_locked(lock)


def test_a_reload_stops_what_holds_the_modules_and_starts_it_again(programs: Path) -> None:
    proc = programs.parent / "proc"
    proc.mkdir()
    (proc / "modules").write_text("nvidia_uvm 1 0 - Live\nnvidia 1 1 nvidia_uvm, Live\next4 1 0 - Live\n")
    (programs.parent / "systemctl.does").write_text('case "$*" in *is-active*dcgm*|*is-active*imex*) exit 3;; esac\n')
    assert run(programs, "reload", proc=str(proc))["is_done"] is True
    done = [call for call in calls(programs) if "is-active" not in call]
    assert done == [
        "systemctl stop nvidia-persistenced", "systemctl stop nvidia-fabricmanager",
        "modprobe -r nvidia_uvm", "modprobe -r nvidia", "modprobe nvidia", "modprobe nvidia_uvm",
        "systemctl start nvidia-fabricmanager", "systemctl start nvidia-persistenced",
    ]  # fmt: skip
    assert list(gpu_recovery.recovered(str(programs.parent / "recovered"))) == [""]


def test_a_module_that_stays_is_a_failure_and_what_was_stopped_is_started(programs: Path) -> None:
    proc = programs.parent / "proc"
    proc.mkdir()
    (proc / "modules").write_text("nvidia 1 1 - Live\n")
    (programs.parent / "modprobe.does").write_text("[ \"$1\" = -r ] && { echo 'in use' >&2; exit 1; }\n:\n")
    answer = run(programs, "reload", proc=str(proc))
    assert answer == {"is_done": False, "has_begun": True, "text": "modprobe -r nvidia: in use"}
    assert calls(programs)[-1] == "systemctl start nvidia-persistenced"


@pytest.mark.parametrize(("status", "is_done"), [(0, True), (3, False)])
def test_a_test_gets_its_device_and_says_how_it_is(programs: Path, status: int, *, is_done: bool) -> None:
    (programs.parent / "burn-in.does").write_text(f"echo 7 errors; exit {status}\n")
    assert run(programs, "test") == {"is_done": is_done, "has_begun": True, "text": "7 errors"}
    assert calls(programs) == [f"burn-in {GPU} {GPU}"]


def test_a_test_that_does_not_end_is_ended(programs: Path) -> None:
    (programs.parent / "burn-in.does").write_text("exec sleep 1000\n")
    answer = run(programs, "test", timeout_s=0.3)
    assert (answer["is_done"], answer["text"]) == (False, "burn-in did not end within 0 s")
