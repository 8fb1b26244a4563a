"""Versions of the configuration are kept whole, found again bit for bit, and never silently changed."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from haclusterd.adapters.history import version_table as history_version_table
from haclusterd.adapters.history.reading import read
from haclusterd.adapters.history.tables import FORMAT, HistoryTables, Jumped, Recorded
from haclusterd.adapters.history.version_table import content, missing_versions, versions
from haclusterd.model.cluster import HistoryMark
from haclusterd.model.instants import WallTime
from haclusterd.ports.history import HistoryQuery, KeptVersion, NewVersion

NONE = HistoryMark()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite"


@pytest.fixture
def tables(path: Path) -> Iterator[HistoryTables]:
    opened = HistoryTables(path)
    yield opened
    opened.close()


def version(number: int, what: bytes = b"", reason: str = "") -> NewVersion:
    return NewVersion(number, WallTime(1000 * number), "root@n1", reason, lambda: what or b"version %d" % number)


def numbers(tables: HistoryTables) -> list[int]:
    return [each.number for each in versions(tables.database)]


def test_a_version_comes_back_as_it_was(tables: HistoryTables) -> None:
    whole = bytes(range(256)) * 1000
    tables.write([Recorded(7, (), NONE, NONE, version(1, whole, "grüß"))])
    (kept,) = versions(tables.database)
    assert kept == KeptVersion(1, WallTime(1000), "root@n1", "grüß", kept.digest)
    assert len(kept.digest) == 64
    assert content(tables.database, 1) == whole
    assert content(tables.database, 2) is None


def test_a_replayed_log_leaves_the_same_versions(tables: HistoryTables) -> None:
    items = [Recorded(index, (), NONE, NONE, version(index)) for index in range(1, 4)]
    tables.write(items)
    before = versions(tables.database)
    tables.write(items)
    assert versions(tables.database) == before


def test_a_snapshot_brings_its_version_and_leaves_a_hole_for_those_it_skips(tables: HistoryTables) -> None:
    tables.write([Recorded(5, (), NONE, NONE, version(1)), Jumped(90, NONE, version(6))])
    assert numbers(tables) == [1, 6]


def test_what_is_known_is_not_replaced_by_a_snapshot(tables: HistoryTables) -> None:
    tables.write([Recorded(5, (), NONE, NONE, version(1, b"first")), Jumped(9, NONE, version(1, b"other"))])
    assert content(tables.database, 1) == b"first"


@pytest.mark.parametrize(
    ("limit", "value", "kept"), [("VERSIONS_KEPT", 3, [8, 9, 10]), ("VERSION_BYTES_KEPT", 1, [10])]
)
def test_the_oldest_go_first_and_the_newest_stays(
    tables: HistoryTables, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, kept: list[int]
) -> None:
    monkeypatch.setattr(history_version_table, limit, value)
    tables.write([Recorded(index, (), NONE, NONE, version(index)) for index in range(1, 11)])
    assert numbers(tables) == kept


def _other_content(database: sqlite3.Connection) -> None:
    database.execute("UPDATE version SET content = (SELECT content FROM version WHERE number = 2) WHERE number = 1")


def _no_content(database: sqlite3.Connection) -> None:
    database.execute("UPDATE version SET content = x'00' WHERE number = 1")


@pytest.mark.parametrize("damage", [_other_content, _no_content])
def test_a_changed_content_is_not_taken_for_the_version(
    path: Path, tables: HistoryTables, damage: Callable[[sqlite3.Connection], None]
) -> None:
    tables.write([Recorded(index, (), NONE, NONE, version(index)) for index in (1, 2)])
    with sqlite3.connect(path) as other:
        damage(other)
    other.close()
    assert content(tables.database, 1) is None
    assert missing_versions(tables.database) == (1,), "it is to be fetched again"
    assert content(tables.database, 2) == b"version 2"


def test_a_history_of_format_1_is_taken_on(path: Path) -> None:
    HistoryTables(path).close()
    with sqlite3.connect(path) as old:
        old.executescript("""
            DROP TABLE version; DROP TABLE entry; DROP TABLE gap; DROP TABLE progress;
            CREATE TABLE gap (first INTEGER PRIMARY KEY, last INTEGER NOT NULL);
            CREATE TABLE progress (
                only_row INTEGER PRIMARY KEY CHECK (only_row = 0), last_index INTEGER NOT NULL
            );
            INSERT INTO progress VALUES (0, 7);
            INSERT INTO event VALUES (7, 0, 1, 'node-joined', NULL, NULL, 'n1 joined', '');
            PRAGMA user_version=1;
        """)
    old.close()
    taken = HistoryTables(path)
    taken.write([Recorded(8, (), NONE, NONE, version(1))])
    assert numbers(taken) == [1]
    assert [each.text for each in read(taken, HistoryQuery()).rows] == ["n1 joined"]
    taken.close()


def test_a_newer_format_is_refused(path: Path) -> None:
    with sqlite3.connect(path) as newer:
        newer.execute(f"PRAGMA user_version={FORMAT + 1}")
    newer.close()
    with pytest.raises(sqlite3.DatabaseError, match="history of format"):
        HistoryTables(path)
