"""Versions of the configuration are kept whole, found again bit for bit, and never silently changed."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from haclusterd.adapters import history_tables
from haclusterd.adapters.history_tables import FORMAT, HistoryTables, Jumped, Recorded
from haclusterd.model.instants import WallTime
from haclusterd.ports.history import KeptVersion, NewVersion


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite"


@pytest.fixture
def tables(path: Path) -> Iterator[HistoryTables]:
    opened = HistoryTables(path)
    yield opened
    opened.close()


def version(number: int, content: bytes = b"", reason: str = "") -> NewVersion:
    return NewVersion(number, WallTime(1000 * number), "root@n1", reason, lambda: content or b"version %d" % number)


def numbers(tables: HistoryTables) -> list[int]:
    return [each.number for each in tables.versions()]


def test_a_version_comes_back_as_it_was(tables: HistoryTables) -> None:
    content = bytes(range(256)) * 1000
    tables.write([Recorded(7, (), version(1, content, "grüß"))], rows_kept=10)
    (kept,) = tables.versions()
    assert kept == KeptVersion(1, WallTime(1000), "root@n1", "grüß", kept.digest)
    assert len(kept.digest) == 64
    assert tables.content(1) == content
    assert tables.content(2) is None


def test_a_replayed_log_leaves_the_same_versions(tables: HistoryTables) -> None:
    items = [Recorded(index, (), version(index)) for index in range(1, 4)]
    tables.write(items, rows_kept=10)
    before = tables.versions()
    tables.write(items, rows_kept=10)
    assert tables.versions() == before


def test_a_snapshot_brings_its_version_and_leaves_a_hole_for_those_it_skips(tables: HistoryTables) -> None:
    tables.write([Recorded(5, (), version(1)), Jumped(90, version(6))], rows_kept=10)
    assert numbers(tables) == [1, 6]


def test_what_is_known_is_not_replaced_by_a_snapshot(tables: HistoryTables) -> None:
    tables.write([Recorded(5, (), version(1, b"first")), Jumped(9, version(1, b"other"))], rows_kept=10)
    assert tables.content(1) == b"first"


@pytest.mark.parametrize(
    ("limit", "value", "kept"), [("VERSIONS_KEPT", 3, [8, 9, 10]), ("VERSION_BYTES_KEPT", 1, [10])]
)
def test_the_oldest_go_first_and_the_newest_stays(
    tables: HistoryTables, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, kept: list[int]
) -> None:
    monkeypatch.setattr(history_tables, limit, value)
    tables.write([Recorded(index, (), version(index)) for index in range(1, 11)], rows_kept=10)
    assert numbers(tables) == kept


def _other_content(database: sqlite3.Connection) -> None:
    database.execute("UPDATE version SET content = (SELECT content FROM version WHERE number = 2) WHERE number = 1")


def _no_content(database: sqlite3.Connection) -> None:
    database.execute("UPDATE version SET content = x'00' WHERE number = 1")


@pytest.mark.parametrize("damage", [_other_content, _no_content])
def test_a_changed_content_is_not_taken_for_the_version(
    path: Path, tables: HistoryTables, damage: Callable[[sqlite3.Connection], None]
) -> None:
    tables.write([Recorded(index, (), version(index)) for index in (1, 2)], rows_kept=10)
    with sqlite3.connect(path) as other:
        damage(other)
    other.close()
    with pytest.raises(sqlite3.DatabaseError, match="version 1"):
        tables.content(1)
    assert tables.content(2) == b"version 2"


def test_a_history_of_format_1_is_taken_on(path: Path) -> None:
    HistoryTables(path).close()
    with sqlite3.connect(path) as old:
        old.executescript("DROP TABLE version; PRAGMA user_version=1;")
    old.close()
    taken = HistoryTables(path)
    taken.write([Recorded(1, (), version(1))], rows_kept=10)
    assert numbers(taken) == [1]
    taken.close()


def test_a_newer_format_is_refused(path: Path) -> None:
    with sqlite3.connect(path) as newer:
        newer.execute(f"PRAGMA user_version={FORMAT + 1}")
    newer.close()
    with pytest.raises(sqlite3.DatabaseError, match="history of format"):
        HistoryTables(path)
