"""On which links the kernel drops datagrams that the known peer cannot have sent (safety.md §3, floods).

A heartbeat begins with the names, then the token and the boot id of the sender's incarnation: 64 and 122 random bits,
which can be known only from a heartbeat or on the machine itself. While more datagrams are refused on a link than a
peer alone would send, only the peer's known incarnation passes there. When that falls silent, any incarnation of the
same boot passes, since the daemon may have started a new one; when that is silent too, everything passes, since the
machine may have booted.

Invariant: the filter keeps no peer out. A new incarnation passes SAME_INCARNATION_PERCENT of a period after the
previous one was last heard, another boot after SILENT_PERIODS, before which it would not be believed. Without a flood
nothing is filtered.

`PacerMachine.heard_incarnation` says who was heard; the time comes with each event.
"""

from collections.abc import Callable
from typing import NamedTuple

from haclusterd.machines.pacer import SILENT_PERIODS
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import NEVER, Instant, after, elapsed_ms
from haclusterd.model.pacer import HeardIncarnation, Link, PacerSettings
from haclusterd.model.records import dataclass
from haclusterd.model.timing import derive

FLOOD = 64
"""Datagrams refused on one link in one period that make a flood. A peer sends at most four, with a wrong key as
well."""
OVER_MS = 5_000
"""A flood without further datagrams for this time is over."""
SAME_INCARNATION_PERCENT = 150
"""Percent of a heartbeat period after which the next heartbeat of the known incarnation is late."""


class Admitted(NamedTuple):
    """Whose heartbeats pass the filter."""

    peer: NodeName
    boot_id: str
    token: str | None
    """None: every incarnation in that boot."""


class LetThrough(NamedTuple):
    """Filter a link from now on, so that only `admitted` passes; None: no filter."""

    link: Link
    admitted: Admitted | None


@dataclass(slots=True)
class _Watched:
    """A link on which something was refused lately."""

    peer: NodeName
    counted_from: Instant
    refused: int = 0
    """Datagrams refused since `counted_from`."""
    flooded_at: Instant | None = None
    """When a flood was last seen on it."""
    dropped: int | None = None
    """The kernel's count of dropped datagrams when it was last asked."""
    admitted: Admitted | None = None


class LinkFiltering:
    """The links of one pacer."""

    def __init__(self) -> None:
        self._period_ms = 0
        self._peers: dict[Link, NodeName] = {}
        self._watched: dict[Link, _Watched] = {}
        self._refused: dict[Link, int] = {}
        """Datagrams refused since the last step, by link."""
        self._wake_at = NEVER

    @property
    def wake_at(self) -> Instant:
        """When `step` is due at the latest; NEVER while nothing is filtered."""
        return self._wake_at

    @property
    def filtered(self) -> tuple[Link, ...]:
        """The links with a filter."""
        return tuple(link for link, watched in self._watched.items() if watched.admitted is not None)

    def configured(self, settings: PacerSettings) -> tuple[LetThrough, ...]:
        """Take the settings; links that stay with the same peer keep their filter.

        If an address now belongs to another peer, its socket may still have the filter of the previous one.
        """
        self._period_ms = derive(settings.node_timeout_ms, settings.brain_timeout_ms).heartbeat_ms
        self._peers = {
            link: peer.name for peer in settings.peers for link in zip(settings.listen, peer.addresses, strict=False)
        }
        left = {link: watched for link, watched in self._watched.items() if self._peers.get(link) != watched.peer}
        for link in left:
            del self._watched[link]
        return tuple(LetThrough(link, None) for link, watched in left.items() if watched.admitted is not None)

    def refused(self, link: Link) -> None:
        """Count a datagram that was refused on a link; without a time, because in a flood this is called very often."""
        self._refused[link] = self._refused.get(link, 0) + 1

    def dropped(self, link: Link, count: int, now: Instant) -> bool:
        """Take the number of datagrams that the kernel has dropped on a filtered link; return whether it has grown."""
        watched = self._watched.get(link)
        if watched is None or watched.admitted is None:
            return False
        is_more = watched.dropped is not None and count > watched.dropped
        watched.dropped = count
        if is_more:
            watched.flooded_at = now
        return is_more

    def step(self, heard: Callable[[NodeName], HeardIncarnation | None], now: Instant) -> tuple[LetThrough, ...]:
        """Return the changes of filters, by the datagrams refused since the last step and the incarnations heard."""
        self._wake_at = NEVER
        if not self._refused and not self._watched:
            return ()
        self._count(now)
        effects = []
        for link, watched in list(self._watched.items()):
            is_flooded = watched.flooded_at is not None and elapsed_ms(watched.flooded_at, now) < OVER_MS
            admitted = self._admitted(watched, heard(watched.peer), now) if is_flooded else None
            if admitted != watched.admitted:
                watched.admitted = admitted
                effects.append(LetThrough(link, admitted))
            if not is_flooded and not watched.refused:
                del self._watched[link]
        return tuple(effects)

    def _count(self, now: Instant) -> None:
        for link, refused in self._refused.items():
            peer = self._peers.get(link)
            if peer is not None:
                watched = self._watched.setdefault(link, _Watched(peer, counted_from=now))
                watched.refused += refused
        self._refused.clear()
        for watched in self._watched.values():
            if watched.refused >= FLOOD:
                watched.flooded_at = now
            if elapsed_ms(watched.counted_from, now) >= self._period_ms:
                watched.counted_from = now
                watched.refused = 0

    def _admitted(self, watched: _Watched, heard: HeardIncarnation | None, now: Instant) -> Admitted | None:
        """Return whose heartbeats pass in a flood, and set the wake-up for when that may change."""
        if watched.flooded_at is not None:
            self._wake(after(watched.flooded_at, OVER_MS))
        if heard is None:
            return None
        same_incarnation_until = after(heard.silent_since, self._period_ms * SAME_INCARNATION_PERCENT // 100)
        same_boot_until = after(heard.silent_since, self._period_ms * SILENT_PERIODS)
        incarnation = heard.incarnation
        if now < same_incarnation_until:
            self._wake(same_incarnation_until)
            return Admitted(watched.peer, incarnation.boot_id, incarnation.token)
        if now < same_boot_until:
            self._wake(same_boot_until)
            return Admitted(watched.peer, incarnation.boot_id, None)
        return None

    def _wake(self, at: Instant) -> None:
        self._wake_at = min(self._wake_at, at)
