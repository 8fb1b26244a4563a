"""Two versions in one cluster, of which the newer one has a rule of `apply` that the older one lacks.

Which rule that is does not matter: the next version is this one under another level, and `refuse_old_term` is taken for
new in it. A daemon of the version before knows no such rule, whatever the cluster's level is.
"""

import pytest

from haclusterd.cib import apply, codec, levels
from haclusterd.cib.changes import RefusalCode
from haclusterd.cib.commands import VoidOrders
from haclusterd.model.ids import Term
from haclusterd.model.rules_in_force import SafetyRules
from haclusterd.simulator.checks.checker import ViolationError
from haclusterd.simulator.faults.versions import NEXT_LEVEL
from haclusterd.simulator.scenario import Cluster

STALE = VoidOrders(Term(0), ())
"""What the rule refuses: it is of no DC's term. It voids nothing, so accepting it is harmless."""


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setitem(levels.SINCE, (SafetyRules, "refuse_old_term"), NEXT_LEVEL)
    cluster = Cluster(5).form()
    cluster.until_settled(60_000, "settled")
    return cluster


def install(cluster: Cluster, *nodes: str) -> None:
    for node in map(cluster.member_of, nodes):
        cluster.feature_levels[node.name] = NEXT_LEVEL
        cluster.reload_brain(node.name)
    cluster.run_for(3000)
    cluster.until_settled(60_000, "settled")


def states(cluster: Cluster) -> set[str]:
    """Return the digests of what the nodes hold after a stale command: one where they agree."""
    cluster.administer(STALE)
    cluster.run_for(2000)
    found = [cluster.applied_at(node) for node in cluster.names]
    newest = max(each.index for each in found if each is not None)
    return {codec.digest(each) for each in found if each is not None and each.index == newest}


def is_refused(cluster: Cluster) -> bool:
    return RefusalCode.OLD_TERM in {each.code for every in cluster.cib.refused.values() for each in every}


def test_a_rule_of_the_next_version_decides_alike_on_both_and_only_when_all_have_it(cluster: Cluster) -> None:
    install(cluster, "n1")
    assert len(states(cluster)) == 1
    assert not is_refused(cluster)
    install(cluster, "n2", "n3")
    assert cluster.cib.feature_level == NEXT_LEVEL
    assert len(states(cluster)) == 1
    assert is_refused(cluster)


def test_a_rule_that_asks_for_no_level_sets_replicas_apart(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply, "rules_at", lambda rules, _level: rules)
    install(cluster, "n1")
    with pytest.raises(ViolationError, match="differs from an earlier replica"):
        states(cluster)
