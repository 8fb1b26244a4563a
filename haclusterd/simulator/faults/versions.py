"""Versions that are mixed: nodes that read a higher feature level than the one being built, one after another.

The next version is this one under another level: what it could say beyond that is in no code yet. While one member
reads less, the cluster stays at its level, and a node may be downgraded again; when all read more the level rises for
good, and whoever reads less stays outside until it is upgraded.
"""

import random
from collections.abc import Sequence

from haclusterd.cib.codec import FEATURE_LEVEL
from haclusterd.model.ids import NodeName
from haclusterd.simulator.faults.base import Drawn, End, Kind
from haclusterd.simulator.scenario import Cluster

NEXT_LEVEL = FEATURE_LEVEL + 1
STAYS_SHARE = 0.6
"""Of the upgrades are for good."""


def newer_version(chance: random.Random, nodes: Sequence[NodeName]) -> Drawn[Cluster]:
    """The next version is installed on a node, and perhaps taken back."""
    node, is_for_good = chance.choice(nodes), chance.random() < STAYS_SHARE

    def begin(cluster: Cluster) -> End | None:
        if node not in cluster.names:
            return None
        cluster.feature_levels[node] = NEXT_LEVEL
        cluster.reload_brain(node)
        cluster.coverage.count("version", "upgraded")

        def end() -> None:
            if not is_for_good and node in cluster.names:
                cluster.feature_levels.pop(node, None)
                cluster.reload_brain(node)
                is_late = cluster.cib.feature_level >= NEXT_LEVEL
                cluster.coverage.count("version", "downgraded too late" if is_late else "downgraded")

        return end

    how = "for good" if is_for_good else "and taken back"
    return Drawn(f"the next version is installed on {node}, {how}", begin, chance.randint(500, 30_000))


OF_VERSIONS: tuple[Kind[Cluster], ...] = (Kind("newer version", 3, newer_version),)
OUTCOMES = ("upgraded", "downgraded", "downgraded too late")
