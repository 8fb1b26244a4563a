"""The history in a local SQLite file, written by a thread behind a bounded queue.

Nothing waits for it and nothing fails with it. Failed writes are repeated; items that find no room in the queue are
dropped, which the chain shows and peers repair. A file that is no longer a database is renamed, never overwritten, and
a new one is made. Each new problem is reported once.
"""

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from haclusterd.adapters.history.comparing import Comparing
from haclusterd.adapters.history.following import end_of, follow
from haclusterd.adapters.history.reading import horizon, read
from haclusterd.adapters.history.repair import HistoryRepair
from haclusterd.adapters.history.tables import HistoryTables, Item, Jumped, Recorded
from haclusterd.adapters.history.version_table import content, versions
from haclusterd.adapters.machine.real_time import run_first
from haclusterd.adapters.network.peer_messages import NoPeerMessages
from haclusterd.model.cluster import HistoryMark
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass, replace
from haclusterd.model.remembered import HistoryRow
from haclusterd.ports.history import (
    Comparison,
    FollowAnswer,
    FollowQuery,
    HistoryAnswer,
    HistoryQuery,
    Horizon,
    NewVersion,
    Position,
    VersionAnswer,
    VersionQuery,
)
from haclusterd.ports.peer_messages import PeerMessages
from haclusterd.protocol.history_messages import VERSION as HISTORY_MESSAGES
from haclusterd.protocol.history_messages import (
    AskPage,
    AskSummary,
    AskVersion,
    MessageRefusedError,
    TellPage,
    TellSummary,
    TellVersion,
    decode,
)

ITEMS_QUEUED_MAX: Final = 20_000
QUERIES_QUEUED_MAX: Final = 100
MESSAGES_QUEUED_MAX: Final = 64
ITEMS_PER_TRANSACTION_MAX: Final = 1_000
RETRY_MS: Final = 1_000
"""Pause between two attempts to write."""

Deliver = Callable[[Callable[[], None]], None]
"""Makes a call on the main loop, from any thread."""


