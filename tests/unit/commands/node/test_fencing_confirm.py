"""A person's word for a node is taken only when no voter has heard that node lately."""

import pytest

from haclusterd.cib import commands
from haclusterd.commands.context import Context, HeardFrom, LiveView
from haclusterd.commands.node.fencing import confirm
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.verbs.arguments import Arguments
from tests.unit.situations import N1, N2, N3, Cluster

SILENT = HeardFrom(60_000)


def confirmed(n2: HeardFrom, n3: HeardFrom) -> str:
    """Type it on n1, where n2 is lost; return what is objected, empty when it is taken."""
    cluster = Cluster()
    cluster.lose(N2)
    live = LiveView(N1, leader=N1, has_quorum=True, heard={N2: n2, N3: n3})
    context = Context(cib=cluster.cib, now=WallTime(10**9), author="a", live=live)
    outcome = confirm(context, Arguments({"node": "n2", "has_checked": True}))
    if outcome.commands:
        assert isinstance(outcome.commands[0], commands.Fenced)
        return ""
    return " ".join(str(item) for item in outcome.reports)


def test_a_node_that_nobody_hears_is_confirmed() -> None:
    assert confirmed(SILENT, replace(HeardFrom(50), hears={N2: 60_000})) == ""
    assert confirmed(HeardFrom(None), HeardFrom(50)) == ""


@pytest.mark.parametrize(
    ("n2", "n3", "words"),
    [
        (HeardFrom(900), HeardFrom(50), "n1 heard n2"),
        (SILENT, HeardFrom(50, hears={N2: 900}), "n3 heard n2"),
        (SILENT, SILENT, "n3 is online and is not heard here"),
        (SILENT, HeardFrom(None), "n3 is online and is not heard here"),
    ],
)
def test_what_any_voter_has_heard_or_might_have_heard_is_objected(n2: HeardFrom, n3: HeardFrom, words: str) -> None:
    assert words in confirmed(n2, n3)
