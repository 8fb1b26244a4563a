"""The pacer's unit: it comes first, stays, is on time, and is shut in (docs/design/safety.md §3, §8)."""

from pathlib import Path

UNIT = Path(__file__).parents[2] / "systemd" / "haclusterd-pacer.service"

NEEDED = {
    "Type": "notify",
    "Before": "haclusterd.service",
    "Restart": "always",
    "StartLimitIntervalSec": "0",
    "RuntimeDirectory": "haclusterd",
    "RuntimeDirectoryPreserve": "yes",
    "RefuseManualStop": "yes",
    "StopWhenUnneeded": "yes",
    "LimitRTPRIO": "3",
    "LimitMEMLOCK": "infinity",
    "OOMScoreAdjust": "-1000",
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX",
    "CapabilityBoundingSet": "CAP_IPC_LOCK CAP_SYS_NICE",
}
ENDED_WITH_ANOTHER = (
    "BindsTo=", "PartOf=", "PropagatesStopTo=", "Requires=", "Requisite=", "Conflicts=", "WatchdogSec=",
)  # fmt: skip
DEMANDS_A_PRIVILEGE = ("CPUScheduling", "IOScheduling", "Nice=")
"""With these the program is not started where they are forbidden (exit status 214 and others)."""


def test_the_unit_says_what_is_needed() -> None:
    lines = UNIT.read_text().splitlines()
    assert [f"{name}={value}" for name, value in NEEDED.items() if f"{name}={value}" not in lines] == []


def test_nothing_else_ends_it() -> None:
    assert [line for line in UNIT.read_text().splitlines() if line.startswith(ENDED_WITH_ANOTHER)] == []


def test_it_is_started_also_where_real_time_is_forbidden() -> None:
    assert [line for line in UNIT.read_text().splitlines() if line.startswith(DEMANDS_A_PRIVILEGE)] == []


def test_it_is_started_because_the_brain_wants_it_and_for_no_other_reason() -> None:
    assert "[Install]" not in UNIT.read_text()
    assert "Wants=haclusterd-pacer.service" in UNIT.with_name("haclusterd.service").read_text()
