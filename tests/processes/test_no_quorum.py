"""What a real node does without quorum where its policy is not to stop."""

import signal

import pytest

from tests.processes.daemons import Scenario, kill

pytestmark = pytest.mark.processes


def test_a_frozen_node_without_a_lease_runs_on(scenario: Scenario) -> None:
    scenario.form().with_service("property no-quorum-policy=freeze")
    holder = scenario.holder()
    assert holder is not None
    before = scenario.service_pids(holder)
    others = [name for name in scenario.cluster.names if name != holder]
    for name in others:
        kill(scenario.pacer(name).pid, signal.SIGSTOP)
    scenario.until("the end of its lease", lambda: not scenario.has_lease(holder))
    scenario.hold("the service runs on", lambda: scenario.service_pids(holder) == before, for_s=3)
    for name in others:
        kill(scenario.pacer(name).pid, signal.SIGCONT)
    scenario.until("the lease again", lambda: scenario.has_lease(holder))
    scenario.until("all nodes online", lambda: len(scenario.online()) == 3)
    assert scenario.service_pids(holder) == before
