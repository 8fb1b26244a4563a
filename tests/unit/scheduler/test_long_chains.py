"""Chains as long as one likes: the scheduler keeps its own lists and never the call stack."""

import itertools
import sys
from collections.abc import Iterator

import pytest

from haclusterd.model.ids import NodeName, ResourceId
from tests.scheduled_clusters import ScheduledCluster, configured

LENGTH = 150
DEPTH_LEFT = 120
"""Calls that may stand on each other below a test; a chain is longer than that."""

NAMES = [f"r{number:03}" for number in range(LENGTH)]
PRIMITIVES = "primitive power stonith:fence_local\n" + "".join(
    f"primitive {name} ocf:haclusterd:dummy\n" for name in NAMES
)


@pytest.fixture
def _shallow_stack() -> Iterator[None]:
    limit = sys.getrecursionlimit()
    frame, depth = sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    sys.setrecursionlimit(depth + DEPTH_LEFT)
    yield
    sys.setrecursionlimit(limit)


def chain(pattern: str) -> str:
    """Write one constraint for each neighbouring pair."""
    pairs = itertools.pairwise(NAMES)
    return "".join(pattern.format(number=number, one=one, two=two) for number, (one, two) in enumerate(pairs))


CHAINS = {
    "each with the next": chain("colocation c{number} inf: {one} {two}\n"),
    "each with the one before": chain("colocation c{number} inf: {two} {one}\n"),
    "each after the one before": chain("order o{number} Mandatory: {one} {two}\n"),
    "each with and after the one before": chain(
        "colocation c{number} inf: {two} {one}\norder o{number} Mandatory: {one} {two}\n"
    ),
    "one group": f"group all {' '.join(NAMES)}\n",
}


@pytest.mark.parametrize("text", CHAINS.values(), ids=CHAINS)
@pytest.mark.usefixtures("_shallow_stack")
def test_a_chain(text: str) -> None:
    cluster = ScheduledCluster.of(["n1", "n2"])
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 1000)
    cluster.configure(configured(PRIMITIVES + text + f"location far {NAMES[-1]} 100: n2\n"))
    sys.setrecursionlimit(limit)
    placements = cluster.plan().placements
    assert placements[ResourceId(NAMES[-1])].next_on == NodeName("n2")
    if "order" not in text or "colocation" in text:
        assert {placements[ResourceId(name)].next_on for name in NAMES} == {NodeName("n2")}


@pytest.mark.usefixtures("_shallow_stack")
def test_a_chain_whose_first_link_cannot_run() -> None:
    cluster = ScheduledCluster.of(["n1", "n2"])
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 1000)
    text = CHAINS["each with and after the one before"].replace("colocation c0 inf: r001 r000\n", "")
    cluster.configure(
        configured(
            PRIMITIVES.replace("r000 ocf:haclusterd:dummy", "r000 ocf:haclusterd:dummy meta target-role=Stopped") + text
        )
    )
    sys.setrecursionlimit(limit)
    starts = [action for action in cluster.plan().graph.actions.values() if action.name == "start"]
    assert [action.resource for action in starts] == ["power"]
