"""Real pacers with a stand-in for the watchdog device, whose expiry ends all processes of its node; no power switch."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from haclusterd.adapters.pacer.page_file import open_page
from tests.processes.daemons import OFTEN_S, Scenario, kill

pytestmark = pytest.mark.processes

T_WD_MS = 5000
"""A pacer is started again, and a service stopped, within three quarters of it."""
NODE_TIMEOUT_MS = 2000
LONG_NODE_TIMEOUT_MS = 5000


def wait_ms(lease_ms: int) -> int:
    """Return W: how long survivors wait."""
    return (lease_ms + 2 * T_WD_MS) * 102 // 100 + 1000


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Scenario]:
    scenario = Scenario(tmp_path / "cluster", watchdog_ms=T_WD_MS)
    try:
        scenario.form()
        # A daemon may join before its device is there, and say so afterwards.
        scenario.until("all devices", lambda: len(scenario.must("cluster.timing")["watchdogs"]) == 3)
        scenario.configure(
            "property fencing-enabled=true watchdog-fencing=true brain-timeout=2s",
            "primitive svc ocf:haclusterd:exec params command=sleep args=100000 "
            "op monitor interval=1s timeout=10s op start timeout=20s op stop timeout=20s",
            "rsc_defaults resource-stickiness=100",
        )
        scenario.until("the service to run", lambda: scenario.holder() is not None)
        scenario.settle()
        yield scenario
    finally:
        scenario.close()


def device(scenario: Scenario, node: str) -> str:
    return scenario.log(node, "watchdog")


def holder_of(scenario: Scenario) -> str:
    found = scenario.holder()
    assert found is not None
    return found


def lease_left_ms(scenario: Scenario, node: str) -> int:
    mapped = open_page(scenario.cluster.nodes[node].runtime)
    held = None if mapped is None else mapped.page.held_lease()
    return 0 if held is None else held.until - time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def others(scenario: Scenario, node: str) -> list[str]:
    return [name for name in scenario.cluster.names if name != node]


def recovered_after_reset(scenario: Scenario, holder: str, lease_ms: int = NODE_TIMEOUT_MS) -> None:
    """Wait until the service runs on another node; demand that it never ran twice, and only after the reset."""
    copies: list[int] = []

    def runs_on_another() -> bool:
        found = {name for name in scenario.cluster.names if scenario.service_pids(name)}
        copies.append(len(found))
        return bool(found - {holder})

    scenario.until("the service on another node", runs_on_another, wait_ms(lease_ms) / 1000 + 12, OFTEN_S)
    assert max(copies) == 1
    assert "expired" in device(scenario, holder)
    scenario.until("the end of all its processes", lambda: scenario.cluster.processes(holder) == [])
    scenario.brain(holder).wait(5)
    scenario.pacer(holder).wait(5)


def test_a_pacer_that_comes_back_keeps_its_node_and_a_hung_brain_ends_it(watched: Scenario) -> None:
    timing = watched.must("cluster.timing")
    assert {row["wait_ms"] for row in timing["watchdogs"]} == {wait_ms(NODE_TIMEOUT_MS)} == {13_240}
    assert {row["timeout_ms"] for row in timing["watchdogs"]} == {T_WD_MS}
    assert [row["resource"] for row in timing["long_stops"]] == ["svc"]
    first = watched.status()["headlines"][0]
    assert first["verdict"].startswith("WEAK WATCHDOG on n1, n2, n3"), first

    # While a pacer starts again its node is silent, and its lease not renewed.
    watched.configure(f"property node-timeout={LONG_NODE_TIMEOUT_MS}ms")
    watched.until("the longer leases", lambda: all(
        lease_left_ms(watched, name) > NODE_TIMEOUT_MS for name in watched.cluster.names))  # fmt: skip
    holder = holder_of(watched)
    before, pid = watched.service_pids(holder), watched.pacer(holder).pid
    images = watched.log(holder, "pacer").count("serving")
    kill(pid, signal.SIGHUP)
    watched.until("the new image", lambda: watched.log(holder, "pacer").count("serving") > images)
    assert watched.pacer(holder).pid == pid
    assert "closed" not in device(watched, holder), "the device was open all the time"
    watched.pacer(holder).terminate()
    assert watched.pacer(holder).wait(5) == 0
    watched.until("the device closed", lambda: "closed, and continues counting" in device(watched, holder))
    watched.cluster.start_pacer(holder)
    watched.hold("nobody is reset", lambda: watched.service_pids(holder) == before, for_s=2 * T_WD_MS / 1000)
    assert watched.events("node-lost") == []

    kill(watched.brain(holder).pid, signal.SIGSTOP)
    recovered_after_reset(watched, holder, LONG_NODE_TIMEOUT_MS)
    watched.until("the record of its fencing", lambda: bool(watched.events("node-fenced")))
    assert "watchdog" in watched.events("node-fenced")[-1]["text"]


def test_a_node_that_stands_still_and_one_without_a_pacer_are_reset(watched: Scenario) -> None:
    holder = holder_of(watched)
    watched.cluster.silence(holder)
    recovered_after_reset(watched, holder)
    watched.cluster.boot(holder)
    watched.cluster.start([holder])
    watched.until("the node to be back", lambda: holder in watched.online())
    watched.settle()

    holder = holder_of(watched)
    watched.pacer(holder).kill()
    recovered_after_reset(watched, holder)


def test_what_runs_nothing_is_not_reset_and_what_has_left_lets_go(watched: Scenario) -> None:
    """A node leaves; then one of the others stands still: the third has no lease, and stops what it runs."""
    leaver = holder_of(watched)
    watched.brain(leaver).terminate()
    assert watched.brain(leaver).wait(30) == 0
    watched.pacer(leaver).terminate()
    assert watched.pacer(leaver).wait(5) == 0
    watched.until("the device let go of", lambda: "let go of" in device(watched, leaver))
    watched.until("the service on another node", lambda: watched.holder() in others(watched, leaver))

    holder = holder_of(watched)
    third = next(name for name in others(watched, holder) if name != leaver)
    watched.cluster.silence(third)
    watched.until("the service to be stopped", lambda: watched.holder() is None)
    watched.hold("it is not reset", lambda: "expired" not in device(watched, holder), for_s=2 * T_WD_MS / 1000)
    assert watched.brain(holder).poll() is None
    assert "expired" not in device(watched, leaver)


def test_a_node_whose_policy_is_to_fence_ends_although_it_could_stop(watched: Scenario) -> None:
    watched.configure("property no-quorum-policy=fence")
    holder = holder_of(watched)
    for name in others(watched, holder):
        watched.cluster.silence(name)
    watched.until("its end", lambda: "expired" in device(watched, holder))
    watched.until("the end of all its processes", lambda: watched.cluster.processes(holder) == [])
    assert "effect.condemn" in watched.log(holder)
    watched.brain(holder).wait(5)
    watched.pacer(holder).wait(5)
