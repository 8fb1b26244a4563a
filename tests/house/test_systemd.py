"""The units say what the safety argument needs (docs/design/safety.md §8), and systemd understands them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SYSTEMD = Path(__file__).parents[2] / "systemd"

NEEDED = {
    "Type": "notify",
    "KillMode": "process",
    "SendSIGKILL": "no",
    "Delegate": "yes",
    "OOMPolicy": "continue",
    "TasksMax": "infinity",
    "LimitNOFILE": "65536",
    "LimitMEMLOCK": "infinity",
    "OOMScoreAdjust": "-900",
    "TimeoutStopSec": "30min",
    "WatchdogSec": "6s",
    "WatchdogSignal": "SIGKILL",
    "Restart": "always",
    "RestartSec": "200ms",
    "RestartPreventExitStatus": "2 64 65 66 67 78",
    "StartLimitIntervalSec": "0",
    "ExecReload": "kill -HUP $MAINPID",
}

SANDBOX = re.compile(
    r"(Protect|Private|Restrict|System[Cc]all|ReadOnly|ReadWrite|Inaccessible|NoNewPriv|Capability|Ambient|MemoryDeny"
    r"|DynamicUser|User\b|Group\b|RootDirectory|RootImage|BindPaths|TemporaryFileSystem|LockPersonality|Memory(Max|High)|CPUQuota)"
)


def directives(unit: Path) -> dict[str, str]:
    pairs = (line.partition("=") for line in unit.read_text().splitlines() if "=" in line and line[0] not in "#;")
    return {name.strip(): value.strip() for name, _, value in pairs}


def test_the_unit_of_the_brain_says_what_is_needed() -> None:
    found = directives(SYSTEMD / "haclusterd.service")
    assert {name: found.get(name) for name in NEEDED} == NEEDED


def test_agents_inherit_no_sandbox() -> None:
    assert not [name for name in directives(SYSTEMD / "haclusterd.service") if SANDBOX.match(name)]


def test_between_the_daemon_and_its_units_stands_a_target_that_stays() -> None:
    brain, target = directives(SYSTEMD / "haclusterd.service"), directives(SYSTEMD / "haclusterd-resources.target")
    lines = (SYSTEMD / "haclusterd.service").read_text().splitlines()
    assert "Wants=haclusterd-resources.target" in lines
    assert brain["After"].split()[-1] == "haclusterd-resources.target"
    assert target["RefuseManualStop"] == "yes"
    assert not {"PartOf", "BindsTo", "StopWhenUnneeded", "Requires", "DefaultDependencies"} & set(target)


@pytest.mark.parametrize("unit", sorted(SYSTEMD.glob("*.service")), ids=lambda unit: unit.name)
def test_systemd_understands_the_unit(unit: Path, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    for each in SYSTEMD.glob("*.service"):
        # The programs are where the package was installed to; what is verified is everything around them.
        text = re.sub(r"^(Exec\w+=)haclusterd\S*", r"\1/bin/true", each.read_text(), flags=re.MULTILINE)
        (tmp_path / each.name).write_text(text)
    for each in SYSTEMD.glob("*.target"):
        shutil.copy(each, tmp_path)
    command = [analyze, "verify", "--man=no", "--recursive-errors=no", str(tmp_path / unit.name)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("systemd-sysusers", ["--root={root}", str(SYSTEMD / "haclusterd.sysusers")]),
        ("systemd-tmpfiles", ["--create", "--root={root}", str(SYSTEMD / "haclusterd.tmpfiles")]),
    ],
)
def test_systemd_carries_out_groups_and_directories(tool: str, arguments: list[str], tmp_path: Path) -> None:
    program = shutil.which(tool)
    if program is None:
        pytest.skip(f"{tool} is not installed")
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "group").write_text("root:x:0:\nhaclient:x:189:\n" if "tmpfiles" in tool else "root:x:0:\n")
    (tmp_path / "etc" / "passwd").write_text("root:x:0:0:root:/:/bin/sh\n")
    command = [program, *(argument.format(root=tmp_path) for argument in arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    if tool == "systemd-sysusers":
        assert "haclient:" in (tmp_path / "etc" / "group").read_text()
    else:
        assert (tmp_path / "var/lib/haclusterd").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "run/haclusterd").is_dir()


def test_resources_leave_before_network_file_systems_do() -> None:
    lines = (SYSTEMD / "haclusterd.service").read_text().splitlines()
    for name in ("Wants", "After"):
        wanted = [word for line in lines if line.startswith(f"{name}=") for word in line.partition("=")[2].split()]
        assert {"remote-fs.target", "resource-agents-deps.target"} <= set(wanted), name


@pytest.mark.parametrize("program", ["haclusterd", "haclusterd-pacer"])
def test_a_program_is_checked_before_it_replaces_the_running_one(program: str) -> None:
    lines = (SYSTEMD / f"{program}.service").read_text().splitlines()
    assert [line for line in lines if line.startswith("ExecReload=")] == [
        f"ExecReload={program} --check",
        "ExecReload=kill -HUP $MAINPID",
    ]


API_IS_SHUT_IN = {
    "User": "haclusterd-api",
    "SupplementaryGroups": "haclient",
    "CapabilityBoundingSet": "",
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX",
    "MemoryMax": "300M",
}


def test_the_unit_of_the_api_is_shut_in_and_no_part_of_the_daemons_life() -> None:
    found = directives(SYSTEMD / "haclusterd-api.service")
    assert {name: found.get(name) for name in API_IS_SHUT_IN} == API_IS_SHUT_IN
    assert {"Requires", "BindsTo", "PartOf", "Wants"} & set(found) == set()
