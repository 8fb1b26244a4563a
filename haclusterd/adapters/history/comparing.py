"""Reads this node's whole history in slices, for an administrator who compares nodes or for a peer that asks.

Damage that it finds on the way is marked, so that the parts are fetched again. It runs on the history's thread.
"""

from collections import deque
from collections.abc import Callable, Generator
from typing import Final

from haclusterd.adapters.history.reading import summarise
from haclusterd.adapters.history.tables import HistoryTables
from haclusterd.model.ids import NodeName
from haclusterd.model.records import dataclass, field
from haclusterd.model.remembered import HistorySummary
from haclusterd.ports.history import Comparison
from haclusterd.ports.peer_messages import PeerMessages
from haclusterd.protocol.history_messages import AskSummary, TellSummary, encode

CATCH_UP_MS: Final = 2_000
"""How long a node waits until its history reaches the index that it is asked about."""
ANSWER_MS: Final = 10_000
"""How long all peers together may take."""
JOBS_MAX: Final = 16


@dataclass(slots=True, eq=False)
class _Reading:
    """One pass through the history, and the callback for its result."""

    through: int
    begin_by_ms: int
    done: Callable[[HistorySummary], None]
    work: Generator[None, None, HistorySummary] | None = None


@dataclass(slots=True, eq=False)
class _Asking:
    """An administrator's comparison under way."""

    peers: tuple[NodeName, ...]
    done: Callable[[Comparison], None]
    until_ms: int
    own: HistorySummary | None = None
    answers: dict[NodeName, HistorySummary] = field(default_factory=dict)


class Comparing:
    """The passes of one node; see the module."""

    def __init__(self, node: NodeName, peer_messages: PeerMessages, tell: Callable[[Callable[[], None]], None]) -> None:
        self._node = node
        self._peer_messages = peer_messages
        self._tell = tell
        self._serial = 0
        self._readings: deque[_Reading] = deque()
        self._asking: dict[int, _Asking] = {}

    def begin(
        self, tables: HistoryTables, peers: tuple[NodeName, ...], done: Callable[[Comparison], None], now_ms: int
    ) -> None:
        """Compare this node with its peers, up to the newest index recorded here now."""
        self._serial += 1
        serial, through = self._serial, tables.progress().last
        asking = _Asking(peers, done, now_ms + ANSWER_MS)
        self._asking[serial] = asking
        for peer in peers:
            self._peer_messages.send(peer, encode(AskSummary(serial, through)))
        self._readings.append(_Reading(through, now_ms, lambda summary: setattr(asking, "own", summary)))

    def failed(self, peers: tuple[NodeName, ...], problem: str) -> Comparison:
        """Return the result when this node's own history cannot be read."""
        return Comparison((HistorySummary(self._node, problem=problem),), peers)

    def take(
        self, peer: NodeName, message: AskSummary | TellSummary, now_ms: int
    ) -> None:
        """Take a peer's question or answer."""
        if isinstance(message, TellSummary):
            asking = self._asking.get(message.serial)
            if asking is not None and peer in asking.peers and message.summary.node == peer:
                asking.answers[peer] = message.summary
        elif len(self._readings) < JOBS_MAX:
            serial = message.serial

            def answer(summary: HistorySummary) -> None:
                self._peer_messages.send(peer, encode(TellSummary(serial, summary)))

            self._readings.append(_Reading(message.through, now_ms + CATCH_UP_MS, answer))

    def step(self, tables: HistoryTables, now_ms: int) -> int | None:
        """Read a slice; return when to call again, None when there is nothing to do."""
        self._finish_asking(now_ms)
        if not self._readings:
            return min((asking.until_ms for asking in self._asking.values()), default=None)
        reading = self._readings.popleft()
        if reading.work is None and tables.progress().last < reading.through and now_ms < reading.begin_by_ms:
            self._readings.append(reading)
            return now_ms + 50
        if reading.work is None:
            reading.work = summarise(tables, self._node, reading.through)
        try:
            next(reading.work)
            self._readings.appendleft(reading)
        except StopIteration as finished:
            summary: HistorySummary = finished.value
            reading.done(summary)
            if summary.damaged:
                tables.mark_damaged(summary.damaged)
            self._finish_asking(now_ms)
        return now_ms

    def _finish_asking(self, now_ms: int) -> None:
        for serial, asking in tuple(self._asking.items()):
            is_whole = len(asking.answers) == len(asking.peers)
            if asking.own is None or not (is_whole or now_ms >= asking.until_ms):
                continue
            del self._asking[serial]
            silent = tuple(peer for peer in asking.peers if peer not in asking.answers)
            found = Comparison((asking.own, *(asking.answers[peer] for peer in sorted(asking.answers))), silent)
            self._tell(_delivering(asking.done, found))


def _delivering(done: Callable[[Comparison], None], found: Comparison) -> Callable[[], None]:
    return lambda: done(found)
