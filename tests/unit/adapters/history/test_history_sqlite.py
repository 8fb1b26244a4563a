"""The history keeps what it can, shows what it cannot, and disturbs nobody."""

import contextlib
import queue
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from haclusterd.adapters.history import reading as history_reading
from haclusterd.adapters.history import sqlite as history_sqlite
from haclusterd.adapters.history.reading import ROW_CHARACTERS
from haclusterd.adapters.history.sqlite import SqliteHistory
from haclusterd.adapters.history.tables import Recorded
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.ports.history import GAP, History, HistoryAnswer, HistoryQuery, Horizon
from tests.remembered_logs import WrittenLog, row

N1 = NodeName("n1")


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

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < deadline
            with contextlib.suppress(queue.Empty):
                self._calls.get(timeout=0.01)()

    def rows(self, history: History, **query: object) -> list[tuple[int, int, str]]:
        answer = self.ask(history, HistoryQuery(**query))
        return [(row.index, row.n, row.text) for row in answer.rows]


def tell(history: History, *entries: Recorded) -> None:
    for entry in entries:
        history.record(entry.index, entry.rows, entry.before, entry.after, entry.version)


@pytest.fixture
def log() -> WrittenLog:
    return WrittenLog()


@pytest.fixture
def loop() -> MainLoop:
    return MainLoop()


@pytest.fixture
def open_history(tmp_path: Path, loop: MainLoop) -> Iterator[Callable[..., SqliteHistory]]:
    opened: list[SqliteHistory] = []

    def make() -> SqliteHistory:
        history = SqliteHistory(tmp_path / "history.sqlite", loop.deliver, node=N1)
        history.start(loop.problems.append)
        opened.append(history)
        return history

    yield make
    for history in opened:
        history.stop(20_000)


def test_rows_are_found_newest_limit_oldest_first(
    open_history: Callable[..., SqliteHistory], loop: MainLoop, log: WrittenLog
) -> None:
    history = open_history()
    tell(history, *(log.add(index, row(index), row(index, 1)) for index in range(1, 6)))
    assert loop.rows(history, limit=3) == [(4, 1, "row 4.1"), (5, 0, "row 5.0"), (5, 1, "row 5.1")]
    assert len(loop.rows(history)) == 10


def test_rows_come_back_as_they_were(
    open_history: Callable[..., SqliteHistory], loop: MainLoop, log: WrittenLog
) -> None:
    history = open_history()
    kept = row(7, 0, "grüß", node=NodeName("n1"), resource=ResourceId("web"), detail_json='{"a":1}')
    tell(history, log.add(7, kept))
    assert loop.ask(history, HistoryQuery()).rows == (kept,)


def test_a_time_that_is_too_far_away_for_the_database_finds_what_it_should(
    open_history: Callable[..., SqliteHistory], loop: MainLoop, log: WrittenLog
) -> None:
    history = open_history()
    tell(history, log.add(1, row(1)))
    assert loop.rows(history, since=-(10**30), until=10**30) == [(1, 0, "row 1.0")]


def test_an_answer_holds_so_many_characters_and_says_how_many_rows_it_leaves_out(
    open_history: Callable[..., SqliteHistory], loop: MainLoop, log: WrittenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_reading, "ANSWER_CHARACTERS_MAX", 3 * (ROW_CHARACTERS + len("row 5.1")))
    history = open_history()
    tell(history, *(log.add(index, row(index), row(index, 1)) for index in range(1, 6)))
    answer = loop.ask(history, HistoryQuery(limit=1000))
    assert [row.text for row in answer.rows] == ["row 4.1", "row 5.0", "row 5.1"]
    assert answer.left_out == 7


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"nodes": ("n1",)}, [1, 3]),
        ({"nodes": ("n1", "n2")}, [1, 2, 3]),
        ({"resources": ("web",)}, [1, 2]),
        ({"resources": ("web", "db")}, [1, 2, 3]),
        ({"nodes": ("n1",), "resources": ("web",)}, [1]),
        ({"kinds": ("node-lost",)}, [2]),
        ({"until": 2000}, [1, 2]),
        ({"since": 2000, "until": 2000}, [2]),
        ({"since": 2000}, [2, 3]),
        ({"nodes": ("n9",)}, []),
        ({"limit": 0}, []),
        ({"nodes": ("n1' OR '1'='1",)}, []),
    ],
)
def test_queries_combine(
    open_history: Callable[..., SqliteHistory], loop: MainLoop, log: WrittenLog, query: dict[str, object],
    found: list[int],
) -> None:
    history = open_history()
    tell(
        history,
        log.add(1, row(1, node="n1", resource="web")),
        log.add(2, row(2, node="n2", resource="web", kind="node-lost")),
        log.add(3, row(3, node="n1", resource="db")),
    )
    assert [index for index, _, _ in loop.rows(history, **query)] == found


