"""Fetches missing parts of this node's history from peers, and sends peers what they ask for.

It asks one peer for one thing at a time, newest first: pages of entries, which the chain proves, and versions of the
configuration, which their digests prove. What no peer can send now is tried again later. It runs on the history's
thread; nothing waits for it.
"""

from typing import Final

from haclusterd.adapters.history.reading import page
from haclusterd.adapters.history.tables import Gap, HistoryTables
from haclusterd.adapters.history.version_table import (
    CONTENT_BYTES_MAX,
    missing_versions,
    put_version,
    unpacked_content,
    version_with_content,
)
from haclusterd.model.ids import NodeName
from haclusterd.model.records import dataclass
from haclusterd.model.remembered import KeptVersion
from haclusterd.ports.peer_messages import PeerMessages
from haclusterd.protocol.history_messages import (
    PART_BYTES,
    AskPage,
    AskVersion,
    HistoryMessage,
    TellPage,
    TellVersion,
    encode,
)

ANSWER_MS: Final = 3_000
"""How long a peer may take to answer before the next is asked."""
BETWEEN_PAGES_MS: Final = 10
AGAIN_MS: Final = 30_000
"""Pause before a part that no peer has is asked for again."""
AGAIN_SOON_MS: Final = 3_000
"""Pause before a part is asked for again that a peer without an answer may have."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A gap, identified by its end, or a version."""

    gap: Gap | None = None
    version: int = 0


class HistoryRepair:
    """One node's repair; see the module. `now_ms` is any monotonic clock."""

    def __init__(self, peer_messages: PeerMessages) -> None:
        self._peer_messages = peer_messages
        self._serial = 0
        self._wanted: _Wanted | None = None
        self._asked: NodeName | None = None
        self._tried: set[NodeName] = set()
        self._has_peer_timed_out = False
        """Whether a peer that was asked did not answer in time."""
        self._due_ms = 0
        self._unavailable_until_ms: dict[tuple[int, int], int] = {}
        self._peers: tuple[NodeName, ...] = ()
        self._parts = b""

    # -- asking -----------------------------------------------------------------------------------------------------

    def step(self, tables: HistoryTables, now_ms: int) -> int | None:
        """Do what is due; return when to call again, None when nothing is missing."""
        peers = self._peer_messages.reachable()
        if peers != self._peers:
            self._peers = peers
            self._unavailable_until_ms.clear()
        if self._asked is not None:
            if now_ms < self._due_ms and self._asked in peers:
                return self._due_ms
            self._asked, self._has_peer_timed_out = None, True
        if now_ms < self._due_ms:
            return self._due_ms
        return self._ask_next(tables, now_ms)

    def _ask_next(self, tables: HistoryTables, now_ms: int) -> int | None:
        wanted = self._choose(tables, now_ms)
        if wanted is None:
            return min(self._unavailable_until_ms.values(), default=None)
        if wanted != self._wanted:
            self._wanted, self._tried, self._parts = wanted, set(), b""
            self._has_peer_timed_out = False
        peer = next((each for each in self._peers if each not in self._tried), None)
        if peer is None:
            pause_ms = AGAIN_SOON_MS if self._has_peer_timed_out else AGAIN_MS
            self._unavailable_until_ms[_key(wanted)] = now_ms + pause_ms
            self._wanted = None
            return now_ms
        self._ask(peer, wanted, now_ms)
        return self._due_ms

    def _choose(self, tables: HistoryTables, now_ms: int) -> _Wanted | None:
        self._unavailable_until_ms = {key: until for key, until in self._unavailable_until_ms.items() if until > now_ms}
        wanted = [_Wanted(gap) for gap in reversed(tables.gaps()) if gap.digest is not None]
        wanted += [_Wanted(version=number) for number in missing_versions(tables.database)]
        return next((each for each in wanted if _key(each) not in self._unavailable_until_ms), None)

    def _ask(self, peer: NodeName, wanted: _Wanted, now_ms: int) -> None:
        self._serial += 1
        message: HistoryMessage
        if wanted.gap is not None:
            message = AskPage(self._serial, wanted.gap.first, wanted.gap.last)
        else:
            message = AskVersion(self._serial, wanted.version, len(self._parts))
        self._asked, self._due_ms = peer, now_ms + ANSWER_MS
        self._tried.add(peer)
        self._peer_messages.send(peer, encode(message))

    # -- answers ----------------------------------------------------------------------------------------------------

    def take(self, tables: HistoryTables, peer: NodeName, message: TellPage | TellVersion, now_ms: int) -> None:
        """Take an answer; one that is no longer awaited is dropped."""
        wanted = self._wanted
        if wanted is None or peer != self._asked or message.serial != self._serial:
            return
        self._asked, self._due_ms = None, now_ms
        if isinstance(message, TellPage) and wanted.gap is not None:
            is_welcome = message.page is not None and tables.fill(wanted.gap, message.page)
        else:
            is_welcome = isinstance(message, TellVersion) and self._take_part(tables, message, wanted.version)
        if is_welcome:
            self._tried.discard(peer)
            self._due_ms = now_ms + BETWEEN_PAGES_MS

    def _take_part(self, tables: HistoryTables, message: TellVersion, number: int) -> bool:
        """Take a part of a version; return whether it was useful."""
        kept = message.version
        if kept is None or kept.number != number or message.offset != len(self._parts) or not message.data:
            self._parts = b""
            return False
        self._parts += message.data
        if len(self._parts) < min(message.total, CONTENT_BYTES_MAX):
            return True
        content, self._parts = self._parts, b""
        return _keep(tables, kept, content)

    # -- sending ----------------------------------------------------------------------------------------------------

    def asked(self, tables: HistoryTables, peer: NodeName, message: AskPage | AskVersion) -> None:
        """Answer a peer with what is known here."""
        answer: HistoryMessage
        if isinstance(message, AskPage):
            answer = TellPage(message.serial, page(tables, message.first, message.last))
        else:
            answer = _part(tables, message)
        self._peer_messages.send(peer, encode(answer))


def _key(wanted: _Wanted) -> tuple[int, int]:
    return (wanted.gap.last if wanted.gap is not None else 0, wanted.version)


def _part(tables: HistoryTables, message: AskVersion) -> TellVersion:
    found = version_with_content(tables.database, message.number)
    if found is None:
        return TellVersion(message.serial, None)
    kept, content = found
    data = content[message.offset : message.offset + PART_BYTES]
    return TellVersion(message.serial, kept, len(content), message.offset, data)


def _keep(tables: HistoryTables, kept: KeptVersion, content: bytes) -> bool:
    if unpacked_content(kept, content) is None:
        return False
    put_version(tables.database, kept, content, is_newer=False)
    return True
