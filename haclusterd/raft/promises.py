"""What other members showed that they hold durably, to recognise a data directory that was put back to an older copy.

Raft relies on disks that keep what they synced. A directory restored from a copy, a virtual machine put back to a
snapshot and a disk that reports a false sync forget votes and acknowledged entries: such a node could vote twice in a
term, or elect a leader that lacks a committed entry. Its peers can tell. Each remembers of each other member the newest
term that it showed, and the newest committed entry that it held; terms and committed entries are never taken back, so a
healthy node is never behind what is remembered of it. That is the first message of every session. A node that is behind
stops for good, and a node that has just started neither votes nor campaigns before every linked voter has said what it
remembers, or the longest election has passed (docs/design/0002-store.md, "A directory that was put back").

Invariant: what is remembered of a member only grows. It must never include what is not durable there, or could be
truncated.
"""

from collections.abc import Iterable
from typing import Any

from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant
from haclusterd.raft.frames import Message
from haclusterd.raft.journal import Journal

_SHOWS_OWN_TERM = frozenset(
    {"request_vote", "response_vote", "response_pre_vote", "append_entries", "next_node_idx", "install_snapshot",
     "snapshot_received", "timeout_now"}
)  # fmt: skip
"""Messages whose term is the sender's own, and durable there."""


class Promises:
    """What one node remembers of the others, in its journal, and whether they have said what they remember of it."""

    def __init__(self, journal: Journal, voters: Iterable[NodeName], *, until: Instant) -> None:
        """`voters` are the other voters; `until` is when this node votes even without having heard them."""
        self._journal = journal
        self._silent = set(voters)
        self._until = until

    def seen(self, peer: NodeName, message: Message) -> None:
        """Remember what a message of a peer shows."""
        if message["type"] in _SHOWS_OWN_TERM:
            # A leader sends no commit index beyond what it has synced.
            self._journal.note_promise(peer, message["term"], message.get("commit_index", 0))

    def acknowledged(self, peer: NodeName, index: int) -> None:
        """Remember, as leader, a committed entry that a peer has acknowledged."""
        self._journal.note_promise(peer, 0, index)

    def recall(self, peer: NodeName, led: tuple[int, int] = (0, 0)) -> dict[str, Any]:
        """Return the first message of a session with a peer.

        `led` is the term that this node leads, and the newest entry that the peer acknowledged in it, committed or not:
        while the peer is in that term, no other leader can truncate it.
        """
        term, index = self._journal.promises.get(peer, (0, 0))
        return {"type": "recall", "term": term, "index": index, "led_term": led[0], "led_index": led[1]}

    def heard(self, peer: NodeName, message: Message) -> str:
        """Take what a peer remembers of this node; return why this node is behind it, empty when it is not."""
        self._silent.discard(peer)
        term, index = self._journal.getCurrentTerm(), self._journal.synced_index
        newest = max(message["index"], message["led_index"] if message["led_term"] == term else 0)
        if message["term"] <= term and newest <= index:
            return ""
        return (
            f"the data of this node is older than what it promised: {peer} remembers it in term {message['term']} with "
            f"entry {newest}, it is in term {term} with entry {index}. A copy of the directory was put back, or the "
            "disk lost what it had reported as synced"
        )

    def may_vote(self, now: Instant) -> bool:
        """Return whether every peer that could object to this node has had the time to do so."""
        return not self._silent or now >= self._until
