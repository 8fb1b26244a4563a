"""What the main loop is notified of besides entries: who leads, the links, learners that are ready, followers behind.

Invariant: each is reported when it has changed since the last report, except for followers that are behind: those are
reported again and again while there are any, because others measure their silence. No notice is a licence to act
(docs/design/0002-store.md, guard 11).
"""

from collections.abc import Collection

from haclusterd.model.followers import Followers
from haclusterd.model.ids import NodeName, Term
from haclusterd.model.instants import Instant
from haclusterd.ports.store import LeadershipChanged, LearnersReady, StoreEvent, VoterLinks
from haclusterd.raft.consensus import Consensus
from haclusterd.raft.settings import RaftTimers

READY_LAG = 100
"""A learner that lacks fewer entries is ready to vote (safety.md §7)."""


class Notices:
    """What was already reported, and so what is to be reported now."""

    def __init__(self) -> None:
        self._leadership: tuple[int, NodeName | None, bool] | None = None
        self._links: tuple[NodeName, ...] | None = None
        self._ready_learners: tuple[NodeName, ...] = ()
        self._followers = Followers(Instant(0))
        """The followers in the newest report."""
        self._looked_at: Instant | None = None
        """When the followers were last checked; None while this node does not lead."""

    def of_leadership(self, raft: Consensus) -> list[StoreEvent]:
        """Return who leads, if that has changed."""
        if raft.leadership == self._leadership:
            return []
        self._leadership = raft.leadership
        term, leader, is_leader = raft.leadership
        return [LeadershipChanged(Term(term), leader, is_leader)]

    def of_links(self, links: tuple[NodeName, ...]) -> list[StoreEvent]:
        """Return the connected peers, which are sorted by name, if they have changed."""
        if links == self._links:
            return []
        self._links = links
        return [VoterLinks(links)]

    def of_learners(
        self, raft: Consensus, learners: tuple[NodeName, ...], connected: Collection[NodeName]
    ) -> list[StoreEvent]:
        """Return, as leader, which learners are ready to vote, if that has changed."""
        ready: tuple[NodeName, ...] = ()
        if learners and raft.is_leader:
            ready = tuple(peer for peer in learners if peer in connected and raft.lag(peer) < READY_LAG)
        if ready == self._ready_learners:
            return []
        self._ready_learners = ready
        return [LearnersReady(ready)]

    def of_followers(self, raft: Consensus, timers: RaftTimers, now: Instant) -> list[StoreEvent]:
        """Return now and then, as leader, which followers are behind, and once that none is any more.

        After a stall of this thread the silence of the others is measured from now on: it may have been this thread's
        own.
        """
        if not raft.is_leader:
            if self._looked_at is not None:
                self._looked_at = None
                self._followers = Followers(now)
            return []
        before = self._looked_at
        if before is not None and now - before < timers.append_ms:
            return []
        self._looked_at = now
        if before is not None and now - before > timers.election_max_ms:
            raft.forget_silence()
        behind = raft.followers_behind(timers.election_max_ms)
        if not behind and not self._followers.behind:
            return []
        self._followers = Followers(now, behind)
        return [self._followers]
