"""Gets proposals into the log: each takes effect exactly once, however often messages are lost.

A proposal has a key. While one with a key is in flight, the same key is not proposed again; it is repeated under its
request id until this node sees it applied. The effect of an unanswered proposal is unknown, so none is given up as
lost.
"""

from collections.abc import Callable

from haclusterd.cib.changes import Applied
from haclusterd.cib.codec import encode_envelope
from haclusterd.cib.commands import Command, Envelope, IssueOrders
from haclusterd.cib.levels import behind, level_of
from haclusterd.machines.effects import Scope
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import NodeName, RequestId, Term
from haclusterd.model.instants import NEVER, Instant, WallTime, after
from haclusterd.model.records import dataclass
from haclusterd.ports.store import MAX_ENTRY_BYTES, Store

REPEAT_MS = 600
"""Time after which an unanswered proposal is repeated: a new leader needs about this long."""
FULL_PAUSE_MS = 50
IN_FLIGHT_MAX = 64
"""Maximum in flight: fewer than the request ids that the CIB remembers of a proposer."""


class EntryTooLargeError(Exception):
    """A command does not fit into one entry of the log."""


class NeedsUpgradeError(Exception):
    """Some members cannot read a command yet."""

    def __init__(self, level: int, behind: tuple[NodeName, ...]) -> None:
        super().__init__(f"it needs feature level {level}; {', '.join(behind)} read less")
        self.level = level
        self.behind = behind


def require_level(cib: Cib, command: Command) -> None:
    """Raise NeedsUpgradeError if a member of the cluster cannot read a command."""
    level = level_of(command)
    if level > cib.feature_level:
        raise NeedsUpgradeError(level, behind(cib, level))


Done = Callable[[Applied], None]


@dataclass(slots=True)
class _Pending:
    key: str
    request: RequestId
    envelope: Envelope
    entry: bytes
    term: Term | None
    """The only term in which it may be appended; None: any."""
    done: Done | None
    send_at: Instant
    scope: Scope
    is_sent: bool = False


class Proposer:
    """This node's proposals; see the module."""

    def __init__(self, node: NodeName, session: str, store: Store) -> None:
        """`session` identifies this process."""
        self._node = node
        self._session = session
        self._store = store
        self._counter = 0
        self._pending: dict[str, _Pending] = {}
        self._by_request: dict[RequestId, _Pending] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def propose(
        self,
        key: str,
        command: Command,
        now: Instant,
        wall: WallTime,
        done: Done | None = None,
        *,
        scope: Scope = Scope.PROCESS,
    ) -> bool:
        """Propose a command, unless its key is in flight; return whether it was new.

        `done` is called when it is applied. Raises EntryTooLargeError, and proposes nothing, when no entry can hold the
        command.
        """
        if key in self._pending:
            return False
        self._counter += 1
        request = RequestId(f"{self._node}:{self._session}:{self._counter}")
        envelope = Envelope(request, self._node, wall, command)
        entry = encode_envelope(envelope)
        if len(entry) > MAX_ENTRY_BYTES:
            raise EntryTooLargeError(f"{type(command).__name__} of {len(entry)} bytes; the limit is {MAX_ENTRY_BYTES}")
        pending = _Pending(key, request, envelope, entry, _only_term(command), done, now, scope)
        self._pending[key] = pending
        self._by_request[request] = pending
        self.step(now)
        return True

    def request_of(self, key: str) -> RequestId:
        """Return the request id under which a key is in flight."""
        return self._pending[key].request

    def step(self, now: Instant) -> None:
        """Send what is due."""
        sent = sum(1 for pending in self._pending.values() if pending.is_sent)
        for pending in self._pending.values():
            if pending.send_at > now:
                continue
            must_wait = not pending.is_sent and sent >= IN_FLIGHT_MAX
            if must_wait or not self._store.propose(pending.entry, pending.term):
                pending.send_at = after(now, FULL_PAUSE_MS)
                continue
            sent += not pending.is_sent
            pending.is_sent = True
            pending.send_at = after(now, REPEAT_MS)

    def leader_changed(self, now: Instant) -> None:
        """Repeat everything now: what was in flight to the old leader may be lost."""
        for pending in self._pending.values():
            pending.send_at = now
        self.step(now)

    def applied(self, applied: Applied) -> str | None:
        """Note an applied entry; return its key if it is one of these proposals, else None."""
        if applied.envelope is None:
            return None
        pending = self._by_request.pop(applied.envelope.request, None)
        if pending is None:
            return None
        del self._pending[pending.key]
        # There is room for one more: it is sent without its pause.
        waiting = next((each for each in self._pending.values() if not each.is_sent and each.send_at), None)
        if waiting is not None:
            waiting.send_at = Instant(0)
        if pending.done is not None:
            pending.done(applied)
        return pending.key

    def forget(self, key: str) -> None:
        """Stop repeating a proposal that is no longer needed. It may still be applied."""
        pending = self._pending.pop(key, None)
        if pending is not None:
            del self._by_request[pending.request]

    def forget_scope(self, scope: Scope) -> None:
        """Stop repeating the proposals of a scope that has ended. They may still be applied."""
        for key in [key for key, pending in self._pending.items() if pending.scope is scope]:
            self.forget(key)

    def deadline(self) -> Instant:
        """Return when `step` must be called next."""
        return min((pending.send_at for pending in self._pending.values()), default=NEVER)


def _only_term(command: Command) -> Term | None:
    """Return the only term in whose log a command may be; None: any.

    Orders may rest on results that precede them in their leader's log and are not committed yet.
    """
    return command.dc_term if isinstance(command, IssueOrders) else None
