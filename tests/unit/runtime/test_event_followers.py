"""Who waits for what happens is answered when it has happened, in bounded time and numbers."""

from typing import Any

import pytest

from haclusterd.model.json_value import Json
from haclusterd.model.remembered import Because, FollowAnswer, FollowQuery, Missing, Position
from haclusterd.runtime.requests.event_followers import (
    COMPLETE_WAIT_MS,
    FOLLOWERS_MAX,
    FOLLOWERS_OF_CALLER_MAX,
    LOOK_AGAIN_MS,
    PAUSE_MS,
    EventFollowers,
)
from tests.unit.runtime.desk import Desk, status_of
from tests.unit.runtime.one_daemon import ListHistory, ManualClock


def data_of(desk: Desk, name: str) -> Any:
    response = desk.response(name)
    assert response is not None, "not answered"
    return response.data


def test_a_follower_gets_what_happens_and_continues_from_there() -> None:
    desk = Desk()
    waiting = desk.ask("history.follow")
    desk.daemon.clock.run(5000)
    assert desk.response(waiting) is None
    desk.ask("node.standby", {"node": "n2"})
    desk.daemon.settle()
    desk.daemon.clock.run(PAUSE_MS)
    answer = data_of(desk, waiting)
    assert [each["kind"] for each in answer["events"]] == ["configuration-changed"]
    again = desk.ask("history.follow", {"after": answer["next"], "wait_s": 3})
    desk.daemon.clock.run(2999)
    assert desk.response(again) is None
    desk.daemon.clock.run(1)
    assert (data_of(desk, again)["events"], data_of(desk, again)["next"]) == ([], answer["next"])


def test_what_is_known_already_is_answered_at_once() -> None:
    desk = Desk()
    answer = data_of(desk, desk.ask("history.follow", {"after": "0", "limit": 2}))
    assert len(answer["events"]) == 2
    rest = data_of(desk, desk.ask("history.follow", {"after": answer["next"], "wait_s": 0}))
    assert not {each["id"] for each in rest["events"]} & {each["id"] for each in answer["events"]}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [({"after": "yesterday"}, "BAD_ARGUMENT"), ({"since": "soon"}, "BAD_ARGUMENT"), ({"wait_s": 21}, "BAD_ARGUMENT"),
     ({"limit": 257}, "BAD_ARGUMENT"), ({"node": "n9"}, "NO_SUCH_NODE"),
     ({"after": "0", "resource": "nothing", "wait_s": 0, "kinds": ["x"]}, "NO_SUCH_RESOURCE")],
)  # fmt: skip
def test_what_cannot_be_followed_is_refused(arguments: dict[str, Json], code: str) -> None:
    desk = Desk()
    assert desk.codes(desk.ask("history.follow", arguments)) == [code]


def test_so_many_wait_and_places_are_given_back() -> None:
    desk = Desk()
    names = [desk.ask("history.follow") for _ in range(FOLLOWERS_OF_CALLER_MAX + 1)]
    assert desk.codes(names[-1]) == ["TRY_AGAIN"]
    assert all(desk.response(name) is None for name in names[:-1])
    desk.hang_ups[names[0]]()
    assert desk.response(desk.ask("history.follow")) is None
    desk.daemon.clock.run(10_000)
    assert [status_of(desk, name) for name in names[1:-1]] == [0] * (FOLLOWERS_OF_CALLER_MAX - 1)
    assert desk.response(desk.ask("history.follow")) is None


class Scripted(ListHistory):
    """A history whose answers are given."""

    def __init__(self, *answers: FollowAnswer) -> None:
        super().__init__()
        self.answers = list(answers)
        self.asked: list[FollowQuery] = []

    def follow(self, query: FollowQuery, done: Any) -> None:
        self.asked.append(query)
        done(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])


def follow(history: Scripted, clock: ManualClock, wait_ms: int, *, is_current: bool = True) -> list[FollowAnswer]:
    answers: list[FollowAnswer] = []
    followers = EventFollowers(clock, history, lambda: is_current)
    followers.follow(FollowQuery(9, Position(7)), wait_ms, "root@n1", answers.append)
    return answers


def test_what_peers_may_tell_is_waited_for_and_then_passed_over() -> None:
    clock = ManualClock()
    history = Scripted(FollowAnswer((), Position(7), is_incomplete=True))
    answers = follow(history, clock, 0)
    clock.run(COMPLETE_WAIT_MS - 1)
    assert answers == []
    assert len(history.asked) == COMPLETE_WAIT_MS // LOOK_AGAIN_MS
    named = FollowAnswer((), Position(9), Missing(8, 9, Because.UNKNOWN), has_more=True)
    history.answers = [history.answers[0], named]
    clock.run(1)
    assert answers == [named]
    assert [query.passes_over for query in history.asked[-2:]] == [False, True]


@pytest.mark.parametrize("is_current", [True, False])
def test_a_position_that_lies_ahead_is_another_history_only_where_the_node_is_current(is_current: bool) -> None:
    clock = ManualClock()
    behind = FollowAnswer((), Position(7), is_behind=True)
    history = Scripted(behind)
    answers = follow(history, clock, 2 * COMPLETE_WAIT_MS, is_current=is_current)
    clock.run(2 * COMPLETE_WAIT_MS)
    assert any(query.passes_over for query in history.asked) is is_current
    if not is_current:
        assert answers == [behind]


def test_a_burst_costs_one_question() -> None:
    clock = ManualClock()
    history = Scripted(FollowAnswer((), Position(7)))
    followers = EventFollowers(clock, history, lambda: True)
    for number in range(FOLLOWERS_MAX):
        followers.follow(FollowQuery(9, Position(7)), 10_000, f"user{number}", lambda _: None)
    before = len(history.asked)
    for _ in range(1000):
        followers.recorded()
        clock.run()
    clock.run(PAUSE_MS)
    assert len(history.asked) - before == FOLLOWERS_MAX