def test_a_replayed_log_leaves_the_same_history(
    open_history: Callable[..., SqliteHistory], loop: MainLoop, log: WrittenLog
) -> None:
    history = open_history()
    tell(history, *log.fill(1, 3))
    history.stop(20_000)
    again = open_history()
    again.restored(1, log.mark_at(1))
    tell(again, *log.entries[1:], log.add(4, row(4)))
    assert loop.rows(again) == [(index, 0, f"row {index}.0") for index in (1, 2, 3, 4)]


def test_what_a_snapshot_skipped_is_a_visible_gap_until_it_is_known(
    open_history: Callable[..., SqliteHistory], loop: MainLoop, log: WrittenLog
) -> None:
    history = open_history()
    log.fill(1, 6)
    tell(history, log.entries[0])
    history.restored(5, log.mark_at(5))
    tell(history, log.entries[5])
    gap = loop.ask(history, HistoryQuery()).rows[1]
    assert (gap.index, gap.kind, gap.at, gap.text) == (
        2, GAP, 1000, "entries 2 to 5 are not in this node's history",
    )  # fmt: skip
    tell(history, log.entries[2])
    assert [text for _, _, text in loop.rows(history)] == [
        "row 1.0",
        "entries 2 to 2 are not in this node's history",
        "row 3.0",
        "entries 4 to 5 are not in this node's history",
        "row 6.0",
    ]
    assert loop.rows(history, limit=1) == [(6, 0, "row 6.0")]


def test_a_history_that_is_not_this_logs_is_not_believed(
    open_history: Callable[..., SqliteHistory], loop: MainLoop, log: WrittenLog
) -> None:
    other = WrittenLog()
    history = open_history()
    tell(history, *(other.add(index, row(index, kind="of another log")) for index in range(1, 5)))
    log.fill(1, 5)
    history.restored(3, log.mark_at(3))
    tell(history, *log.entries[3:])
    assert [text for _, _, text in loop.rows(history)] == [
        "entries 1 to 4 are not in this node's history", "row 5.0",
    ]  # fmt: skip


def test_log_indices_without_a_command_are_no_gap(
    open_history: Callable[..., SqliteHistory], loop: MainLoop, log: WrittenLog
) -> None:
    history = open_history()
    tell(history, log.add(2, row(2)), log.add(9, row(9)))
    assert loop.rows(history) == [(2, 0, "row 2.0"), (9, 0, "row 9.0")]


def test_what_an_agent_printed_is_kept_whatever_it_is(
    open_history: Callable[..., SqliteHistory], loop: MainLoop, log: WrittenLog
) -> None:
    history = open_history()
    tell(history, log.add(1, row(1, 0, "caf\udce9 \x00")))
    assert loop.rows(history) == [(1, 0, "caf? \x00")]


def test_what_is_forgotten_is_dropped_and_nothing_else(
    open_history: Callable[..., SqliteHistory], loop: MainLoop, log: WrittenLog
) -> None:
    history = open_history()
    tell(history, *log.fill(1, 10), log.add(11, row(11), forgotten=7))
    assert [index for index, _, _ in loop.rows(history)] == [8, 9, 10, 11]
    tell(history, *log.entries[:9])
    assert [index for index, _, _ in loop.rows(history)] == [8, 9, 10, 11], "a replay brings nothing back"


@pytest.mark.parametrize(
    ("before", "rows_max", "through"),
    [
        pytest.param(0, 100, None, id="nothing is old, and the log began behind its first index"),
        pytest.param(6, 100, 5, id="what is older than a time"),
        pytest.param(0, 2, 6, id="what is more rows back"),
        pytest.param(6, 2, 6, id="whichever is more"),
        pytest.param(100, 100, 8, id="everything is old"),
    ],
)
def test_only_what_is_old_or_far_back_is_to_be_forgotten(
    open_history: Callable[..., SqliteHistory],
    loop: MainLoop,
    log: WrittenLog,
    before: int,
    rows_max: int,
    through: int | None,
) -> None:
    history = open_history()
    tell(history, *(log.add(index, replace(row(index), at=WallTime(index))) for index in range(3, 9)))
    found: list[Horizon | None] = []
    history.horizon(WallTime(before), rows_max, found.append)
    loop.until(lambda: bool(found))
    assert (found[0].through if found[0] is not None else None) == through


