"""The demonstration where it cannot begin; its play is what `make demo` shows."""

import tempfile
from pathlib import Path

import pytest

from haclusterd.entry_points.demo import main
from haclusterd.entry_points.free_ports import GIVEN


def test_without_ports_it_says_why_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(GIVEN, "abc")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert main([]) == 1
    assert capsys.readouterr().err == (
        f"the demonstration cannot begin: {GIVEN}=abc is no range of ports; it wants to be like 20000-24999\n"
    )
    assert list(tmp_path.iterdir()) == []
