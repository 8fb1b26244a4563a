"""What a forked image has looked up in the history is asked by its parent in the same words."""

import json
from collections.abc import Callable

import pytest

from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.remembered import HistoryQuery
from haclusterd.ports.history import HistoryAnswer
from haclusterd.runtime.requests.event_followers import EventFollowers
from haclusterd.runtime.requests.past_catalogue import PastCatalogue
from tests.unit.runtime.one_daemon import ListHistory, ManualClock


class AskedHistory(ListHistory):
    """A history that keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.queries: list[HistoryQuery] = []

    def query(self, query: HistoryQuery, done: Callable[[HistoryAnswer], None]) -> None:
        self.queries.append(query)
        super().query(query, done)


def catalogue(history: AskedHistory) -> PastCatalogue:
    return PastCatalogue(history, EventFollowers(ManualClock(), history, lambda: True), (), "root@n1")


@pytest.mark.parametrize(
    "query",
    [
        HistoryQuery(),
        HistoryQuery(7, WallTime(1), WallTime(9), transition="4.2"),
        HistoryQuery(nodes=(NodeName("n1"), NodeName("n2")), resources=(ResourceId("web"),), kinds=("node-lost",)),
    ],
    ids=["nothing", "times", "names"],
)
def test_a_query_comes_back_from_a_forked_image_as_it_was(query: HistoryQuery) -> None:
    history = AskedHistory()
    image, parent = catalogue(history), catalogue(history)
    image.recall(query)
    parent.note(json.loads(json.dumps(image.noted())))
    parent.read(lambda: None)
    assert history.queries == [query]
    parent.recall(query)
    assert parent.is_complete