def test_a_directory_that_is_not_there_is_reported_once_and_nothing_is_lost_when_it_comes(
    tmp_path: Path, loop: MainLoop, log: WrittenLog
) -> None:
    history = SqliteHistory(tmp_path / "later" / "history.sqlite", loop.deliver, node=N1)
    history.start(loop.problems.append)
    for entry in log.fill(1, 3):
        tell(history, entry)
        assert "unable to open" in loop.ask(history, HistoryQuery()).problem
    assert len(loop.problems) == 1
    assert "unable to open" in history.problem()
    (tmp_path / "later").mkdir()
    loop.until(lambda: loop.problems[1:] == [""])
    assert loop.rows(history) == [(index, 0, f"row {index}.0") for index in (1, 2, 3)]
    assert history.problem() == ""
    history.stop(20_000)


def test_a_file_that_is_no_database_is_set_aside(
    tmp_path: Path, open_history: Callable[..., SqliteHistory], loop: MainLoop, log: WrittenLog
) -> None:
    (tmp_path / "history.sqlite").write_bytes(b"not a database, but somebody's data" * 100)
    history = open_history()
    tell(history, log.add(1, row(1)))
    loop.until(lambda: len(loop.problems) == 2)
    assert loop.rows(history) == [(1, 0, "row 1.0")]
    assert "history.sqlite.damaged-1" in loop.problems[0]
    assert (tmp_path / "history.sqlite.damaged-1").read_bytes().startswith(b"not a database")


def test_a_newer_history_is_set_aside_not_misread(
    tmp_path: Path, open_history: Callable[..., SqliteHistory], loop: MainLoop, log: WrittenLog
) -> None:
    database = sqlite3.connect(tmp_path / "history.sqlite")
    database.execute("PRAGMA user_version=99")
    database.close()
    history = open_history()
    tell(history, log.add(1, row(1)))
    loop.until(lambda: len(loop.problems) == 2)
    assert loop.rows(history) == [(1, 0, "row 1.0")]
    assert "format 99" in loop.problems[0]


def test_a_file_that_is_damaged_or_removed_at_run_time_is_begun_again_with_a_visible_gap(
    tmp_path: Path, open_history: Callable[..., SqliteHistory], loop: MainLoop, log: WrittenLog
) -> None:
    history = open_history()
    tell(history, *log.fill(1, 3))
    loop.rows(history)
    # The database after its journals: as soon as it is gone, the history may begin another one, with journals.
    for each in sorted(tmp_path.iterdir(), reverse=True):
        each.unlink()
    tell(history, log.add(4, row(4)))
    expected = [(1, -1, "entries 1 to 3 are not in this node's history"), (4, 0, "row 4.0")]
    assert loop.rows(history) == expected


def test_a_locked_file_delays_only_the_history_and_loses_nothing(
    tmp_path: Path, open_history: Callable[..., SqliteHistory], loop: MainLoop, log: WrittenLog
) -> None:
    history = open_history()
    tell(history, log.add(1, row(1)))
    loop.rows(history)
    other = sqlite3.connect(tmp_path / "history.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    tell(history, *log.fill(2, 101))
    loop.until(lambda: "locked" in history.problem())
    other.execute("ROLLBACK")
    other.close()
    loop.until(lambda: not history.problem())
    assert [index for index, _, _ in loop.rows(history, limit=1000)] == list(range(1, 102))


def test_what_finds_no_room_is_a_gap(
    tmp_path: Path, open_history: Callable[..., SqliteHistory], loop: MainLoop, log: WrittenLog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(history_sqlite, "ITEMS_QUEUED_MAX", 10)
    history = open_history()
    tell(history, log.add(1, row(1)))
    loop.rows(history)
    other = sqlite3.connect(tmp_path / "history.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    tell(history, *log.fill(2, 101))
    other.execute("ROLLBACK")
    other.close()
    loop.until(lambda: not history.problem())
    tell(history, log.add(102, row(102)))
    found = loop.rows(history, limit=1000)
    kept = [index for index, n, _ in found if n == 0]
    (gap,) = [text for _, n, text in found if n == -1]
    assert kept[-1] == 102
    assert kept[:-1] == list(range(1, len(kept)))
    assert gap == f"entries {len(kept)} to 101 are not in this node's history"


def test_the_history_survives_being_killed(tmp_path: Path, loop: MainLoop, log: WrittenLog) -> None:
    history = SqliteHistory(tmp_path / "history.sqlite", loop.deliver, node=N1)
    history.start(loop.problems.append)
    tell(history, log.add(1, row(1)))
    assert loop.rows(history) == [(1, 0, "row 1.0")]
    copied = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    history.stop(20_000)
    (tmp_path / "later").mkdir()
    for name, data in copied.items():
        (tmp_path / "later" / name).write_bytes(data)
    again = SqliteHistory(tmp_path / "later" / "history.sqlite", loop.deliver, node=N1)
    again.start(loop.problems.append)
    assert loop.rows(again) == [(1, 0, "row 1.0")]
    again.stop(20_000)
    assert loop.problems == []
