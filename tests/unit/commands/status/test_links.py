"""What status says of nodes that are heard and do not hear each other."""

import pytest

from haclusterd.commands.context import Context, HeardFrom, LiveView
from haclusterd.commands.status.headlines import Gravity, headlines
from haclusterd.commands.status.overview import Overview
from haclusterd.model.configuration import AttributeSet
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from tests.unit.commands.node.member_clusters import cluster

FAR = 30_000


def lines_of(
    names: str, cut: set[str], near_ms: int = 100, node_timeout: str = "2s", word: str = "cut"
) -> list[tuple[Gravity, str]]:
    """Return the headlines with a word that n1 shows, which hears all; `cut`: pairs as `n2-n3`."""
    all_names = tuple(map(NodeName, names.split()))
    n1, *others = all_names

    def age_ms(one: str, other: str) -> int:
        return FAR if {f"{one}-{other}", f"{other}-{one}"} & cut else near_ms

    heard = {
        name: HeardFrom(near_ms // 3, hears={other: age_ms(name, other) for other in all_names if other != name})
        for name in others
    }
    live = LiveView(n1, leader=n1, has_quorum=True, connected_voters=all_names, heard=heard)
    cib = cluster(*names.split())
    timeout = AttributeSet("cib-bootstrap-options", (("node-timeout", node_timeout),))
    cib = replace(cib, configuration=replace(cib.configuration, properties=(timeout,)))
    found = headlines(Context(cib, WallTime(0), "root@n1", "", live), Overview(cib))
    return [(each.gravity, each.text) for each in found if word in each.text]


def test_nothing_is_said_while_all_hear_each_other() -> None:
    assert lines_of("n1 n2 n3", set()) == []


@pytest.mark.parametrize("node_timeout_s", [1, 2, 5, 10, 60])
def test_ages_of_three_heartbeats_are_nothing_to_speak_of_whatever_the_timeout_is(node_timeout_s: int) -> None:
    near_ms = 3 * 1000 * node_timeout_s // 10
    for word in ("cut", "heard"):
        assert lines_of("n1 n2 n3", set(), near_ms + 100, f"{node_timeout_s}s", word) == []


@pytest.mark.parametrize(("near_ms", "is_said"), [(2900, False), (3100, True)])
def test_a_node_is_spoken_of_after_half_of_node_timeout(near_ms: int, is_said: bool) -> None:
    assert bool(lines_of("n1 n2 n3", set(), 3 * near_ms, "6s", "has not been heard")) is is_said


def test_a_pair_that_is_cut_is_named_by_who_hears_both() -> None:
    assert lines_of("n1 n2 n3", {"n2-n3"}) == [
        (Gravity.WARNING, "n1 hears all nodes, but they do not all hear each other; cut: n2 and n3"),
    ]


def test_the_leaves_of_a_star_have_no_lease_and_are_named_first() -> None:
    leaves = ("n2", "n3", "n4", "n5")
    cut = {f"{one}-{other}" for one in leaves for other in leaves if one < other}
    found = lines_of("n1 n2 n3 n4 n5", cut)
    assert [gravity for gravity, _ in found] == [Gravity.CRITICAL] * 4
    assert found[0][1] == (
        "n2 is cut from n3, n4, n5: 2 of 5 voters can echo it, so it has no lease, and nothing runs there"
    )


@pytest.mark.parametrize("cut", [{"n2-n3"}, {"n2-n3", "n2-n4"}])
def test_a_node_that_a_majority_echoes_is_not_said_to_have_no_lease(cut: set[str]) -> None:
    [(gravity, text)] = lines_of("n1 n2 n3 n4 n5", cut)
    assert gravity is Gravity.WARNING
    assert "n2 and n3" in text
