"""A cluster is upgraded node by node: it works at the level that all can read, and rises when the last one is new."""

from pathlib import Path

import pytest

from haclusterd.cib.codec import FEATURE_LEVEL
from haclusterd.entry_points.local_cluster import LocalCluster, LocalNode
from haclusterd.model.requests import Response
from tests.processes.daemons import Scenario

pytestmark = pytest.mark.processes

NEWER = Path(__file__).parents[1] / "upgrade" / "newer_version"


class MixedCluster(LocalCluster):
    """Some nodes run a newer version."""

    newer: frozenset[str] = frozenset()

    def _environment(self, node: LocalNode) -> dict[str, str]:
        environment = super()._environment(node)
        return {**environment, "PYTHONPATH": str(NEWER)} if node.name in self.newer else environment


class Mixed(Scenario):
    def __init__(self, directory: Path) -> None:
        self.cluster: MixedCluster = MixedCluster(directory, environment={"PYTHONUNBUFFERED": "1"})
        self.cluster.setup()

    def upgrade(self, name: str) -> None:
        """Restart a node's daemon under the newer version; its services run on."""
        self.restart_as(name, self.cluster.newer | {name})

    def downgrade(self, name: str) -> None:
        self.restart_as(name, self.cluster.newer - {name})

    def restart_as(self, name: str, newer: frozenset[str]) -> None:
        self.cluster.newer = newer
        brain = self.cluster.nodes[name].brain
        assert brain is not None
        brain.kill()
        brain.wait(10)
        self.cluster.start_brain(name)

    def joins(self, name: str) -> int:
        return sum(event["node"] == name for event in self.events("node-joined"))

    def grant(self) -> Response:
        return self.cluster.call("n1", "ticket.change", ticket="north", action="grant", force=True)


def test_a_cluster_is_upgraded_node_by_node(tmp_path: Path) -> None:
    mixed = Mixed(tmp_path)
    try:
        mixed.form().with_service()
        service = mixed.service_pids(mixed.holder() or "")
        for name in ("n1", "n2"):
            before = mixed.joins(name)
            mixed.upgrade(name)
            mixed.until(f"{name} back", lambda name=name, before=before: mixed.joins(name) > before)
            mixed.settle()
        (logged,) = mixed.grant().reports
        assert logged.code == "NEEDS_UPGRADE"
        assert f"feature level {FEATURE_LEVEL + 1}, which n3 cannot read" in logged.message
        mixed.configure("primitive other ocf:haclusterd:exec params command=sleep args=100000")
        mixed.settle()
        mixed.upgrade("n3")
        mixed.until("the level to rise", lambda: bool(mixed.events("feature-level-rose")))
        mixed.settle()
        granted = mixed.grant()
        assert granted.exit == 0, granted.reports
        assert mixed.service_pids(mixed.holder() or "") == service, "the service was not touched by any of it"
        mixed.downgrade("n2")
        mixed.until("the reason to be logged", lambda: "upgrade haclusterd there" in mixed.log("n2"))
        assert mixed.status("n1")["dc"] is not None
    finally:
        mixed.close()
