"""What comes after a position: each row once, at whichever node one asks, and what is not known is named."""

from pathlib import Path

import pytest

from haclusterd.adapters.history.following import end_of, follow
from haclusterd.adapters.history.tables import HistoryTables
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.remembered import Because, FollowAnswer, FollowQuery, Missing, Position, read_position
from tests.remembered_logs import WrittenLog, row


@pytest.fixture
def log() -> WrittenLog:
    """Entries 1 to 9; every third has two rows, the even ones are of web on n2."""
    made = WrittenLog()
    for index in range(1, 10):
        place = {"node": NodeName("n2"), "resource": ResourceId("web")} if index % 2 == 0 else {}
        made.add(index, row(index, **place), *([row(index, 1)] if index % 3 == 0 else []))
    return made


def tables(tmp_path: Path, name: str = "a") -> HistoryTables:
    return HistoryTables(tmp_path / f"{name}.sqlite")


def followed(of: HistoryTables, after: str = "0", limit: int = 4, **fields: object) -> tuple[list[str], list[Missing]]:
    """Go on until the end; return the texts and what is missing."""
    texts: list[str] = []
    missing: list[Missing] = []
    position = read_position(after)
    for _ in range(100):
        answer = follow(of, FollowQuery(limit, position, **fields))
        texts += [each.row.text for each in answer.rows]
        missing += [answer.missing] if answer.missing else []
        position = answer.next
        if not answer.has_more:
            return texts, missing
    raise AssertionError("no end")


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_every_row_comes_once_however_many_are_asked_for_at_a_time(
    tmp_path: Path, log: WrittenLog, limit: int
) -> None:
    history = tables(tmp_path)
    history.write(log.entries)
    assert followed(history, limit=limit) == ([each.text for each in log.rows()], [])


def test_from_each_position_on_another_node_tells_the_rest(tmp_path: Path, log: WrittenLog) -> None:
    one, other = tables(tmp_path), tables(tmp_path, "b")
    one.write(log.entries)
    other.write(log.entries)
    texts = [each.text for each in log.rows()]
    rows = follow(one, FollowQuery(100, Position(0))).rows
    for number, each in enumerate(rows, 1):
        assert followed(other, str(each.position)) == (texts[number:], [])
        # Also by the position without its link, as other programs may keep it.
        assert followed(other, f"{each.row.index}.{each.row.n}")[0] == texts[number:]


def test_conditions_choose_and_the_position_goes_on_past_what_does_not_fit(tmp_path: Path, log: WrittenLog) -> None:
    history = tables(tmp_path)
    history.write(log.entries)
    even = [f"row {index}.0" for index in (2, 4, 6, 8)]
    for condition in ({"node": NodeName("n2")}, {"resources": (ResourceId("web"),)}):
        assert followed(history, limit=1, **condition) == (even, [])
    assert follow(history, FollowQuery(9, Position(0), kinds=("nothing",))).next == end_of(history)


def test_without_a_position_only_what_comes_is_returned_or_what_came_since(tmp_path: Path, log: WrittenLog) -> None:
    history = tables(tmp_path)
    history.write(log.entries)
    answer = follow(history, FollowQuery(9))
    assert (answer.rows, answer.next) == ((), end_of(history))
    recent = follow(history, FollowQuery(9, since=WallTime(8000)))
    assert [each.row.text for each in recent.rows] == ["row 8.0", "row 9.0", "row 9.1"]
    history.write([log.add(10, row(10))])
    assert followed(history, str(answer.next)) == (["row 10.0"], [])


def test_what_was_forgotten_is_named_and_only_where_something_was(tmp_path: Path, log: WrittenLog) -> None:
    history = tables(tmp_path)
    history.write(log.entries)
    behind = {each.row.index: each.position for each in follow(history, FollowQuery(100, Position(0))).rows}
    history.write([log.add(10, row(10), forgotten=5)])
    rest = ["row 6.0", "row 6.1", "row 7.0", "row 8.0", "row 9.0", "row 9.1", "row 10.0"]
    assert followed(history) == (rest, [Missing(1, 5, Because.FORGOTTEN)])
    assert followed(history, str(behind[3])) == (rest, [Missing(4, 5, Because.FORGOTTEN)])
    assert followed(history, str(behind[5])) == (rest, [])
    log.add(11, row(11))
    history.write([log.entries[-1], log.add(20, row(20), forgotten=12)])
    assert followed(history, str(behind[5])) == (["row 20.0"], [Missing(6, 12, Because.FORGOTTEN)])
    until_eleven = Position(11, None, log.digest_at(11)[:12])
    assert followed(history, str(until_eleven)) == (["row 20.0"], []), "nothing happened in entry 12"


def test_what_peers_are_asked_for_is_held_back_until_it_is_passed_over(tmp_path: Path, log: WrittenLog) -> None:
    history = tables(tmp_path)
    history.write(log.entries[:3])
    history.write([log.jump(6), *log.entries[6:]])
    before = follow(history, FollowQuery(100, Position(2)))
    assert [each.row.text for each in before.rows] == ["row 3.0", "row 3.1"]
    held = follow(history, FollowQuery(100, before.next))
    assert held == FollowAnswer((), before.next, is_incomplete=True)
    missing = follow(history, FollowQuery(100, before.next, passes_over=True))
    assert missing.missing == Missing(4, 6, Because.UNKNOWN)
    assert followed(history, str(missing.next)) == (["row 7.0", "row 8.0", "row 9.0", "row 9.1"], [])


def test_another_history_is_known_by_the_chain(tmp_path: Path, log: WrittenLog) -> None:
    other = WrittenLog()
    for index in range(1, 8):
        other.add(index, row(index, text=f"other {index}", at=WallTime(7)))
    history = tables(tmp_path)
    history.write(other.entries)
    position = Position(5, None, log.digest_at(5)[:12])
    assert followed(history, str(position)) == (["other 6", "other 7"], [Missing(1, 5, Because.OTHER_HISTORY)])
    ahead = Position(9, None, log.digest_at(9)[:12])
    assert follow(history, FollowQuery(9, ahead)) == FollowAnswer((), ahead, is_behind=True)
    passed = follow(history, FollowQuery(9, ahead, passes_over=True))
    assert (passed.missing, passed.next) == (Missing(8, 9, Because.OTHER_HISTORY), end_of(history))


@pytest.mark.parametrize("text", ["0", "17", "17.3", "17-0a1b2c", "17.3-0a1b2c"])
def test_a_position_is_read_as_it_is_written(text: str) -> None:
    assert str(read_position(text)) == text


@pytest.mark.parametrize("text", ["", "x", "-1", "1.", "1-", "1.x", "1-XYZ", "1" * 30, "1\n", "١"])
def test_what_is_no_position_is_refused(text: str) -> None:
    assert read_position(text) is None
