"""Versions that are mixed: nodes that read a higher feature level than the one being built, one after another.

The next version is this one under another level: what it could say beyond that is in no code yet. While one member
reads less, the cluster stays at its level, and a node may be downgraded again; when all read more the level rises for
good, and a node that reads less stays outside until it is upgraded.
"""

import random
from collections.abc import Sequence
from functools import partial

from haclusterd.cib.codec import FEATURE_LEVEL
from haclusterd.model.ids import NodeName
from haclusterd.simulator.faults.base import Drawn, End, Kind
from haclusterd.simulator.hosts.world import MS
from haclusterd.simulator.scenario import Cluster

NEXT_LEVEL = FEATURE_LEVEL + 1
STAYS_SHARE = 0.6
"""Of the upgrades are for good."""


def newer_version(chance: random.Random, nodes: Sequence[NodeName]) -> Drawn[Cluster]:
    """The next version is installed on a node, and perhaps taken back."""
    node, is_for_good = chance.choice(nodes), chance.random() < STAYS_SHARE

    def begin(cluster: Cluster) -> End | None:
        _install(cluster, node)
        return None if is_for_good else partial(_take_back, cluster, node)

    how = "for good" if is_for_good else "and taken back"
    return Drawn(f"the next version is installed on {node}, {how}", begin, chance.randint(500, 30_000))


def upgrade_all(chance: random.Random, nodes: Sequence[NodeName]) -> Drawn[Cluster]:
    """The next version is installed on one node after another, and perhaps taken back on one, which may be too late."""
    order, node = chance.sample(nodes, len(nodes)), chance.choice(nodes)
    pause_ms, is_taken_back = chance.choice((0, 300, 2000)), chance.random() < STAYS_SHARE

    def begin(cluster: Cluster) -> End:
        later = [each for each in cluster.names if each not in order]
        for number, each in enumerate((*order, *later)):
            cluster.world.after(number * pause_ms * MS, partial(_install, cluster, each))
        return partial(_take_back, cluster, node) if is_taken_back else lambda: None

    how = f", and taken back on {node}" if is_taken_back else ""
    text = f"the next version is installed everywhere, {pause_ms} ms apart{how}"
    return Drawn(text, begin, chance.randint(len(nodes) * pause_ms + 2000, len(nodes) * pause_ms + 10_000))


def _install(cluster: Cluster, node: NodeName) -> None:
    if node in cluster.names:
        cluster.feature_levels[node] = NEXT_LEVEL
        cluster.reload_brain(node)
        cluster.coverage.count("version", "upgraded")


def _take_back(cluster: Cluster, node: NodeName) -> None:
    if node in cluster.names:
        cluster.feature_levels.pop(node, None)
        cluster.reload_brain(node)
        is_late = cluster.cib.feature_level >= NEXT_LEVEL
        cluster.coverage.count("version", "downgraded too late" if is_late else "downgraded")


OF_VERSIONS: tuple[Kind[Cluster], ...] = (
    Kind("newer version", 3, newer_version),
    Kind("upgrade all", 2, upgrade_all),
)
OUTCOMES = ("upgraded", "downgraded", "downgraded too late")
