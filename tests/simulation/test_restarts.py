"""`crm resource restart` is finished by who is left, whatever dies in the middle, and leaves nothing behind."""

from collections.abc import Callable

import pytest

from haclusterd.cib.commands import RestartResource
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.people import ask
from haclusterd.simulator.scenario import Cluster

DB = ResourceId("db")
ASKED = NodeName("n2")
"""Who is asked first by `people.ask`."""
PHASES: dict[str, Callable[[Cluster], bool]] = {
    "asked": lambda cluster: DB in cluster.cib.status.restarts,
    "stopping": lambda cluster: any(call.action == "stop" for call in cluster.agents_at_work(NodeName("n1"), DB)),
    "stopped": lambda cluster: not cluster.truth.active_nodes(DB),
    "starting": lambda cluster: any(
        call.action == "start" for node in cluster.names for call in cluster.agents_at_work(node, DB)
    ),
}


def restarting() -> Cluster:
    """Return a cluster in which db, on n1, is being restarted; n2 was asked for that."""
    cluster = Cluster(7).form()
    assert cluster.node_of(DB) == "n1"
    cluster.agent_script.write(DB, "stop", AgentRun(duration_ms=1500), times=1)
    cluster.agent_script.write(DB, "start", AgentRun(duration_ms=1500), times=1)
    ask(cluster, "resource.restart", {"resource": DB})
    return cluster


@pytest.mark.parametrize("who", ["asked", "DC", "holder"])
@pytest.mark.parametrize("phase", PHASES)
def test_a_restart_is_finished_when_a_daemon_dies(phase: str, who: str) -> None:
    cluster = restarting()
    cluster.until(lambda: PHASES[phase](cluster), 10_000, phase)
    victim = {"asked": ASKED, "DC": cluster.dc(), "holder": NodeName("n1")}[who]
    assert victim is not None
    cluster.kill_brain(victim)
    cluster.until(lambda: not cluster.truth.active_nodes(DB) or phase == "starting", 30_000, "db was stopped")
    cluster.until(lambda: len(cluster.truth.active_nodes(DB)) == 1, 60_000, "db runs again")
    cluster.until_settled(60_000, "settled")
    assert cluster.cib.status.restarts == {}


def test_a_restart_of_what_does_not_stop_has_an_end() -> None:
    cluster = Cluster(7).form()
    cluster.agent_script.write(DB, "stop", AgentRun(duration_ms=4000, exit_code=1, has_effect=False), times=1)
    before = cluster.cib.configuration
    cluster.isolate("n1")
    cluster.administer(RestartResource(DB, 1000, "root"))
    cluster.until(lambda: DB in cluster.cib.status.restarts, 10_000, "begun")
    cluster.until(lambda: DB not in cluster.cib.status.restarts, 10_000, "ended")
    cluster.heal()
    cluster.until(lambda: len(cluster.truth.active_nodes(DB)) == 1, 60_000, "db runs again")
    assert cluster.cib.configuration == before
