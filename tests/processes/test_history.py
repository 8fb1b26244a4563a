"""The history of a node that was away, or lost its file, becomes what the others' is; without one a daemon runs on."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.processes.daemons import Scenario
from tests.processes.rest_interface import history

pytestmark = [pytest.mark.processes, pytest.mark.slow]

WRITES = 1300
"""More than a snapshot's interval and what the journal keeps behind it: who was away is sent the snapshot."""
SERIAL: Iterator[int] = count(1)


def write(scenario: Scenario, times: int) -> None:
    """Make entries of the log, a few at a time."""

    def one(number: int) -> None:
        scenario.must("node.attribute", node="n1", action="set", name=f"a{number % 8}", value=str(next(SERIAL)),
                      lifetime="reboot")  # fmt: skip

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(times)))


def leave(scenario: Scenario, node: str) -> None:
    """End a node's daemon in an orderly way."""
    scenario.brain(node).send_signal(signal.SIGTERM)
    assert scenario.brain(node).wait(30) == 0


def crash(scenario: Scenario, node: str) -> Path:
    """End a node's daemon at once; return where its history is."""
    scenario.brain(node).kill()
    scenario.brain(node).wait(10)
    return scenario.cluster.directory / node / "state" / "history.sqlite"


def return_of(scenario: Scenario, node: str) -> None:
    begun = scenario.log(node).count("daemon.start")
    scenario.cluster.start_brain(node)
    scenario.until(f"{node} to begin", lambda: scenario.log(node).count("daemon.start") > begun)
    scenario.until(f"{node} to be back", lambda: node in scenario.online() and scenario.status(node)["dc"] is not None)


def check(scenario: Scenario, node: str = "n3") -> Any:
    return scenario.cluster.call(node, "history.check")


def until_equal(scenario: Scenario) -> None:
    answers: list[Any] = []

    def is_equal() -> bool:
        answers.append(check(scenario))
        return bool(answers[-1].exit == 0)

    scenario.until("equal histories", is_equal)
    nodes = answers[-1].data["nodes"]
    assert [each["gaps"] for each in nodes] == [[], [], []]
    assert len({(each["digest"], each["rows"], each["versions"]) for each in nodes}) == 1


def test_who_was_away_for_long_remembers_what_happened_meanwhile(scenario: Scenario) -> None:
    scenario.form()
    scenario.configure("property batch-limit=3 brain-timeout=60s")
    leave(scenario, "n3")
    scenario.configure("property batch-limit=4")
    write(scenario, WRITES)
    assert check(scenario, "n1").exit == 1, "n3 is silent"
    return_of(scenario, "n3")
    scenario.until("the snapshot", lambda: "store.restored" in scenario.log("n3"))
    until_equal(scenario)
    rows = scenario.cluster.call("n3", "history.events", limit=10_000, kinds=["attribute-changed"]).data["events"]
    assert len(rows) == WRITES
    followed, known = (history(scenario, node, limit=256) for node in ("n3", "n1"))
    assert followed[: len(known)] == known[: len(followed)], "who follows n3 is shown what n1 shows"
    listed = scenario.cluster.call("n3", "history.config").data
    assert [each["number"] for each in listed["versions"]] == [1, 2]
    assert listed["gaps"] == []


def test_a_history_that_is_gone_damaged_or_cannot_be_written_comes_back_and_hinders_nobody(scenario: Scenario) -> None:
    scenario.form().with_service("property brain-timeout=60s")
    write(scenario, 20)
    holder, then = scenario.holder(), scenario.cluster.call("n1", "history.info").data["now"]
    path = crash(scenario, "n3")
    for each in path.parent.glob("history.sqlite*"):
        each.unlink()
    return_of(scenario, "n3")
    until_equal(scenario)

    crash(scenario, "n3")
    for each in path.parent.glob("history.sqlite*"):
        each.unlink()
    path.write_bytes(b"this was a database" * 5000)
    return_of(scenario, "n3")
    until_equal(scenario)
    assert path.with_name("history.sqlite.damaged-1").exists()
    assert "history.failed" in scenario.log("n3")

    crash(scenario, "n3")
    for each in path.parent.glob("history.sqlite*"):
        each.unlink()
    path.symlink_to(path.parent / "not-yet" / "history.sqlite")
    return_of(scenario, "n3")
    headline = "n3 cannot keep its history; failover is not affected"
    scenario.until("it to be logged", lambda: headline in str(scenario.status("n3").get("headlines")))
    scenario.must("node.standby", node="n1", wait_ms=20_000)
    scenario.must("node.online", node="n1")
    assert check(scenario).exit == 1
    (path.parent / "not-yet").mkdir()
    until_equal(scenario)
    assert "cannot keep its history" not in str(scenario.status("n3")["headlines"])
    scenario.must("node.standby", node=holder, wait_ms=20_000)
    moment = datetime.fromtimestamp(then / 1000, UTC).isoformat(timespec="milliseconds")
    why = scenario.cluster.call("n3", "resource.why", resource="svc", at=moment)
    assert (why.data["version"], why.data["resources"][0]["now_on"]) == (1, [holder]), why
    assert "start of svc" in str(why.data["before"])
    assert scenario.holder() != holder
    assert scenario.events("node-lost") == []
