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
    "CPUSchedulingPolicy": "rr",
    "LimitMEMLOCK": "infinity",
    "OOMScoreAdjust": "-1000",
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX",
    "CapabilityBoundingSet": "CAP_IPC_LOCK CAP_SYS_NICE",
}
ENDED_WITH_ANOTHER = ("BindsTo=", "PartOf=", "Requires=", "Requisite=", "Conflicts=", "WatchdogSec=")


def test_the_unit_says_what_is_needed() -> None:
    lines = UNIT.read_text().splitlines()
    assert [f"{name}={value}" for name, value in NEEDED.items() if f"{name}={value}" not in lines] == []


def test_nothing_else_ends_it() -> None:
    assert [line for line in UNIT.read_text().splitlines() if line.startswith(ENDED_WITH_ANOTHER)] == []
