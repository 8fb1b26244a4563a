"""The memory page that a daemon and its pacer share: where each word lies and who writes it.

Invariant: a word is 8 bytes, aligned, and has one writer, so that a reader in another process sees an old or a new
value and never half of one. Words that belong together are ordered by their writer, and each method says how. A page of
zeros is the safe beginning: no lease, nobody alive, withdrawals not known. Nothing here may wait or lock.

The same class lies over a mapped file and over a plain `bytearray`.
"""

import hashlib
from collections.abc import Collection, Iterable
from functools import lru_cache

from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import NO_LEASE, HeldLease, PageReading

PAGE_SIZE = 4096
WORD_SIZE = 8
MAGIC = int.from_bytes(b"haPage\x00\x01", "big")
"""The last byte is the layout's version."""

_MAGIC_WORD = 0
_LEASE_UNTIL = 1
"""Pacer."""
_LEASE_TOKEN = 2
"""Pacer: the incarnation that holds the lease."""
# Word 3 is free: an older pacer writes there when it last ticked, and nothing reads it.
_MAIN_STAMP = 4
"""Daemon, main loop."""
_RAFT_STAMP = 5
"""Daemon, Raft thread."""
_IS_EMPTY = 6
"""Daemon, main loop."""
_KNOWN_BY = 7
"""Daemon: the incarnation whose withdrawn set is complete."""
_FIRST_SLOT = 8
WITHDRAWN_SLOTS = 256
"""Daemon: keys of withdrawn nodes, 0 where free."""
_IS_CONDEMNED = _FIRST_SLOT + WITHDRAWN_SLOTS
"""Daemon, main loop."""
_IS_FOLLOWER = _IS_CONDEMNED + 1
"""Daemon, main loop; 0 in an older daemon's page, which may lead."""
_FIRST_LINK = _IS_FOLLOWER + 1
LINK_SLOTS = 64
"""Daemon, main loop: keys of the peers with which it has sessions, 0 after the last one."""
_PAGE_WORDS = PAGE_SIZE // WORD_SIZE
_FREE_SLOTS = bytes(WORD_SIZE * WITHDRAWN_SLOTS)
_NO_LINKS = (0,) * LINK_SLOTS


@lru_cache(maxsize=1024)
def node_key(node: NodeName) -> int:
    """Return the 64 bits that stand for a node in the page; never 0."""
    return int.from_bytes(hashlib.sha256(node.encode()).digest()[:WORD_SIZE], "big") or 1


@lru_cache(maxsize=64)
def token_word(token: str) -> int:
    """Return an incarnation's token as a word; the token of 16 zeros is refused, it would read as nobody."""
    word = int(token, 16)
    assert 0 < word < 2**64, token
    return word


def _token(word: int) -> str | None:
    return f"{word:016x}" if word else None


