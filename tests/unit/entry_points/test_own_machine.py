"""What a machine says of itself, and how systemd is given its daemons, with tools that write down their use."""

import os
from pathlib import Path

import pytest

from haclusterd.entry_points.own_machine import MAIN_UNIT, UNITS, address_of, address_toward, own_name, start_services

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root installs units")


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand-ins for systemd's tools, first on PATH; return where they write what they were asked."""
    directory, log = tmp_path / "tools", tmp_path / "said"
    directory.mkdir()
    for name in ("systemctl", "systemd-sysusers", "systemd-tmpfiles"):
        tool = directory / name
        refusal = f"test ! -e {tmp_path}/broken || {{ echo no >&2; exit 1; }}"
        tool.write_text(f'#!/bin/sh\necho "{name} $*" >> {log}\n{refusal}\n')
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    (tmp_path / "root" / "run" / "systemd" / "system").mkdir(parents=True)
    return log


@needs_root
def test_systemd_is_given_the_units_once_and_asked_to_start_them(tools: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    assert start_services(root) == []
    enable = f"systemctl enable --now {MAIN_UNIT}"
    assert tools.read_text().splitlines() == [
        "systemd-sysusers /etc/sysusers.d/haclusterd.conf",
        "systemd-tmpfiles --create /etc/tmpfiles.d/haclusterd.conf",
        "systemctl daemon-reload",
        enable,
    ]
    for unit in UNITS:
        written = (root / "etc/systemd/system" / unit).read_text()
        assert ("ExecStart=haclusterd" in written) is unit.endswith(".service")
    tools.unlink()
    assert start_services(root) == []
    assert tools.read_text().splitlines() == [enable]


@needs_root
def test_what_a_package_has_installed_is_not_installed_again(tools: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    packaged = [f"usr/lib/systemd/system/{unit}" for unit in UNITS]
    for name in (*packaged, "usr/lib/sysusers.d/haclusterd.conf", "usr/lib/tmpfiles.d/haclusterd.conf"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    assert start_services(root) == []
    assert tools.read_text().splitlines() == [f"systemctl enable --now {MAIN_UNIT}"]
    assert not (root / "etc").exists()


@needs_root
def test_what_systemd_refuses_is_said(tools: Path, tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    problem, remedy = start_services(tmp_path / "root")
    assert problem == "systemd did not start it: no"
    assert remedy == f"Then: systemctl enable --now {MAIN_UNIT}"


def test_without_systemd_a_person_is_shown_what_to_start(tmp_path: Path) -> None:
    log = start_services(tmp_path)
    assert "No systemd runs here" in log[0]
    assert [line.strip() for line in log[1:]] == ["haclusterd-pacer", "haclusterd"]


def test_addresses_and_name_of_this_machine() -> None:
    assert address_of("lo") == "127.0.0.1"
    assert address_toward(("127.0.0.1", 9)) == "127.0.0.1"
    assert own_name()
    assert "." not in own_name()
    with pytest.raises(OSError, match=r"device|address"):
        address_of("no-such-if")
