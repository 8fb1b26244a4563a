"""Real daemons: a service that is killed, stopped by a person, and started again, as `crm availability` shows it."""

import os
import signal
from typing import Any

import pytest

from tests.processes.daemons import Scenario

pytestmark = pytest.mark.processes


def of_svc(scenario: Scenario, name: str) -> dict[str, Any]:
    response = scenario.cluster.call(name, "availability", resource="svc")
    assert response is not None
    assert isinstance(response.data, dict)
    (only,) = response.data["services"]
    return dict(only)


def test_a_failure_is_unplanned_and_a_stop_is_planned(running: Scenario) -> None:
    names = running.cluster.names
    before = of_svc(running, names[0])
    holder = running.holder()
    assert holder is not None
    (pid,) = running.service_pids(holder)
    os.kill(pid, signal.SIGKILL)

    def has_recovered() -> bool:
        now = of_svc(running, names[0])
        return bool(now["unplanned"] == before["unplanned"] + 1 and now["state"] == "up")

    running.until("the service to have recovered", has_recovered)
    running.must("resource.stop", resources=["svc"])
    running.until("it to be down", lambda: of_svc(running, names[0])["state"] == "down")
    stopped = of_svc(running, names[0])
    assert (stopped["cause"], stopped["unplanned_ms"] > before["unplanned_ms"]) == ("stopped", True)
    (going_on,) = stopped["outages"]
    assert (going_on["cause"], going_on["is_planned"], going_on["until"]) == ("stopped", True, None)
    running.must("resource.start", resources=["svc"])
    running.until("it to be up", lambda: of_svc(running, names[0])["state"] == "up")
    running.settle()
    # Every node says the same, and the history that it is computed from is proven to be equal.
    timeless = ("since", "planned", "unplanned", "longest_ms", "planned_ms", "unplanned_ms", "unknown_ms", "known_from")
    answers = [{name: of_svc(running, node)[name] for name in timeless} for node in names]
    assert answers == [answers[0]] * len(names)
    assert running.must("history.check")["is_equal"]
    shown = running.must("history.events", resource="svc", kinds=["operation-failed"], limit=1)["events"]
    assert (shown[-1]["action"], shown[-1]["outcome"], shown[-1]["cause"]) == ("monitor", "failed", "not_running")
    assert shown[-1]["incident"]