@dataclass(frozen=True, slots=True)
class _Question:
    read: Callable[[HistoryTables], Callable[[], None]]
    """Looks something up; returns the call that delivers the answer."""
    fail: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest state, for a file that begins empty."""

    index: int
    mark: HistoryMark
    version: NewVersion | None


class SqliteHistory:
    """History in one file."""

    def __init__(
        self, path: Path, deliver: Deliver, *, node: NodeName, peer_messages: PeerMessages | None = None
    ) -> None:
        self._path = path
        self._deliver = deliver
        self._peer_messages = peer_messages or NoPeerMessages()
        self._items: deque[Item] = deque()
        self._questions: deque[_Question] = deque()
        self._messages: deque[tuple[NodeName, bytes]] = deque()
        self._changed = threading.Condition()
        self._is_stopping = False
        self._problem = ""
        self._retry_ms = 0
        self._due_ms: int | None = 0
        """When there is something to do without being woken; None: nothing."""
        self._newest: _Newest | None = None
        self._tables: HistoryTables | None = None
        self._inode = 0
        self._repair = HistoryRepair(self._peer_messages)
        self._comparing = Comparing(node, self._peer_messages, self._tell)
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)

    # -- what the main loop calls -----------------------------------------------------------------------------------

    def start(self, failed: Callable[[str], None]) -> None:
        """Start; each new problem, and with an empty text its end, is reported once, on the main loop."""
        self._failed = failed
        self._peer_messages.open(HISTORY_MESSAGES, self._message_came)
        self._thread.start()

    def record(
        self,
        index: int,
        rows: tuple[HistoryRow, ...],
        before: HistoryMark,
        after: HistoryMark,
        version: NewVersion | None = None,
    ) -> None:
        """Record the changes of one applied entry."""
        assert all(row.index == index for row in rows), "rows of another index"
        self._enqueue(Recorded(index, rows, before, after, version))

    def restored(self, index: int, mark: HistoryMark, version: NewVersion | None = None) -> None:
        """Note that the state at `index` came from a snapshot."""
        self._enqueue(Jumped(index, mark, version))

    def _enqueue(self, item: Item) -> None:
        with self._changed:
            if len(self._items) < ITEMS_QUEUED_MAX:
                self._items.append(item)
                self._changed.notify_all()
            else:
                self._note("too much to record: entries are dropped")

    def query(self, query: HistoryQuery, done: Callable[[HistoryAnswer], None]) -> None:
        """Look up events, after everything recorded so far; deliver the answer on the main loop."""

        def look_up(tables: HistoryTables) -> Callable[[], None]:
            found = read(tables, query)
            answer = HistoryAnswer(found.rows, self._problem, found.left_out, end_of(tables))
            return lambda: done(answer)

        self._ask(_Question(look_up, lambda problem: done(HistoryAnswer((), problem))))

    def follow(self, query: FollowQuery, done: Callable[[FollowAnswer], None]) -> None:
        """Look up what follows a position, after everything recorded so far."""
        begin = query.after or Position(0)

        def look_up(tables: HistoryTables) -> Callable[[], None]:
            answer = replace(follow(tables, query), problem=self._problem)
            return lambda: done(answer)

        self._ask(_Question(look_up, lambda problem: done(FollowAnswer((), begin, problem=problem, is_refused=True))))

    def versions(self, query: VersionQuery, done: Callable[[VersionAnswer], None]) -> None:
        """Look up versions of the configuration, after everything recorded so far."""

        def look_up(tables: HistoryTables) -> Callable[[], None]:
            found = {number: content(tables.database, number) for number in query.contents}
            contents = {number: each for number, each in found.items() if each is not None}
            answer = VersionAnswer(versions(tables.database), contents, self._problem)
            return lambda: done(answer)

        self._ask(_Question(look_up, lambda problem: done(VersionAnswer((), {}, problem))))

    def compare(self, peers: tuple[NodeName, ...], done: Callable[[Comparison], None]) -> None:
        """Read this node's whole history and ask the peers for theirs."""

        def begin(tables: HistoryTables) -> Callable[[], None]:
            self._comparing.begin(tables, peers, done, _now_ms())
            return _nothing

        self._ask(_Question(begin, lambda problem: done(self._comparing.failed(peers, problem))))

    def horizon(self, before: WallTime, rows_max: int, done: Callable[[Horizon | None], None]) -> None:
        """Find the index up to which the history can be dropped."""

        def look_up(tables: HistoryTables) -> Callable[[], None]:
            found = horizon(tables, before, rows_max)
            return lambda: done(found)

        self._ask(_Question(look_up, lambda _: done(None)))

    def _ask(self, question: _Question) -> None:
        with self._changed:
            if len(self._questions) < QUERIES_QUEUED_MAX:
                self._questions.append(question)
                self._changed.notify_all()
                return
        self._deliver(lambda: question.fail("too many questions are waiting"))

    def problem(self) -> str:
        """Return why the history cannot be written; empty when it can."""
        return self._problem

    def stop(self, timeout_ms: int) -> None:
        """Write what is queued, for at most `timeout_ms`; nothing is delivered afterwards."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        self._thread.join(timeout_ms / 1000)

    def _message_came(self, peer: NodeName, message: bytes) -> None:
        with self._changed:
            if len(self._messages) < MESSAGES_QUEUED_MAX:
                self._messages.append((peer, message))
                self._changed.notify_all()

    # -- the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        run_first()
        while self._turn():
            pass
        self._close()

    def _turn(self) -> bool:
        """Write and answer what is waiting; return whether there may be more."""
        with self._changed:
            self._changed.wait_for(self._is_anything_to_do, self._wait_s())
            is_last = self._is_stopping
            items = [] if self._is_pausing() and not is_last else self._first_items()
            is_caught_up = len(items) == len(self._items)
            answered = len(self._questions) if is_caught_up or self._problem else 0
            questions = [self._questions.popleft() for _ in range(answered)]
            served = len(self._messages)
        is_written = self._write(items)
        for question in questions:
            self._answer(question)
        if is_caught_up and not (is_last or self._is_pausing()):
            # A peer must not get the answer that this node lacks what is only not written yet.
            self._guarded(lambda tables: self._serve(tables, served))
        return not is_last or (is_written and bool(self._items))

    def _is_anything_to_do(self) -> bool:
        is_work = bool(self._messages or self._items) and not self._is_pausing()
        return bool(self._questions) or is_work or self._is_stopping

    def _wait_s(self) -> float | None:
        due_ms = self._retry_ms or self._due_ms
        return None if due_ms is None else max(0, due_ms - _now_ms()) / 1000

    def _is_pausing(self) -> bool:
        return _now_ms() < self._retry_ms

    def _first_items(self) -> list[Item]:
        return [self._items[position] for position in range(min(len(self._items), ITEMS_PER_TRANSACTION_MAX))]

    def _write(self, items: list[Item]) -> bool:
        """Write the first items of the queue and remove them from it; return whether that succeeded."""
        if not items and not self._problem:
            return True
        if self._is_pausing() and not self._is_stopping:
            return False
        self._retry_ms = 0
        if not self._guarded(lambda tables: tables.write(items)):
            return False
        with self._changed:
            for item in items:
                self._items.popleft()
                self._remember(item)
        if self._problem:
            self._note("")
        return True

    def _remember(self, item: Item) -> None:
        version = item.version or (self._newest.version if self._newest is not None else None)
        mark = item.after if isinstance(item, Recorded) else item.mark
        self._newest = _Newest(item.index, mark, version)

    def _serve(self, tables: HistoryTables, messages: int) -> None:
        """Handle the first messages, then do what is due."""
        now_ms = _now_ms()
        for _ in range(messages):
            self._take_message(tables, *self._messages.popleft(), now_ms)
        due = [self._repair.step(tables, now_ms), self._comparing.step(tables, now_ms)]
        self._due_ms = min((each for each in due if each is not None), default=None)

    def _take_message(self, tables: HistoryTables, peer: NodeName, data: bytes, now_ms: int) -> None:
        try:
            message = decode(data)
        except MessageRefusedError as error:
            self._note(f"a message of {peer} cannot be read: {error}")
            return
        match message:
            case AskPage() | AskVersion():
                self._repair.asked(tables, peer, message)
            case TellPage() | TellVersion():
                self._repair.take(tables, peer, message, now_ms)
            case AskSummary() | TellSummary():
                self._comparing.take(peer, message, now_ms)

    def _answer(self, question: _Question) -> None:
        answers: list[Callable[[], None]] = []
        if self._guarded(lambda tables: answers.append(question.read(tables))):
            self._tell(answers[0])
        else:
            problem = self._problem
            self._tell(lambda: question.fail(problem))

    # -- the file ---------------------------------------------------------------------------------------------------

    def _guarded(self, work: Callable[[HistoryTables], object]) -> bool:
        """Work on the tables; return whether that succeeded; otherwise prepare the next attempt."""
        try:
            work(self._open())
        except (sqlite3.OperationalError, OSError) as error:
            # No permission, no space, no directory, locked: the file itself is intact.
            self._fail_for_now(f"{self._path}: {error}")
        except sqlite3.DatabaseError as error:
            self._begin_again(error)
        else:
            return True
        return False

    def _open(self) -> HistoryTables:
        if self._tables is not None and self._is_gone():
            self._close()
        if self._tables is None:
            tables = HistoryTables(self._path)
            self._inode = self._path.stat().st_ino
            self._tables = tables
            if self._newest is not None:
                tables.write([Jumped(self._newest.index, self._newest.mark, self._newest.version)])
        return self._tables

    def _is_gone(self) -> bool:
        """Return whether the file was removed or replaced: nobody reads what is written to the old one."""
        try:
            return self._path.stat().st_ino != self._inode
        except OSError:
            return True

    def _close(self) -> None:
        if self._tables is not None:
            self._tables.close()
            self._tables = None

    def _fail_for_now(self, problem: str) -> None:
        self._close()
        self._retry_ms = _now_ms() + RETRY_MS
        self._note(problem)

    def _begin_again(self, error: sqlite3.DatabaseError) -> None:
        self._close()
        try:
            aside = set_aside(self._path)
        except OSError as refusal:
            self._fail_for_now(f"{self._path}: {error}; {refusal}")
            return
        self._retry_ms = _now_ms()
        self._note(f"{self._path}: {error}; it was kept as {aside} and a new history begun")

    def _note(self, problem: str) -> None:
        is_new = problem != self._problem
        self._problem = problem
        if is_new:
            self._tell(lambda: self._failed(problem))

    def _tell(self, call: Callable[[], None]) -> None:
        if not self._is_stopping:
            self._deliver(call)


def _nothing() -> None:
    return None


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


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
