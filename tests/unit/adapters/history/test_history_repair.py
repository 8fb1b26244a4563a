"""Histories that write to each other become whole again, and believe nothing that the chain does not prove."""

import contextlib
import queue
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from haclusterd.adapters.history import sqlite as history_sqlite
from haclusterd.adapters.history.sqlite import SqliteHistory
from haclusterd.model.cluster import HistoryMark
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.model.remembered import Comparison, HistoryQuery
from haclusterd.ports.history import HistoryAnswer, NewVersion, VersionAnswer, VersionQuery
from haclusterd.protocol.history_messages import (
    AskPage,
    KeptEntry,
    MessageRefusedError,
    Page,
    TellPage,
    TellVersion,
    decode,
    encode,
)
from tests.remembered_logs import WrittenLog, row

N1, N2, N3 = NAMES = tuple(NodeName(name) for name in ("n1", "n2", "n3"))


class Hub:
    """Carries messages between histories at once; a message may be changed on its way, as a lying peer would."""

    def __init__(self) -> None:
        self.boxes: dict[NodeName, Callable[[NodeName, bytes], None]] = {}
        self.forge: Callable[[NodeName, bytes], bytes] = lambda _, message: message

    def peer_messages(self, node: NodeName) -> "Box":
        return Box(self, node)


class Box:
    def __init__(self, hub: Hub, node: NodeName) -> None:
        self._hub = hub
        self._node = node

    def open(self, kind: bytes, received: Callable[[NodeName, bytes], None]) -> None:
        self._hub.boxes[self._node] = received

    def send(self, to: NodeName, message: bytes) -> None:
        # Called on the threads of the histories, while the test stops some of them.
        received = self._hub.boxes.get(to)
        if received is not None:
            received(self._node, self._hub.forge(self._node, message))

    def reachable(self) -> tuple[NodeName, ...]:
        return tuple(sorted(set(self._hub.boxes) - {self._node}))


class Bench:
    """Three nodes that see the same log."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = WrittenLog()
        self.hub = Hub()
        self.calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.nodes: dict[NodeName, SqliteHistory] = {}

    def path(self, name: NodeName) -> Path:
        return self.directory / f"{name}.sqlite"

    def start(self, *names: NodeName) -> None:
        for name in names:
            peer_messages = self.hub.peer_messages(name)
            history = SqliteHistory(self.path(name), self.calls.put, node=name, peer_messages=peer_messages)
            history.start(lambda _: None)
            self.nodes[name] = history

    def stop(self, *names: NodeName) -> None:
        for name in names or tuple(self.nodes):
            self.nodes.pop(name).stop(20_000)
            self.hub.boxes.pop(name, None)

    def tell(self, first: int, last: int, *names: NodeName) -> None:
        for entry in self.log.entries:
            if first <= entry.index <= last:
                for name in names:
                    self.nodes[name].record(entry.index, entry.rows, entry.before, entry.after, entry.version)

    def until(self, condition: Callable[[], bool], silence_s_max: float = 20) -> None:
        deadline = time.monotonic() + silence_s_max
        while not condition():
            assert time.monotonic() < deadline
            with contextlib.suppress(queue.Empty):
                self.calls.get(timeout=0.01)()

    def rows(self, name: NodeName) -> HistoryAnswer:
        found: list[HistoryAnswer] = []
        self.nodes[name].query(HistoryQuery(limit=100_000), found.append)
        self.until(lambda: bool(found))
        return found[0]

    def is_whole(self, name: NodeName) -> bool:
        return list(self.rows(name).rows) == self.log.rows()

    def compare(self, name: NodeName) -> Comparison:
        found: list[Comparison] = []
        self.nodes[name].compare(tuple(each for each in NAMES if each != name), found.append)
        self.until(lambda: bool(found))
        return found[0]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.stop()


def test_what_a_snapshot_skipped_comes_from_a_peer(bench: Bench) -> None:
    bench.log.fill(1, 3000)
    bench.start(*NAMES)
    bench.tell(1, 3000, N1, N2)
    bench.tell(1, 500, N3)
    bench.nodes[N3].restored(2900, bench.log.mark_at(2900))
    bench.tell(2901, 3000, N3)
    bench.until(lambda: all(bench.is_whole(name) for name in NAMES))
    summaries = bench.compare(N1).summaries
    assert [each.node for each in summaries] == [N1, N2, N3]
    assert len({(each.blocks, each.rows, each.gaps) for each in summaries}) == 1


def test_a_peer_that_is_behind_with_its_own_history_is_waited_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has not written yet is not what it does not have."""
    monkeypatch.setattr(history_sqlite, "ITEMS_PER_TRANSACTION_MAX", 2)
    bench.log.fill(1, 1000)
    bench.start(N1, N3)
    bench.tell(1, 1000, N1)
    bench.nodes[N3].restored(1000, bench.log.mark_at(1000))
    bench.until(lambda: bench.is_whole(N3))


