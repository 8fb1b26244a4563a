"""How the orders of a transition ended."""

import pytest

from haclusterd.cib.changes import Change, ChangeKind
from haclusterd.cli.render.history import render_transition
from haclusterd.cli.render.terminal import Screen
from haclusterd.commands import registry
from haclusterd.commands.context import Context, Event
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.verbs.answers.answer import read
from haclusterd.verbs.answers.history import Transition, Transitions
from tests.administered_clusters import NOW, ListedPast, running

KEY = "4.2.7"
WEB, N1 = ResourceId("web"), NodeName("n1")


def event(index: int, kind: ChangeKind, text: str) -> Event:
    return Event(index, WallTime(NOW - 100_000 + index * 1000), Change(kind, N1, WEB, text), order=KEY)


ISSUED = event(50, ChangeKind.ORDER_ISSUED, "start web on n1")
VOIDED = event(51, ChangeKind.ORDER_VOIDED, "start of web on n1 is no longer wanted: the configuration has changed")
SUCCEEDED = event(54, ChangeKind.OPERATION_SUCCEEDED, "start of web on n1 succeeded")
NOT_BEGUN = event(54, ChangeKind.ORDER_NOT_BEGUN, "start of web on n1 was not begun: voided")


@pytest.mark.parametrize(
    ("events", "shown", "is_failed", "not_ended"),
    [
        ((ISSUED, VOIDED, SUCCEEDED), "start of web on n1 succeeded (after 4.0 s)", False, 0),
        ((ISSUED, VOIDED, NOT_BEGUN), "start of web on n1 was not begun: voided (after 4.0 s)", True, 0),
        ((ISSUED, VOIDED), f"not ended, as far as is known; {VOIDED.change.text}", False, 1),
        ((ISSUED,), "not ended, as far as is known", False, 1),
    ],
    ids=["succeeded", "not-begun", "open", "wanted"],
)
def test_an_order_that_is_no_longer_wanted_ends_with_the_answer_of_its_node(
    events: tuple[Event, ...], shown: str, is_failed: bool, not_ended: int
) -> None:
    cluster = running()
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live, past=ListedPast(events))
    found = read(Transition, registry.run("history.transition", {"transition": "4.2"}, context).data)
    (action,) = found.actions
    assert shown in " ".join(" ".join(render_transition(Screen(), found)).split())
    assert (action.is_failed, action.ended_at is None) == (is_failed, bool(not_ended))
    (summary,) = read(Transitions, registry.run("history.transitions", {}, context).data).transitions
    assert (summary.failed, summary.not_ended) == (int(is_failed), not_ended)
