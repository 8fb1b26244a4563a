"""What status says of nodes that are heard and do not hear each other."""

import pytest

from haclusterd.commands.context import Context, HeardFrom, LiveView
from haclusterd.commands.status.headlines import Gravity, headlines
from haclusterd.commands.status.overview import Overview
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from tests.unit.commands.node.member_clusters import cluster

FAR = 9000


def lines_of(names: str, cut: set[str]) -> list[tuple[Gravity, str]]:
    """Return the headlines about links that n1 shows, which hears all; `cut`: pairs as `n2-n3`."""
    all_names = tuple(map(NodeName, names.split()))
    n1, *others = all_names

    def age_ms(one: str, other: str) -> int:
        return FAR if {f"{one}-{other}", f"{other}-{one}"} & cut else 100

    heard = {
        name: HeardFrom(100, hears={other: age_ms(name, other) for other in all_names if other != name})
        for name in others
    }
    live = LiveView(n1, leader=n1, has_quorum=True, connected_voters=all_names, heard=heard)
    cib = cluster(*names.split())
    found = headlines(Context(cib, WallTime(0), "root@n1", "", live), Overview(cib))
    return [(each.gravity, each.text) for each in found if "cut" in each.text]


def test_nothing_is_said_while_all_hear_each_other() -> None:
    assert lines_of("n1 n2 n3", set()) == []


def test_a_pair_that_is_cut_is_named_by_who_hears_both() -> None:
    assert lines_of("n1 n2 n3", {"n2-n3"}) == [
        (Gravity.WARNING, "all are heard by n1, and do not all hear each other; cut: n2 and n3"),
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
