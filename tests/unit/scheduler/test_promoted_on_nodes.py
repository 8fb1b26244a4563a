"""How many instances of a unique clone are promoted on one node (`promoted-node-max`)."""

from collections import Counter

import pytest

from haclusterd.model.ocf import ActionName
from tests.scheduled_clusters import ScheduledCluster, configured

SCORES = {"n1": 1000, "n2": 10}


@pytest.mark.parametrize(("on_node", "promoted"), [("", {"n1": 1, "n2": 1}), ("promoted-node-max=2", {"n1": 2})])
def test_no_more_are_promoted_on_the_better_node(on_node: str, promoted: dict[str, int]) -> None:
    cluster = ScheduledCluster.of(SCORES)
    text = "".join(
        f"node {node} attributes {' '.join(f'master-db:{number}={score}' for number in range(4))}\n"
        for node, score in SCORES.items()
    )
    text += "primitive power stonith:fence_dummy\nprimitive db ocf:heartbeat:Stateful\n"
    text += "clone dbs db meta globally-unique=true promotable=true clone-max=4 clone-node-max=2 promoted-max=2"
    text += f" {on_node}"
    cluster.configure(configured(text))
    found: Counter[str | None] = Counter()
    while orders := [each for each in cluster.plan().graph.actions.values() if each.agent is not None]:
        found[orders[0].node] += orders[0].name == ActionName.PROMOTE
        cluster.perform(orders[0])
    assert +found == Counter(promoted)