class PacerPage:
    """A page over any writable buffer of PAGE_SIZE bytes that is aligned to 8."""

    def __init__(self, buffer: bytearray | memoryview) -> None:
        view = memoryview(buffer)
        assert view.nbytes >= PAGE_SIZE
        self._words = view[:PAGE_SIZE].cast("B").cast("Q")
        begin = WORD_SIZE * _FIRST_SLOT
        self._slot_bytes = view.cast("B")[begin : begin + len(_FREE_SLOTS)]

    def release(self) -> None:
        """Let go of the buffer; the page must not be used afterwards."""
        self._words.release()
        self._slot_bytes.release()

    def is_formatted(self) -> bool:
        """Return whether the page has this layout."""
        return self._words[_MAGIC_WORD] == MAGIC

    # The pacer's words

    def format(self) -> None:
        """Make it the safe beginning. The magic comes last: a reader that sees it sees the rest as well."""
        for word in range(_PAGE_WORDS):
            self._words[word] = 0
        self._words[_MAGIC_WORD] = MAGIC

    def publish_lease(self, lease: HeldLease) -> None:
        """Publish until when an incarnation holds the lease.

        For another incarnation than before, the old lease is taken away before the new name is put on it.
        """
        token = token_word(lease.token)
        if self._words[_LEASE_TOKEN] != token:
            self._words[_LEASE_UNTIL] = NO_LEASE
            self._words[_LEASE_TOKEN] = token
        self._words[_LEASE_UNTIL] = lease.until

    def held_lease(self) -> HeldLease | None:
        """Return the lease last published and whose it is; None when there never was one."""
        token = _token(self._words[_LEASE_TOKEN])
        return None if token is None else HeldLease(token, Instant(self._words[_LEASE_UNTIL]))

    def read(self, nodes: Iterable[NodeName]) -> PageReading:
        """Return what the daemon says; of `nodes`, which are withdrawn. Call it after reading the clock.

        The set counts as known only when the page names the same daemon as its author before and after it is read: a
        daemon that starts to rebuild it first removes its token and then clears the set, and one that has rebuilt it
        first fills the set and then writes its token.
        """
        words = self._words
        known_by = words[_KNOWN_BY]
        withdrawn = self._taken_slots()
        if words[_KNOWN_BY] != known_by:
            known_by = 0
        return PageReading(
            known_by=_token(known_by),
            withdrawn=frozenset(node for node in nodes if node_key(node) in withdrawn) if withdrawn else frozenset(),
            main_stamped_at=Instant(words[_MAIN_STAMP]),
            raft_stamped_at=Instant(words[_RAFT_STAMP]),
            is_empty=words[_IS_EMPTY] != 0,
            is_condemned=words[_IS_CONDEMNED] != 0,
            is_follower=words[_IS_FOLLOWER] != 0,
            linked=self._linked(nodes),
        )

    # The daemon's words

    def begin_brain(self) -> None:
        """Revoke what an earlier daemon said of its withdrawn set, forget that set and end its signs of life.

        Nobody is echoed after the first word. The empty flag stays: a daemon that comes back has started nothing yet.
        """
        self._words[_KNOWN_BY] = 0
        self._words[_MAIN_STAMP] = 0
        self._words[_RAFT_STAMP] = 0
        self._words[_IS_FOLLOWER] = 0
        self.set_links(())
        for slot in range(_FIRST_SLOT, _FIRST_SLOT + WITHDRAWN_SLOTS):
            self._words[slot] = 0

    def lease_until(self, token: str) -> Instant:
        """Return until when this incarnation holds the lease; NO_LEASE when another one does."""
        if self._words[_LEASE_TOKEN] != token_word(token):
            return NO_LEASE
        return Instant(self._words[_LEASE_UNTIL])

    def stamp_main(self, now: Instant) -> None:
        """Say that the main loop is alive."""
        self._words[_MAIN_STAMP] = now

    def main_stamped_at(self) -> Instant:
        """Return when the main loop was last alive; 0 for not yet."""
        return Instant(self._words[_MAIN_STAMP])

    def stamp_raft(self, now: Instant) -> None:
        """Say that the Raft thread is alive."""
        self._words[_RAFT_STAMP] = now

    def set_empty(self, *, is_empty: bool) -> None:
        """Say whether this node is proven to run nothing that it manages."""
        self._words[_IS_EMPTY] = int(is_empty)

    def set_condemned(self, *, is_condemned: bool) -> None:
        """Say whether this node wants to end, by its watchdog."""
        self._words[_IS_CONDEMNED] = int(is_condemned)

    def set_follower(self, *, is_follower: bool) -> None:
        """Say whether this daemon judges nobody at present."""
        self._words[_IS_FOLLOWER] = int(is_follower)

    def set_links(self, nodes: Collection[NodeName]) -> None:
        """Say with which peers the daemon has sessions; no more than LINK_SLOTS of them are kept.

        A reader may see some of the old and some of the new, for once: this is evidence that is read again.
        """
        keys = [node_key(node) for node in sorted(nodes)][:LINK_SLOTS]
        for place, key in enumerate((*keys, *_NO_LINKS[len(keys) :])):
            self._words[_FIRST_LINK + place] = key

    def withdraw(self, node: NodeName) -> None:
        """Put a node among the withdrawn; harmless when it is there.

        Raises OverflowError when WITHDRAWN_SLOTS others are; then the withdrawn set is no longer known, so that nobody
        is echoed.
        """
        key = node_key(node)
        slots = self._slots()
        if key in slots:
            return
        if 0 not in slots:
            self.say_known(None)
            raise OverflowError(f"more than {WITHDRAWN_SLOTS} nodes withdrawn")
        self._words[_FIRST_SLOT + slots.index(0)] = key

    def reinstate(self, node: NodeName) -> None:
        """Take a node out of the withdrawn; harmless when it is not there."""
        slots = self._slots()
        key = node_key(node)
        if key in slots:
            self._words[_FIRST_SLOT + slots.index(key)] = 0

    def say_known(self, token: str | None) -> None:
        """Say for which incarnation of the daemon the withdrawn set is complete; None revokes it."""
        self._words[_KNOWN_BY] = 0 if token is None else token_word(token)

    def _linked(self, nodes: Iterable[NodeName]) -> frozenset[NodeName]:
        if not self._words[_FIRST_LINK]:
            return frozenset()
        keys = set(self._words[_FIRST_LINK : _FIRST_LINK + LINK_SLOTS].tolist())
        return frozenset(node for node in nodes if node_key(node) in keys)

    def _taken_slots(self) -> Collection[int]:
        # As bytes it is found out at once that there are none, as is nearly always so.
        return set(self._slots()) if self._slot_bytes != _FREE_SLOTS else ()

    def _slots(self) -> list[int]:
        return self._words[_FIRST_SLOT : _FIRST_SLOT + WITHDRAWN_SLOTS].tolist()
