"""A node on its way out (SIGTERM): for how long it hopes for a leader, and for how long others may move its resources.

Invariant: the way out is bounded (safety.md §4). Without a leader for a lease, or after `shutdown-escalation`, the node
stops by itself what it still runs.
"""

from haclusterd.model.instants import NEVER, Instant, after


class Draining:
    """The state of one daemon's leaving."""

    def __init__(self, leaderless_until: Instant) -> None:
        self._leaderless_until = leaderless_until
        self._began_at: Instant | None = None
        self._span_ms = 0

    @property
    def is_draining(self) -> bool:
        """Whether this node is leaving."""
        return self._began_at is not None

    def begin(self, span_ms: int, now: Instant) -> None:
        """Begin; others have `span_ms` to move away what runs here."""
        self._began_at = now if self._began_at is None else self._began_at
        self._span_ms = span_ms

    def end(self) -> None:
        """The node has left."""
        self._began_at = None

    def leader_changed(self, lease_ms: int, now: Instant) -> None:
        """A leader is known, or known no more: for a lease, another one may come."""
        self._leaderless_until = after(now, lease_ms)

    def why_to_give_up(self, *, is_led: bool, now: Instant) -> str:
        """Say why this node must stop by itself what it runs; empty when it need not."""
        if self._began_at is None:
            return ""
        if not is_led and now >= self._leaderless_until:
            return "no quorum is left to drain this node"
        if now >= after(self._began_at, self._span_ms):
            return f"draining took longer than {self._span_ms} ms (shutdown-escalation)"
        return ""

    def deadline(self, *, is_led: bool, now: Instant) -> Instant:
        """Return when to ask again."""
        if self._began_at is None:
            return NEVER
        bounds = [after(self._began_at, self._span_ms), NEVER if is_led else self._leaderless_until]
        return min((bound for bound in bounds if bound > now), default=NEVER)
