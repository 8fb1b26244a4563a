"""A cluster of real daemons whose elections and longest holds are noted whenever one of them is asked."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from haclusterd.entry_points.local_cluster import LocalCluster
from tests.benchmarks.holds import Holds

POLL_S = 0.2


class MeasuredCluster:
    """One cluster, and what its daemons report of themselves."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        self.terms: set[int] = set()
        """Those in which somebody saw a leader; more than one: there were elections."""
        self.holds = Holds()
        """The longest so far."""

    def status(self, name: str) -> Mapping[str, Any]:
        """Ask a node; note the term it knows and how long it was held."""
        data = self.cluster.call(name, "status").data
        if not isinstance(data, Mapping):
            return {}
        if data.get("leader") is not None:
            self.terms.add(int(str(data["term"])))
        self.holds = self.holds.with_status(data)
        return data

    def until(self, what: str, condition: Callable[[], object], wait_s_max: float) -> None:
        """Wait for a condition."""
        deadline = time.monotonic() + wait_s_max
        while not condition():
            if time.monotonic() > deadline:
                raise SystemExit(f"waited {wait_s_max} s in vain for {what}")
            time.sleep(POLL_S)

    def form(self, wait_s_max: float) -> None:
        """Start all nodes and wait until they are one cluster."""
        self.cluster.start()
        names = set(self.cluster.names)

        def are_online() -> bool:
            nodes = self.status("n1").get("nodes", ())
            return {node["name"] for node in nodes if node["state"] == "online"} == names

        self.until("all nodes online", are_online, wait_s_max)
