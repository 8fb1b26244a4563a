"""The lab of GPUs says what came of it in its last line, whatever did not come, also when it is broken off."""

from pathlib import Path
from typing import Any

import pytest

from tests.lab import gpu_lab
from tests.lab.gpu_lab import Outcome, Tally, play_all
from tests.lab.gpu_lab_faults import LabFault
from tests.lab.namespaces import LabError


class NoLab:
    """Stands for a cluster that nobody asks."""

    def add_services(self, count: int) -> None:
        pass


def plays(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> Tally:
    def play(_lab: Any, fault: LabFault) -> Outcome:
        if fault.number == 40:
            raise error
        return Outcome(fault, 100, 1500 if fault.leaves else None, "stays", int(fault.leaves), is_exact=True, others=0)

    monkeypatch.setattr(gpu_lab, "play", play)
    tally = Tally()
    lab: Any = NoLab()
    play_all(lab, ["gpu-39", "gpu-4*"], tally)
    return tally


@pytest.mark.parametrize("error", [LabError("not within 60 s: stranger shown"), ConnectionRefusedError("gone")])
def test_what_does_not_come_of_one_fault_keeps_no_other_from_its_turn(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    tally = plays(monkeypatch, error)
    assert {each.fault.number for each in tally.outcomes} == {4, 39, *range(41, 50)}
    assert tally.failures == [f"class 40, stranger: {error}"]
    assert not tally.is_good
    assert " failed=1 interrupted=0" in tally.line()


def test_what_was_played_is_shown_when_it_is_broken_off(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    class Cluster(gpu_lab.LocalCluster):
        def stop(self, *_: Any, **__: Any) -> None:
            pass

    def play(lab: Any, only: Any, tally: Tally) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gpu_lab.tempfile, "tempdir", str(tmp_path))  # Its logs stay after what has failed.
    monkeypatch.setattr(gpu_lab, "play_all", play)
    monkeypatch.setattr(gpu_lab, "LocalCluster", Cluster)
    monkeypatch.setattr(gpu_lab.GpuLab, "start", lambda _: None)
    monkeypatch.setattr(gpu_lab.signal, "signal", lambda *_: None)
    monkeypatch.setattr(gpu_lab.shutil, "which", lambda _: "/usr/bin/cc")
    assert gpu_lab.main(["--only", "gpu-40"]) == 1
    assert "RESULT classes=0 " in capsys.readouterr().out
