"""Services that are units of systemd: what was asked for goes on, whichever daemon asked for it, and however late."""

import pytest

from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import ALL_RULES
from haclusterd.simulator.checks.checker import ViolationError
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.scenario import Cluster
from tests.simulation.rule_scenarios import agent_at_work, formed

LATE = AgentRun(duration_ms=20_000, effect_at_percent=90)
"""Of a start or stop whose time limit is 5 s, and which the daemon's next incarnation waits 5 s longer for."""


def units(*, hasty: bool = False) -> Cluster:
    cluster = formed(ALL_RULES)
    behaviour = replace(cluster.agent_script.behaviour, units=True, hasty_units=hasty)
    cluster.agent_script.behaviour = cluster.usual_behaviour = behaviour
    return cluster


def restart_in_a_start_that_is_late(cluster: Cluster) -> None:
    """n1's daemon is killed while systemd starts db there, and db is wanted on n2 by then."""
    cluster.agent_script.write("db", "start", LATE, node="n1", times=1)
    cluster.kill_service("db")
    cluster.until(lambda: agent_at_work(cluster, "n1", "db", "start"), 5000, "db starting on n1")
    cluster.run_for(300)
    cluster.kill_brain("n1")
    cluster.edit([configurations.prefers("db", "n1", -1_000_000)])
    cluster.until(cluster.is_settled, 60_000, "settled")


def test_a_start_job_outlives_the_daemon_and_its_time_and_makes_no_second_copy() -> None:
    cluster = units()
    restart_in_a_start_that_is_late(cluster)
    assert cluster.runs_once("db")
    assert cluster.node_of("db") != "n1"


def test_a_start_that_is_too_late_is_replaced_by_the_stop() -> None:
    cluster = units()
    cluster.agent_script.write("db", "start", LATE, node="n1", times=1)
    cluster.kill_service("db")
    cluster.until(lambda: agent_at_work(cluster, "n1", "db", "start"), 5000, "db starting on n1")
    cluster.until(cluster.is_settled, 60_000, "settled")
    assert cluster.runs_once("db")


def test_a_restart_in_a_stop_that_is_late() -> None:
    cluster = units()
    cluster.agent_script.write("db", "stop", LATE, node="n1", times=1)
    cluster.configure([configurations.prefers("db", "n1", -1_000_000)])
    cluster.until(lambda: agent_at_work(cluster, "n1", "db", "stop"), 5000, "db stopping on n1")
    cluster.run_for(300)
    cluster.kill_brain("n1")
    cluster.until(cluster.is_settled, 60_000, "settled")
    assert cluster.runs_once("db")


def test_a_monitor_that_does_not_wait_for_jobs_would_make_two_copies() -> None:
    cluster = units(hasty=True)
    with pytest.raises(ViolationError):
        restart_in_a_start_that_is_late(cluster)