def test_a_peer_that_cannot_write_for_a_while_answers_later(bench: Bench) -> None:
    bench.log.fill(1, 100)
    bench.start(N1)
    bench.tell(1, 10, N1)
    assert len(bench.rows(N1).rows) > 0
    with contextlib.closing(sqlite3.connect(bench.path(N1), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        bench.tell(11, 100, N1)
        bench.until(lambda: "locked" in bench.nodes[N1].problem())
        asked: list[NodeName] = []
        bench.hub.forge = lambda node, message: asked.append(node) or message
        bench.start(N3)
        bench.nodes[N3].restored(100, bench.log.mark_at(100))
        bench.until(lambda: N3 in asked)
    bench.until(lambda: bench.is_whole(N3))


def test_who_did_not_answer_is_asked_again_soon(bench: Bench) -> None:
    bench.log.fill(1, 100)
    bench.start(N1)
    bench.tell(1, 100, N1)
    lost: list[NodeName] = []
    box = bench.hub.boxes[N1]
    bench.hub.boxes[N1] = lambda node, message: box(node, message) if lost else lost.append(node)
    bench.start(N3)
    bench.nodes[N3].restored(100, bench.log.mark_at(100))
    bench.until(lambda: bench.is_whole(N3))


def test_a_file_that_is_gone_comes_back_from_a_peer(bench: Bench) -> None:
    bench.log.fill(1, 200)
    bench.start(*NAMES)
    bench.tell(1, 200, *NAMES)
    assert bench.is_whole(N3)
    bench.stop(N3)
    bench.path(N3).write_bytes(b"no database" * 1000)
    bench.start(N3)
    bench.nodes[N3].restored(180, bench.log.mark_at(180))
    bench.tell(181, 200, N3)
    bench.until(lambda: bench.is_whole(N3))


def forged_row(message: TellPage) -> TellPage:
    assert message.page is not None
    first, *others = message.page.entries
    rows = (replace(first.rows[0], kind="never-happened"), *first.rows[1:])
    entries = (KeptEntry(first.index, first.before, rows), *others)
    return TellPage(message.serial, replace(message.page, entries=entries))


def left_out_row(message: TellPage) -> TellPage:
    assert message.page is not None
    entries = message.page.entries
    return TellPage(message.serial, replace(message.page, entries=(*entries[:1], *entries[2:])))


def nothing_happened(message: TellPage) -> TellPage:
    assert message.page is not None
    return TellPage(message.serial, Page(message.page.first, message.page.last, ()))


def without_its_beginning(message: TellPage) -> TellPage:
    assert message.page is not None
    return TellPage(message.serial, replace(message.page, entries=message.page.entries[5:]))


@pytest.mark.parametrize("lie", [forged_row, left_out_row, nothing_happened, without_its_beginning])
def test_a_lying_peer_is_not_believed_and_an_honest_one_is(bench: Bench, lie: Callable[[TellPage], TellPage]) -> None:
    lies: list[TellPage] = []

    def forge(sender: NodeName, data: bytes) -> bytes:
        message = decode(data)
        if sender == N1 and isinstance(message, TellPage):
            lies.append(message)
            return encode(lie(message))
        return data

    bench.hub.forge = forge
    bench.log.fill(1, 50)
    bench.start(*NAMES)
    bench.tell(1, 50, N1, N2)
    bench.nodes[N3].restored(50, bench.log.mark)
    bench.until(lambda: bench.is_whole(N3))
    assert lies, "the liar was asked"


def test_what_no_peer_has_stays_a_visible_gap(bench: Bench) -> None:
    bench.log.fill(1, 50)
    bench.start(N1, N3)
    for name in (N1, N3):
        bench.tell(1, 10, name)
        bench.nodes[name].restored(20, bench.log.mark_at(20))
        bench.tell(21, 50, name)
    assert "entries 11 to 20 are not in this node's history" in [each.text for each in bench.rows(N3).rows]
    first, second, *_ = bench.compare(N3).summaries
    assert second.gaps == first.gaps != ()


def test_versions_that_a_snapshot_skipped_come_from_a_peer(bench: Bench) -> None:
    contents = {number: random.Random(number).randbytes(250_000) for number in range(1, 5)}
    for number, what in contents.items():
        version = NewVersion(number, WallTime(number), "root@n1", f"why {number}", lambda what=what: what)
        bench.log.add(number, row(number), version=version)
    bench.start(N1, N2)
    bench.tell(1, 4, N1)
    bench.nodes[N2].restored(4, bench.log.mark, bench.log.entries[3].version)
    answers: list[VersionAnswer] = []

    def know() -> bool:
        bench.nodes[N2].versions(VersionQuery((1, 2, 3, 4)), answers.append)
        bench.until(lambda: bool(answers))
        return answers.pop().contents == contents

    bench.until(know)


@pytest.mark.parametrize("damage", [
    "UPDATE event SET detail = 'x' WHERE log_index = 20",
    "UPDATE event SET text = 'x' WHERE log_index = 20",
    "DELETE FROM event WHERE log_index = 20",
    "DELETE FROM entry WHERE log_index IN (20, 21)",
    "UPDATE entry SET before = x'ff' WHERE log_index = 20",
])  # fmt: skip
def test_a_check_finds_what_the_disk_has_changed_and_it_is_repaired(bench: Bench, damage: str) -> None:
    bench.log.fill(1, 50)
    bench.start(*NAMES)
    bench.tell(1, 50, *NAMES)
    assert bench.is_whole(N3)
    with sqlite3.connect(bench.path(N3)) as other:
        other.execute(damage)
    other.close()
    assert bench.compare(N1).summaries[2].damaged != ()
    bench.until(lambda: bench.is_whole(N3))
    assert bench.compare(N1).summaries[2].damaged == ()


def test_a_peer_that_is_away_is_named(bench: Bench) -> None:
    bench.log.fill(1, 5)
    bench.start(N1, N2)
    bench.tell(1, 5, N1, N2)
    assert bench.compare(N1).silent == (N3,)


@pytest.mark.parametrize("data", [
    b"", b"\x01", b"\x02abc", b"\x01abc", encode(AskPage(1, 2, 3))[:-1], encode(AskPage(1, 2, 3)) + b"x",
    encode(TellVersion(1, None)).replace(b"\x01", b"\x00", 1),
])  # fmt: skip
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    with pytest.raises(MessageRefusedError):
        decode(data)


def test_a_bomb_is_not_unpacked() -> None:
    import zlib

    with pytest.raises(MessageRefusedError, match="too large"):
        decode(b"\x01" + zlib.compress(b"[" * 100_000_000, 9))


def test_marks_of_the_cib_are_what_is_believed(bench: Bench) -> None:
    bench.start(N1)
    bench.nodes[N1].restored(7, HistoryMark())
    assert bench.rows(N1).rows == (), "nothing had happened before: no gap"
