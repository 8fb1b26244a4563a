"""Instances of a clone are notified after what they were notified before, also when the DC plans again meanwhile."""

import pytest

from haclusterd.cib.commands import SetTransientAttribute
from haclusterd.model.ids import NodeName
from haclusterd.ports.agents import AgentCall
from haclusterd.simulator.checks.checker import Checker, Log
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.scenario import Cluster
from tests.simulation.copies_scenarios import PG, SETTLED_MS, SOURCE, TARGET, THIRD, make_dc


class Notifications(Checker):
    """Notes what the agents of a promotable clone are called for, and lets them write attributes in the middle of it.

    ocf:heartbeat:pgsql does that in each promote and demote.
    """

    def __init__(self, cluster: Cluster, log: Log, *writing: str) -> None:
        super().__init__(cluster, log)
        self._cluster = cluster
        self._writing = writing
        self.seen: list[tuple[NodeName, str]] = []

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Checker`."""
        if call.resource != PG or call.action not in ("notify", "promote", "demote"):
            return
        kinds = (call.meta["notify_type"], call.meta["notify_operation"]) if call.action == "notify" else ()
        what = "-".join(kinds) or call.action
        self.seen.append((node, what))
        for written in range(3) if what in self._writing else ():
            self._cluster.world.after(
                (100 + 500 * written) * 1000,
                lambda: self._cluster.administer(SetTransientAttribute(node, "pg-status", str(len(self.seen)))),
            )


WRITING = [(), ("promote",), ("demote",), ("demote", "promote", "post-demote", "post-promote")]


@pytest.mark.parametrize("writing", WRITING)
def test_each_node_is_notified_once_before_and_once_after_a_demote_and_a_promote(writing: tuple[str, ...]) -> None:
    cluster = Cluster(1).form()
    cluster.configure(configurations.promotable(list(cluster.names)))
    cluster.configure([configurations.promotion_score(TARGET, 100)])
    cluster.until_settled(SETTLED_MS, "the clone settled")
    make_dc(cluster, THIRD)
    for action in ("promote", "demote", "notify"):
        cluster.agent_script.write(PG, action, AgentRun(duration_ms=1500))
    notifications = Notifications(cluster, cluster.checkers.log, *writing)
    cluster.checkers.add(notifications)
    cluster.edit([configurations.promotion_score(SOURCE, 1000)])
    cluster.run_for(2000)
    cluster.until_settled(SETTLED_MS, "the other instance is promoted")
    for name in cluster.names:
        seen = [what for node, what in notifications.seen if node == name]
        acted = {SOURCE: "promote", TARGET: "demote"}.get(name)
        expected = ["pre-demote", "demote", "post-demote", "pre-promote", "promote", "post-promote"]
        assert seen == [each for each in expected if "-" in each or each == acted], name
