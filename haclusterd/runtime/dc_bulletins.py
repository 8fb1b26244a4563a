"""The DC sends its peers what it knows beyond the CIB, and they show it in `crm status`.

Invariant: no decision depends on it. A message may be lost, so each is repeated, and one that is not repeated is no
longer shown; a message of another node than the present leader, or of another term, is never shown.
"""

from collections.abc import Iterable

from haclusterd.machines.controller import ControllerMachine
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import NodeName, Term
from haclusterd.model.instants import NEVER, Instant, after, elapsed_ms
from haclusterd.ports.clock import Clock
from haclusterd.ports.peer_messages import PeerMessages
from haclusterd.ports.store import LeadershipChanged
from haclusterd.protocol.dc_bulletin import KIND, SINCE_LEVEL, BulletinRefusedError, DcBulletin, decode, encode

SPACING_MS = 250
"""Pause between two checks for news: a transition in progress changes with every action."""
REPEAT_MS = 5_000
"""Time between two identical messages: a lost one is made up for this late."""
SHOWN_MS = 3 * REPEAT_MS
"""How long an unrepeated bulletin is shown, and how long a new DC may be silent before that is reported."""


class DcBulletins:
    """One node's part: it sends while it is DC, and listens while it is not."""

    def __init__(self, node: NodeName, clock: Clock, peer_messages: PeerMessages) -> None:
        self._node = node
        self._clock = clock
        self._peer_messages = peer_messages
        self._sent: dict[NodeName, tuple[DcBulletin, Instant]] = {}
        """The newest message sent to each peer since it became reachable."""
        self._looked_at: Instant | None = None
        """When it was last checked whether the peers have the newest message."""
        self._due: Instant = NEVER
        self._came: dict[NodeName, tuple[bytes, Instant]] = {}
        """The newest message of each peer; written on a thread of the adapter."""
        self._read: tuple[bytes, DcBulletin | None] = (b"", None)
        self._awaited: tuple[NodeName | None, Term] = (None, Term(0))
        """Whose bulletins are to be shown: the leader and its term."""
        self._awaited_since: Instant = clock.now()

    def start(self) -> None:
        """Start listening."""
        self._peer_messages.open(KIND, self._message_came)

    def _message_came(self, peer: NodeName, message: bytes) -> None:
        self._came[peer] = (message, self._clock.now())

    def step(self, cib: Cib, leadership: LeadershipChanged, controller: ControllerMachine) -> None:
        """Note who leads; on the DC, send what is due."""
        now = self._clock.now()
        awaited = (leadership.leader, leadership.term)
        if self._awaited != awaited:
            self._awaited, self._awaited_since = awaited, now
        self._due = NEVER
        if not controller.is_dc:
            self._sent, self._looked_at = {}, None
            return
        if self._looked_at is not None and elapsed_ms(self._looked_at, now) < SPACING_MS:
            self._due = after(self._looked_at, SPACING_MS)
            return
        self._looked_at = now
        own = bulletin_of(controller, leadership.term)
        readers = self._readers(cib)
        self._sent = {peer: sent for peer, sent in self._sent.items() if peer in readers}
        written = b""
        for peer in readers:
            before, at = self._sent.get(peer, (None, now))
            due = after(at, REPEAT_MS) if before == own else now
            if due <= now:
                written = written or encode(own)
                self._peer_messages.send(peer, written)
                self._sent[peer] = (own, now)
                due = after(now, REPEAT_MS)
            self._due = min(self._due, due)

    def _readers(self, cib: Cib) -> Iterable[NodeName]:
        nodes = cib.status.nodes
        return [peer for peer in self._peer_messages.reachable()
                if peer in nodes and nodes[peer].feature_level >= SINCE_LEVEL]  # fmt: skip

    def deadline(self) -> Instant:
        """Return when to call `step` again if nothing happens before."""
        return self._due

    def shown(self) -> DcBulletin | None:
        """Return the newest bulletin of the present DC; None: there is no recent one, or this node is the DC."""
        leader, term = self._awaited
        message, at = self._came.get(leader, (b"", Instant(0))) if leader is not None else (b"", Instant(0))
        if not message or leader == self._node or elapsed_ms(at, self._clock.now()) >= SHOWN_MS:
            return None
        if self._read[0] != message:
            self._read = (message, _bulletin(message))
        bulletin = self._read[1]
        return bulletin if bulletin is not None and bulletin.term == term else None

    def silent(self) -> NodeName | None:
        """Return the leader, if it has led for some time without any bulletin from it; else None."""
        leader, _ = self._awaited
        if leader in (None, self._node) or elapsed_ms(self._awaited_since, self._clock.now()) < SHOWN_MS:
            return None
        return leader if self.shown() is None else None


def bulletin_of(controller: ControllerMachine, term: Term) -> DcBulletin:
    """Return what the controller of a DC knows beyond the CIB."""
    return DcBulletin(term, controller.warnings, controller.failure, controller.transition_progress())


def _bulletin(message: bytes) -> DcBulletin | None:
    try:
        return decode(message)
    except BulletinRefusedError:
        return None
