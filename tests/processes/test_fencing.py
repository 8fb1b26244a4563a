"""Fencing that fails: nothing is recovered, the first screen says so, and a person can end it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.processes.daemons import Scenario

pytestmark = [pytest.mark.processes, pytest.mark.slow]


def headline(scenario: Scenario, word: str) -> str:
    return next((each["verdict"] + ": " + each["text"] for each in scenario.status().get("headlines", [])
                 if word in each["verdict"]), "")  # fmt: skip


def history(scenario: Scenario, node: str) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = scenario.must("fencing.history", node=node)["records"]
    return found


def test_a_dead_device_holds_until_a_person_confirms(scenario: Scenario, tmp_path: Path) -> None:
    switch = tmp_path / "switch"
    switch.mkdir()
    for file in scenario.cluster.nodes_directory.iterdir():
        (switch / file.name).write_bytes(file.read_bytes())
    scenario.form()
    scenario.configure(
        f"primitive power stonith:fence_local params nodes_dir={switch} pcmk_reboot_retries=1",
        "primitive svc ocf:haclusterd:exec params command=sleep args=100000 op monitor interval=1s timeout=10s",
        "property fencing-max-attempts=3",
    )
    scenario.until("the service to run", lambda: scenario.holder() is not None)
    scenario.settle()
    victim = scenario.holder()
    assert victim is not None
    for file in switch.iterdir():
        file.unlink()
    scenario.cluster.power_off(victim)
    scenario.until("three failed attempts", lambda: len(history(scenario, victim)) == 3)
    assert len({record["executor"] for record in history(scenario, victim)}) == 2, "from each node that is left"
    assert f"NO FAILOVER for {victim}" in headline(scenario, "NO FAILOVER")
    assert scenario.holder() is None

    said = scenario.answer("fencing.confirm", node=victim)
    assert said.exit != 0, "not without a look"
    assert scenario.holder() is None
    scenario.until("it to be silent long enough to be believed", lambda: confirms(scenario, victim))
    scenario.until("the service elsewhere", lambda: scenario.holder() is not None)
    assert history(scenario, victim)[-1]["outcome"] == "confirmed"
    scenario.must("fencing.cleanup")
    assert history(scenario, victim) == []


def confirms(scenario: Scenario, node: str) -> bool:
    return bool(scenario.answer("fencing.confirm", node=node, has_checked=True).exit == 0)
