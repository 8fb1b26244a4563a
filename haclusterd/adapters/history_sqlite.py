"""The history in a local SQLite file, written by a thread of its own behind a bounded queue.

Nothing waits for it and nothing fails with it: what cannot be queued or written is dropped, which leaves a gap that
queries show, and the reason is told once per kind of trouble. A file that is no database (any more) is set aside under
another name, never overwritten.
"""

import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from haclusterd.adapters.history_tables import HistoryTables, Item, Jumped, Missed, Recorded
from haclusterd.adapters.real_time import run_first
from haclusterd.ports.history import (
    HistoryAnswer,
    HistoryQuery,
    HistoryRow,
    NewVersion,
    VersionAnswer,
    VersionQuery,
)

ITEMS_QUEUED_MAX: Final = 20_000
QUERIES_QUEUED_MAX: Final = 100
ITEMS_PER_TRANSACTION_MAX: Final = 1_000
ROWS_KEPT: Final = 500_000

Deliver = Callable[[Callable[[], None]], None]
"""Make a call on the main loop, from any thread."""


@dataclass(frozen=True, slots=True)
class _Question:
    read: Callable[[HistoryTables], Callable[[], None]]
    """Look it up; return the call that delivers the answer."""
    fail: Callable[[str], None]


class SqliteHistory:
    """History in one file."""

    def __init__(self, path: Path, deliver: Deliver, *, rows_kept: int = ROWS_KEPT) -> None:
        self._path = path
        self._deliver = deliver
        self._rows_kept = rows_kept
        self._items: deque[Item] = deque()
        self._unwritten: tuple[Jumped | Missed, ...] = ()
        self._questions: deque[_Question] = deque()
        self._changed = threading.Condition()
        self._is_stopping = False
        self._problem = ""
        self._tables: HistoryTables | None = None
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)

    def start(self, failed: Callable[[str], None]) -> None:
        """Begin; each new problem is told once, on the main loop."""
        self._failed = failed
        self._thread.start()

    def record(self, index: int, rows: tuple[HistoryRow, ...], version: NewVersion | None = None) -> None:
        """Keep what one applied entry did."""
        assert all(row.index == index for row in rows), "rows of another index"
        self._enqueue(Recorded(index, rows, version))

    def restored(self, index: int, version: NewVersion | None = None) -> None:
        """Learn that the state at `index` came as a whole."""
        self._enqueue(Jumped(index, version))

    def _enqueue(self, item: Recorded | Jumped) -> None:
        with self._changed:
            if len(self._items) < ITEMS_QUEUED_MAX:
                self._items.append(item)
                self._changed.notify_all()
            else:
                self._miss(item)
                self._note("too much to record: entries are dropped")

    def query(self, query: HistoryQuery, done: Callable[[HistoryAnswer], None]) -> None:
        """Look up, after everything recorded so far; deliver the answer on the main loop."""

        def read(tables: HistoryTables) -> Callable[[], None]:
            answer = HistoryAnswer(tables.read(query), self._problem)
            return lambda: done(answer)

        self._ask(_Question(read, lambda problem: done(HistoryAnswer((), problem))))

    def versions(self, query: VersionQuery, done: Callable[[VersionAnswer], None]) -> None:
        """Look up versions of the configuration, after everything recorded so far."""

        def read(tables: HistoryTables) -> Callable[[], None]:
            found = {number: tables.content(number) for number in query.contents}
            contents = {number: content for number, content in found.items() if content is not None}
            answer = VersionAnswer(tables.versions(), contents, self._problem)
            return lambda: done(answer)

        self._ask(_Question(read, lambda problem: done(VersionAnswer((), {}, problem))))

    def _ask(self, question: _Question) -> None:
        with self._changed:
            if len(self._questions) < QUERIES_QUEUED_MAX:
                self._questions.append(question)
                self._changed.notify_all()
                return
        self._deliver(lambda: question.fail("too many questions are waiting"))

    def problem(self) -> str:
        """Return what keeps the history from being written; empty when nothing does."""
        return self._problem

    def stop(self, timeout_ms: int) -> None:
        """Write what is queued, but wait no longer than this; nothing is delivered afterwards."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        self._thread.join(timeout_ms / 1000)

    def _run(self) -> None:
        run_first()
        while self._turn():
            pass
        if self._tables is not None:
            self._tables.close()

    def _turn(self) -> bool:
        """Write and answer what is waiting; return whether there may be more."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._questions or self._is_stopping)
            items = [self._items.popleft() for _ in range(min(len(self._items), ITEMS_PER_TRANSACTION_MAX))]
            is_caught_up = not self._items
            questions = [self._questions.popleft() for _ in range(len(self._questions) if is_caught_up else 0)]
            is_last = is_caught_up and self._is_stopping
        self._write(items)
        for question in questions:
            self._answer(question)
        return not is_last

    def _open(self) -> HistoryTables:
        if self._tables is None:
            try:
                self._tables = HistoryTables(self._path)
            except sqlite3.OperationalError:
                raise  # No permission, no space, no directory: the file itself is not at fault.
            except sqlite3.DatabaseError as error:
                aside = set_aside(self._path)
                self._tables = HistoryTables(self._path)
                self._note(f"{self._path}: {error}; it was kept as {aside} and a new history begun")
        return self._tables

    def _write(self, items: list[Item]) -> None:
        with self._changed:
            items[:0] = self._unwritten
            self._unwritten = ()
        if not items:
            return
        try:
            self._open().write(items, rows_kept=self._rows_kept)
        except (sqlite3.Error, OSError) as error:
            with self._changed:
                for item in items:
                    self._miss(item)
            self._note(f"{self._path}: {error}")
        else:
            self._problem = ""

    def _miss(self, item: Item) -> None:
        jump = next((each for each in self._unwritten if isinstance(each, Jumped)), None)
        missed = next((each for each in self._unwritten if isinstance(each, Missed)), None)
        if isinstance(item, Jumped):
            jump = item
        else:
            first, last = (item.first, item.last) if isinstance(item, Missed) else (item.index, item.index)
            known = missed or Missed(first, last)
            missed = Missed(min(known.first, first), max(known.last, last))
        self._unwritten = tuple(each for each in (jump, missed) if each is not None)

    def _answer(self, question: _Question) -> None:
        try:
            answer = question.read(self._open())
        except (sqlite3.Error, OSError) as error:
            problem = f"{self._path}: {error}"
            self._tell(lambda: question.fail(problem))
        else:
            self._tell(answer)

    def _note(self, problem: str) -> None:
        is_new = problem != self._problem
        self._problem = problem
        if is_new:
            self._tell(lambda: self._failed(problem))

    def _tell(self, call: Callable[[], None]) -> None:
        if not self._is_stopping:
            self._deliver(call)


def set_aside(path: Path) -> Path:
    """Rename a database and its journals to a name that is not in use, and return that name."""
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    for suffix in ("", "-wal", "-shm"):
        found = path.with_name(path.name + suffix)
        if found.exists():
            found.rename(aside.with_name(aside.name + suffix))
    return aside
