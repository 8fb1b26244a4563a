"""The history keeps what it can, shows what it cannot, and disturbs nobody."""

import queue
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from haclusterd.adapters import history_sqlite
from haclusterd.adapters.history_sqlite import SqliteHistory
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.ports.history import GAP, History, HistoryAnswer, HistoryQuery, HistoryRow


class MainLoop:
    """Runs what was delivered, on the test's thread."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.problems: list[str] = []

    def deliver(self, call: Callable[[], None]) -> None:
        self._calls.put(call)

    def ask(self, history: History, query: HistoryQuery) -> HistoryAnswer:
        answers: list[HistoryAnswer] = []
        history.query(query, answers.append)
        while not answers:
            self._calls.get(timeout=20)()
        return answers[0]

    def rows(self, history: History, **query: object) -> list[tuple[int, int, str]]:
        answer = self.ask(history, HistoryQuery(**query))  # type: ignore[arg-type]
        return [(row.index, row.n, row.text) for row in answer.rows]


@pytest.fixture
def loop() -> MainLoop:
    return MainLoop()


@pytest.fixture
def open_history(tmp_path: Path, loop: MainLoop) -> Iterator[Callable[..., SqliteHistory]]:
    opened: list[SqliteHistory] = []

    def make(**options: int) -> SqliteHistory:
        history = SqliteHistory(tmp_path / "history.sqlite", loop.deliver, **options)
        history.start(loop.problems.append)
        opened.append(history)
        return history

    yield make
    for history in opened:
        history.stop(20_000)


def row(index: int, n: int = 0, text: str = "", **fields: object) -> HistoryRow:
    parts = {"at": WallTime(1000 * index), "kind": "order-issued", "node": None, "resource": None, **fields}
    return HistoryRow(index=index, n=n, text=text or f"row {index}.{n}", **parts)  # type: ignore[arg-type]


def test_rows_are_found_newest_limit_oldest_first(open_history: Callable[..., SqliteHistory], loop: MainLoop) -> None:
    history = open_history()
    for index in range(1, 6):
        history.record(index, (row(index), row(index, 1)))
    assert loop.rows(history, limit=3) == [(4, 1, "row 4.1"), (5, 0, "row 5.0"), (5, 1, "row 5.1")]
    assert len(loop.rows(history)) == 10


def test_rows_come_back_as_they_were(open_history: Callable[..., SqliteHistory], loop: MainLoop) -> None:
    history = open_history()
    kept = row(7, 0, "grüß", node=NodeName("n1"), resource=ResourceId("web"), detail_json='{"a":1}')
    history.record(7, (kept,))
    assert loop.ask(history, HistoryQuery()) == HistoryAnswer((kept,))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"node": "n1"}, [1, 3]),
        ({"resource": "web"}, [1, 2]),
        ({"node": "n1", "resource": "web"}, [1]),
        ({"since": 2000}, [2, 3]),
        ({"node": "n9"}, []),
        ({"limit": 0}, []),
        ({"node": "n1' OR '1'='1"}, []),
    ],
)
def test_queries_combine(
    open_history: Callable[..., SqliteHistory], loop: MainLoop, query: dict[str, object], found: list[int]
) -> None:
    history = open_history()
    history.record(1, (row(1, node="n1", resource="web"),))
    history.record(2, (row(2, node="n2", resource="web"),))
    history.record(3, (row(3, node="n1", resource="db"),))
    assert [index for index, _, _ in loop.rows(history, **query)] == found


def test_a_replayed_log_leaves_the_same_history(open_history: Callable[..., SqliteHistory], loop: MainLoop) -> None:
    history = open_history()
    for index in (1, 2, 3):
        history.record(index, (row(index, 0, "first life"), row(index, 1, "first life")))
    history.stop(20_000)
    again = open_history()
    again.restored(1)
    for index in (2, 3, 4):
        again.record(index, (row(index, 0, "again"),))
    assert loop.rows(again) == [
        (1, 0, "first life"), (1, 1, "first life"), (2, 0, "again"), (3, 0, "again"), (4, 0, "again"),
    ]  # fmt: skip


def test_what_a_snapshot_skipped_is_a_visible_gap_until_it_is_known(
    open_history: Callable[..., SqliteHistory], loop: MainLoop
) -> None:
    history = open_history()
    history.record(1, (row(1),))
    history.restored(5)
    history.record(6, (row(6),))
    gap = loop.ask(history, HistoryQuery()).rows[1]
    assert (gap.index, gap.kind, gap.at, gap.text) == (
        2, GAP, 1000, "entries 2 to 5 are not in this node's history",
    )  # fmt: skip
    history.record(3, (row(3),))
    assert [text for _, _, text in loop.rows(history)] == [
        "row 1.0",
        "entries 2 to 2 are not in this node's history",
        "row 3.0",
        "entries 4 to 5 are not in this node's history",
        "row 6.0",
    ]
    assert loop.rows(history, limit=1) == [(6, 0, "row 6.0")]


def test_log_indices_without_a_command_are_no_gap(open_history: Callable[..., SqliteHistory], loop: MainLoop) -> None:
    history = open_history()
    history.record(2, (row(2),))
    history.record(9, (row(9),))
    assert loop.rows(history) == [(2, 0, "row 2.0"), (9, 0, "row 9.0")]


def test_what_an_agent_printed_is_kept_whatever_it_is(
    open_history: Callable[..., SqliteHistory], loop: MainLoop
) -> None:
    history = open_history()
    history.record(1, (row(1, 0, "caf\udce9 \x00"),))
    assert loop.rows(history) == [(1, 0, "caf? \x00")]


def test_only_the_newest_rows_are_kept(open_history: Callable[..., SqliteHistory], loop: MainLoop) -> None:
    history = open_history(rows_kept=4)
    for index in range(1, 11):
        history.record(index, (row(index), row(index, 1)))
    assert [index for index, _, _ in loop.rows(history)] == [9, 9, 10, 10]


def test_a_directory_that_is_gone_is_reported_once_and_the_rest_is_kept(tmp_path: Path, loop: MainLoop) -> None:
    history = SqliteHistory(tmp_path / "later" / "history.sqlite", loop.deliver)
    history.start(loop.problems.append)
    for index in (1, 2, 3):
        history.record(index, (row(index),))
        assert "unable to open" in loop.ask(history, HistoryQuery()).problem
    assert len(loop.problems) == 1
    assert "unable to open" in history.problem()
    (tmp_path / "later").mkdir()
    history.record(4, (row(4),))
    assert loop.rows(history) == [(1, -1, "entries 1 to 3 are not in this node's history"), (4, 0, "row 4.0")]
    assert history.problem() == ""
    history.stop(20_000)


def test_a_file_that_is_no_database_is_set_aside(
    tmp_path: Path, open_history: Callable[..., SqliteHistory], loop: MainLoop
) -> None:
    (tmp_path / "history.sqlite").write_bytes(b"not a database, but somebody's data" * 100)
    history = open_history()
    history.record(1, (row(1),))
    assert loop.rows(history) == [(1, 0, "row 1.0")]
    assert "history.sqlite.damaged-1" in loop.problems[0]
    assert (tmp_path / "history.sqlite.damaged-1").read_bytes().startswith(b"not a database")


def test_a_newer_history_is_set_aside_not_misread(
    tmp_path: Path, open_history: Callable[..., SqliteHistory], loop: MainLoop
) -> None:
    database = sqlite3.connect(tmp_path / "history.sqlite")
    database.execute("PRAGMA user_version=99")
    database.close()
    history = open_history()
    history.record(1, (row(1),))
    assert loop.rows(history) == [(1, 0, "row 1.0")]
    assert "format 99" in loop.problems[0]


def test_a_locked_file_delays_only_the_history(
    tmp_path: Path, open_history: Callable[..., SqliteHistory], loop: MainLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_sqlite, "ITEMS_QUEUED_MAX", 10)
    history = open_history()
    history.record(1, (row(1),))
    loop.rows(history)
    other = sqlite3.connect(tmp_path / "history.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for index in range(2, 102):
        history.record(index, (row(index),))
    assert history.problem() == "too much to record: entries are dropped"
    other.execute("ROLLBACK")
    other.close()
    found = loop.rows(history, limit=1000)
    kept = [index for index, n, _ in found if n == 0]
    (gap,) = [text for _, n, text in found if n == -1]
    assert kept == list(range(1, len(kept) + 1))
    assert gap == f"entries {len(kept) + 1} to 101 are not in this node's history"


def test_the_history_survives_being_killed(tmp_path: Path, loop: MainLoop) -> None:
    history = SqliteHistory(tmp_path / "history.sqlite", loop.deliver)
    history.start(loop.problems.append)
    history.record(1, (row(1),))
    assert loop.rows(history) == [(1, 0, "row 1.0")]
    copied = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    history.stop(20_000)
    (tmp_path / "later").mkdir()
    for name, data in copied.items():
        (tmp_path / "later" / name).write_bytes(data)
    again = SqliteHistory(tmp_path / "later" / "history.sqlite", loop.deliver)
    again.start(loop.problems.append)
    assert loop.rows(again) == [(1, 0, "row 1.0")]
    again.stop(20_000)
    assert loop.problems == []
