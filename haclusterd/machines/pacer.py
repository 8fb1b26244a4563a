"""The pacer's state machine: what to send to whom, who was heard, and until when this node holds its lease.

Invariant (safety.md §2): the published lease is never later than s + L, where s is when this node sent a heartbeat that
a majority of the voters has echoed, by this node's own clock. The arrival time of an echo plays no part: a late echo
does not prolong the lease. So a voter that withholds its echo from X from some moment on bounds every later lease of X.

It must never echo a node that is withdrawn, or any node before the withdrawn set is known; never take a recorded
datagram for a sign of life; never judge who is lost (the DC's membership machine does, with ages as its evidence).

How to drive it: every event carries `now`. Between events call `tick` at `wake_at`; an event more than T/4 later shows
that the machine itself was stopped. For a tick read the clock first and then the page, and pass no heartbeat in
between, so that an echo never names a heartbeat that came after the withdrawn set was read.
"""

from collections.abc import Iterable
from typing import NamedTuple

from haclusterd.machines.watchdog_feeding import FeedRule, WatchdogEffect, WatchdogFeeding
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import NEVER, Instant, after, elapsed_ms
from haclusterd.model.pacer import (
    NO_LEASE,
    BrainState,
    HeardAge,
    HeardIncarnation,
    HeardNode,
    Heartbeat,
    HeldLease,
    PacerReport,
    PacerSettings,
    PageReading,
    PeerAddress,
    Receipt,
)
from haclusterd.model.records import dataclass
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.model.timing import DEFAULT_NODE_TIMEOUT_MS, Timing, derive
from haclusterd.model.watchdog import Watchdog

HUNG_SHARE = 4
"""A daemon that has not stamped the page for brain-timeout / HUNG_SHARE counts as hung since its last stamp."""
ANSWER_SPACING_MS = 10
"""Minimum time between a heartbeat and the next early one."""
STEP_SHARE = 20
"""A heartbeat that is due within 1/STEP_SHARE of a period is sent when one arrives: pacers synchronise, and each wakes
twice in a period instead of once for every peer."""
WATCHED_SHARE = 4
"""For T after a peer's silence has reached T, heartbeats are sent this many times as often."""
SILENT_PERIODS = 3
"""Heartbeats of a peer's known boot that must be missing before another boot is believed: a machine that reboots is
silent before, the original of a copy that starts beside it is not (`copied_nodes`)."""
FOLLOWERS_REPORT = 4
"""A daemon that judges no peers gets one report for this many heartbeats, while nothing but ages changes."""
STEADY_SHARE = 4
"""A daemon that ends within brain-timeout / STEADY_SHARE does not count as back: otherwise one that fails repeatedly,
as with a full disk, would count as present forever, and its resources would not be recovered."""


class SendHeartbeat(NamedTuple):
    """Send a heartbeat to one address of a peer, from the listen address with the same index."""

    peer: NodeName
    address_index: int
    heartbeat: Heartbeat


class PublishLease(NamedTuple):
    """Write the lease into the page."""

    lease: HeldLease


class Report(NamedTuple):
    """Report to the daemon what is heard."""

    report: PacerReport


Effect = SendHeartbeat | PublishLease | Report | WatchdogEffect


def majority_newest(votes: Iterable[Instant | None], voter_count: int) -> Instant | None:
    """Return the majority-th newest of the voters' newest echoes; None while fewer than a majority have echoed."""
    newest_first = sorted((vote for vote in votes if vote is not None), reverse=True)
    majority = voter_count // 2 + 1
    return newest_first[majority - 1] if len(newest_first) >= majority else None


def _voters_of(settings: PacerSettings) -> tuple[NodeName, ...]:
    own = (settings.node,) if settings.is_voter else ()
    return tuple(sorted((*own, *(peer.name for peer in settings.peers if peer.is_voter))))


@dataclass(slots=True)
class _Peer:
    """What is known of one peer."""

    address: PeerAddress
    proved_at: Instant
    """A newer incarnation must have seen a heartbeat of this node that was sent after this."""
    newest: Heartbeat | None = None
    """The newest heartbeat of the incarnation that has proved itself."""
    heard_at: Instant | None = None
    silent_since: Instant | None = None
    """`heard_at`, or the end of a stall of this node after it."""
    is_overdue: bool = False
    overdue_since: Instant | None = None
    """When its silence last reached T."""
    seen: Receipt | None = None
    """Its newest heartbeat, of whatever incarnation: sent back so that it can prove itself."""
    vote: Instant | None = None
    """The newest of this node's heartbeats that it echoed; a restart of the peer does not undo its echoes."""

    def hear(self, heartbeat: Heartbeat, now: Instant) -> bool:
        """Take an accepted heartbeat; return whether it changes more than ages."""
        old = self.newest
        is_same = (
            old is not None
            and old.incarnation == heartbeat.incarnation
            and old.brain is heartbeat.brain
            and old.is_empty == heartbeat.is_empty
        )
        is_news = self.is_overdue or not is_same
        self.newest = heartbeat
        self.heard_at = now
        self.silent_since = now
        self.is_overdue = False
        return is_news

    def falls_overdue(self, node_timeout_ms: int, now: Instant) -> bool:
        """Return whether its silence has reached T since this was last asked."""
        if self.is_overdue or self.silent_since is None:
            return False
        self.is_overdue = elapsed_ms(self.silent_since, now) >= node_timeout_ms
        self.overdue_since = now if self.is_overdue else self.overdue_since
        return self.is_overdue

    def is_newly_overdue(self, node_timeout_ms: int, now: Instant) -> bool:
        """Return whether its silence has reached T less than T ago."""
        return self.is_overdue and self.overdue_since is not None and (
            elapsed_ms(self.overdue_since, now) < node_timeout_ms
        )

    def reported(self, own_token: str, now: Instant) -> HeardNode:
        newest = self.newest
        seen = newest.seen if newest else None
        heard = newest.heard if newest else ()
        return HeardNode(
            name=self.address.name,
            incarnation=newest.incarnation if newest else None,
            age_ms=None if self.silent_since is None else elapsed_ms(self.silent_since, now),
            brain=newest.brain if newest else BrainState.RESTARTING,
            brain_since_ms=newest.brain_since_ms if newest else 0,
            hears={each.node: each.age_ms for each in heard},
            heard_at=self.heard_at,
            hears_token={each.node: each.token for each in heard},
            answered_at=seen.sent_at if seen is not None and seen.token == own_token else None,
            is_empty=newest is not None and newest.is_empty,
            linked=frozenset([each.node for each in heard if each.is_linked]),
        )


class PacerMachine:
    """One node's pacer. `inherited` is the lease that an earlier run of the pacer left in the page, if any.

    A pacer that restarts continues that lease if its holder is still the same incarnation of the daemon: the voters'
    echoes that gave it still count. With another incarnation it starts without a lease. `rules` are all in force,
    except in the simulator.
    """

    def __init__(self, now: Instant, inherited: HeldLease | None = None, rules: SafetyRules = ALL_RULES) -> None:
        self._rules = rules
        self._started_at = now
        self._settings: PacerSettings | None = None
        self._timing: Timing = derive(DEFAULT_NODE_TIMEOUT_MS)
        self._peers: dict[NodeName, _Peer] = {}
        self._next_send_at = NEVER
        self._sent_at: Instant | None = None
        self._own_vote: Instant | None = None
        self._lease = inherited
        self._lease_floor = NO_LEASE
        self._lengthened_at: Instant | None = None
        """When node-timeout was last raised."""
        self._lease_ms_before = 0
        """The lease in ms that an echoed heartbeat from before that gives."""
        self._stalled_at: Instant | None = None
        self._is_brain_connected = False
        self._brain_gone_at = now
        self._brain = BrainState.RESTARTING
        self._brain_since = now
        self._brain_away_since = now
        """When the daemon last ended after it had run long enough to count as present."""
        self._brain_seen_alive_at: Instant | None = None
        self._page = PageReading()
        self._unreported = 0
        """Heartbeats sent since the newest report."""
        self._feeding = WatchdogFeeding()

    @property
    def wake_at(self) -> Instant:
        """When `tick` is due; NEVER before there are settings, or a watchdog."""
        if self._settings is None:
            return self._feeding.wake_at
        wake_at = min(self._next_send_at, self._feeding.wake_at)
        oldest = wake_at - self._timing.node_timeout_ms
        for peer in self._peers.values():
            if peer.silent_since is not None and peer.silent_since < oldest and not peer.is_overdue:
                oldest = peer.silent_since
        return min(wake_at, after(Instant(oldest), self._timing.node_timeout_ms))

    def heard_incarnation(self, node: NodeName) -> HeardIncarnation | None:
        """Return the incarnation of a peer that last proved itself; None: there is none."""
        peer = self._peers.get(node)
        if peer is None or peer.newest is None or peer.silent_since is None:
            return None
        return HeardIncarnation(peer.newest.incarnation, peer.silent_since)

    # Events

    def configured(self, settings: PacerSettings, now: Instant) -> tuple[Effect, ...]:
        """Take the settings of a connected daemon. What is known of peers that stay is kept."""
        self._notice(now)
        old = self._settings
        self._retime(derive(settings.node_timeout_ms, settings.brain_timeout_ms), now)
        self._settings = settings
        if not self._is_brain_connected:
            # Earlier stamps are another process's; a new incarnation of the same process is not away for a moment.
            self._brain_gone_at = now
        self._is_brain_connected = True
        if old is None or old.incarnation != settings.incarnation:
            self._begin_incarnation(settings, now)
        elif _voters_of(old) != _voters_of(settings):
            # Echoes of the previous voters stay valid (safety.md §2): a new voter that has not been heard yet must not
            # end the lease of those who let it in.
            self._lease_floor = max(self._lease_floor, self._lease_until(old))
        peers = {}
        for address in sorted(settings.peers, key=lambda peer: peer.name):
            peer = self._peers.get(address.name) or _Peer(address, proved_at=self._started_at)
            peer.address = address
            peers[address.name] = peer
        self._peers = peers
        self._feeding.configured(settings.watchdog, now)
        self._send_early(now)
        return self._lease_changes()

    def brain_gone(self, now: Instant) -> None:
        """Note that the daemon's process has ended or disconnected."""
        self._notice(now)
        self._is_brain_connected = False
        self._brain_gone_at = now

    def heartbeat_received(self, peer: NodeName, heartbeat: Heartbeat, now: Instant) -> tuple[Effect, ...]:
        """Take an authentic datagram of a peer; one that is old, repeated or unproved is at most answered."""
        self._notice(now)
        known = self._peers.get(peer)
        if self._settings is None or known is None or heartbeat.sender != peer:
            return ()
        if not self._is_acceptable(known, heartbeat, now):
            return ()
        is_news = known.hear(heartbeat, now)
        # While a peer is overdue the DC weighs what others heard of it, and every heartbeat is evidence.
        is_news = is_news or any(peer.is_overdue for peer in self._peers.values())
        if elapsed_ms(now, self._next_send_at) * STEP_SHARE <= self._timing.heartbeat_ms:
            self._send_early(now)
        changes = self._lease_changes() if self._count_vote(known, heartbeat.echo, now) else ()
        return (*changes, self._report(now)) if is_news else changes

    def tick(self, page: PageReading, now: Instant) -> tuple[Effect, ...]:
        """Send heartbeats and feed the watchdog if due. `page` was read after `now`."""
        self._notice(now)
        self._page = page
        settings = self._settings
        if settings is None:
            return self._feed(now)
        is_news = self._observe_brain(now)
        feeding = self._feed(now)
        for peer in self._peers.values():
            is_news |= peer.falls_overdue(self._timing.node_timeout_ms, now)
        if is_news:
            self._send_early(now)
        if now < self._next_send_at:
            return (*feeding, self._report(now)) if is_news else feeding
        sent = self._send(settings, now)
        self._unreported += 1
        may_wait = page.is_follower and self._brain is BrainState.ALIVE and self._unreported < FOLLOWERS_REPORT
        report = (self._report(now),) if is_news or not may_wait else ()
        return (*feeding, *sent, *self._lease_changes(), *report)

    def watchdog_opened(self, watchdog: Watchdog, now: Instant) -> tuple[Effect, ...]:
        """Note that the watchdog device is open and counting."""
        self._feeding.opened(watchdog, now)
        return self._watchdog_news(now)

    def watchdog_failed(self, problem: str, now: Instant) -> tuple[Effect, ...]:
        """Note that the watchdog device could not be opened, or fed."""
        self._feeding.failed(problem, now)
        return self._watchdog_news(now)

    def watchdog_fed(self, now: Instant) -> None:
        """Note that the watchdog device was fed, at `now` at the latest."""
        self._feeding.fed(now)

    def _watchdog_news(self, now: Instant) -> tuple[Effect, ...]:
        return (self._report(now),) if self._settings is not None else ()

    def _feed(self, now: Instant) -> tuple[WatchdogEffect, ...]:
        return self._feeding.step(self._feed_rule(now), now) if now >= self._feeding.wake_at else ()

    def _feed_rule(self, now: Instant) -> FeedRule:
        """Return whether, and until when, the watchdog may be fed (safety.md §2).

        It may with a valid lease and a daemon seen alive within brain-timeout, or when the node is proven empty.
        """
        has_lease = self._lease is not None and now < self._lease.until
        is_condemned = self._page.is_condemned
        is_idle = self._page.is_empty and not has_lease
        if is_condemned:
            return FeedRule(None, is_idle, is_condemned)
        if self._page.is_empty:
            return FeedRule(after(now, self._timing.lease_ms), is_idle, is_condemned)
        until = self._may_feed_until() if has_lease or not self._rules.feed_needs_lease else None
        return FeedRule(until if until is not None and now < until else None, is_idle, is_condemned)

    def _may_feed_until(self) -> Instant | None:
        if not self._rules.feed_needs_lease:
            return NEVER
        if self._settings is None or self._lease is None or self._brain_seen_alive_at is None:
            return None
        return min(self._lease.until, after(self._brain_seen_alive_at, self._timing.brain_timeout_ms))

    # Lease

    def _begin_incarnation(self, settings: PacerSettings, now: Instant) -> None:
        """Drop all votes, and the lease unless this very incarnation holds it: they were for another incarnation."""
        self._lease_floor = NO_LEASE
        if self._lease is not None and self._lease.token == settings.incarnation.token:
            self._lease_floor = min(self._lease.until, after(now, self._timing.lease_ms))
        self._own_vote = None
        for peer in self._peers.values():
            peer.vote = None

    def _count_vote(self, peer: _Peer, echo: Receipt | None, now: Instant) -> bool:
        """Count an echo; return whether it is newer than those before it.

        Echoes of heartbeats that an earlier image of this pacer sent do not count: node-timeout may have been raised
        since, which this image cannot know (`_retime`). The page has the lease that such echoes gave.
        """
        settings = self._settings
        if settings is None or echo is None or echo.token != settings.incarnation.token:
            return False
        if not self._started_at <= echo.sent_at <= now:
            return False
        given_at = echo.sent_at if self._rules.echo_send_time else now
        if peer.vote is not None and given_at <= peer.vote:
            return False
        peer.vote = given_at
        return True

    def _retime(self, timing: Timing, now: Instant) -> None:
        """Take new timers. Only heartbeats sent from now on give a longer lease.

        A node that is already lost learns of a longer node-timeout too. Earlier echoes must not give it a longer lease
        than the survivors assumed when they declared it lost (safety.md §2).
        """
        if self._settings is not None and timing.lease_ms > self._timing.lease_ms:
            newest = self._newest_vote(self._settings)
            self._lease_ms_before = self._timing.lease_ms if newest is None else self._lease_ms_of(newest)
            self._lengthened_at = now
        self._timing = timing

    def _lease_ms_of(self, sent_at: Instant) -> int:
        is_older = self._lengthened_at is not None and sent_at <= self._lengthened_at
        return min(self._timing.lease_ms, self._lease_ms_before) if is_older else self._timing.lease_ms

    def _newest_vote(self, settings: PacerSettings) -> Instant | None:
        """Return when the newest heartbeat was sent that a majority of the voters has echoed."""
        votes = [peer.vote for peer in self._peers.values() if peer.address.is_voter]
        if settings.is_voter:
            votes.append(self._own_vote)
        return majority_newest(votes, len(votes))

    def _lease_until(self, settings: PacerSettings) -> Instant:
        newest = self._newest_vote(settings)
        if newest is None:
            return self._lease_floor
        return max(self._lease_floor, after(newest, self._lease_ms_of(newest)))

    def _lease_changes(self) -> tuple[Effect, ...]:
        settings = self._settings
        if settings is None:
            return ()
        token, until, old = settings.incarnation.token, self._lease_until(settings), self._lease
        if old is not None and old.until == until and old.token == token:
            return ()
        self._lease = HeldLease(token, until)
        return (PublishLease(self._lease),)

    # Sending

    def _may_echo(self, node: NodeName, settings: PacerSettings) -> bool:
        """Return whether this node votes for a node's lease (safety.md §2, withdrawal)."""
        is_known = self._page.known_by == settings.incarnation.token or not self._rules.rebuild_withdrawn_set
        is_withdrawn = node in self._page.withdrawn and self._rules.withdraw_echo
        return settings.is_voter and is_known and not is_withdrawn

    def _send(self, settings: PacerSettings, now: Instant) -> list[Effect]:
        self._sent_at = now
        self._next_send_at = after(now, self._period_ms(now))
        if self._may_echo(settings.node, settings):
            self._own_vote = now
        heard = tuple(
            HeardAge(
                name, peer.newest.incarnation.token, elapsed_ms(peer.silent_since, now), name in self._page.linked
            )
            for name, peer in self._peers.items()
            if peer.newest is not None and peer.silent_since is not None
        )
        effects: list[Effect] = []
        for name, peer in self._peers.items():
            heartbeat = Heartbeat(
                sender=settings.node,
                receiver=name,
                incarnation=settings.incarnation,
                sent_at=now,
                brain=self._brain,
                brain_since_ms=elapsed_ms(self._brain_since, now),
                echo=self._echo(peer, settings),
                seen=peer.seen,
                heard=heard,
                is_empty=self._page.is_empty,
            )
            effects.extend(SendHeartbeat(name, index, heartbeat) for index in range(len(peer.address.addresses)))
        return effects

    def _period_ms(self, now: Instant) -> int:
        """Return the time in ms to the next heartbeat: shorter while a peer may be about to be fenced.

        The DC records a fencing once each voter has reported that it heard nothing for a period; more frequent reports
        cost little, for a while.
        """
        is_watched = any(peer.is_newly_overdue(self._timing.node_timeout_ms, now) for peer in self._peers.values())
        return max(1, self._timing.heartbeat_ms // WATCHED_SHARE) if is_watched else self._timing.heartbeat_ms

    def _echo(self, peer: _Peer, settings: PacerSettings) -> Receipt | None:
        if peer.newest is None or not self._may_echo(peer.address.name, settings):
            return None
        return Receipt(peer.newest.incarnation.token, peer.newest.sent_at)

    # Hearing

    def _is_acceptable(self, peer: _Peer, heartbeat: Heartbeat, now: Instant) -> bool:
        """Return whether a heartbeat is newer than all before it, and of an incarnation that has proved itself.

        Another boot is refused while the known boot is heard. A new incarnation is answered at once, so that it is
        known after one round trip.
        """
        newest = peer.newest
        if newest is not None and newest.incarnation == heartbeat.incarnation:
            is_newer = heartbeat.sent_at > newest.sent_at
            if is_newer:
                peer.seen = Receipt(heartbeat.incarnation.token, heartbeat.sent_at)
            return is_newer
        if not self._may_be_another_boot(peer, heartbeat, now):
            return False
        is_proved = self._is_proof(heartbeat.seen, peer)
        if is_proved or peer.seen is None or peer.seen.token != heartbeat.incarnation.token:
            self._send_early(now)
        if is_proved:
            peer.proved_at = now
        peer.seen = Receipt(heartbeat.incarnation.token, heartbeat.sent_at)
        return is_proved

    def _may_be_another_boot(self, peer: _Peer, heartbeat: Heartbeat, now: Instant) -> bool:
        newest, since = peer.newest, peer.silent_since
        if newest is None or since is None or newest.incarnation.boot_id == heartbeat.incarnation.boot_id:
            return True
        return elapsed_ms(since, now) >= SILENT_PERIODS * self._timing.heartbeat_ms

    def _is_proof(self, seen: Receipt | None, peer: _Peer) -> bool:
        """Return whether the sender saw a heartbeat of our incarnation that its own previous one cannot have seen."""
        settings = self._settings
        if settings is None or seen is None:
            return False
        return seen.token == settings.incarnation.token and seen.sent_at >= peer.proved_at

    def _send_early(self, now: Instant) -> None:
        """Bring the next heartbeat forward: to now, or ANSWER_SPACING_MS after the last one."""
        earliest = now if self._sent_at is None else max(now, after(self._sent_at, ANSWER_SPACING_MS))
        self._next_send_at = min(self._next_send_at, earliest)

    def _notice(self, now: Instant) -> None:
        """Detect a stall of this process: it heard nothing meanwhile, so silence counts from now (safety.md §4)."""
        if elapsed_ms(self.wake_at, now) <= self._timing.stall_ms:
            return
        self._stalled_at = now
        self._send_early(now)
        for peer in self._peers.values():
            if peer.silent_since is not None and self._rules.silence_clocks_restart_after_stall:
                peer.silent_since = now
                peer.is_overdue = False

    def _report(self, now: Instant) -> Report:
        self._unreported = 0
        token = self._settings.incarnation.token if self._settings is not None else ""
        nodes = tuple(peer.reported(token, now) for peer in self._peers.values())
        return Report(
            PacerReport(
                reported_at=now,
                stalled_at=self._stalled_at,
                nodes=nodes,
                watchdog=self._feeding.watchdog,
                watchdog_problem=self._feeding.problem,
            )
        )

    # The node's own daemon

    def _observe_brain(self, now: Instant) -> bool:
        """Judge the daemon by its stamps; return whether the verdict changed."""
        stamped_at = min(self._page.main_stamped_at, self._page.raft_stamped_at)
        state = self._judge_brain(stamped_at, now)
        if state is BrainState.ALIVE:
            self._brain_seen_alive_at = stamped_at
        if state is self._brain:
            return False
        if state is BrainState.ALIVE:
            self._brain_since = now
        elif self._brain is BrainState.ALIVE:
            lived_ms = elapsed_ms(self._brain_since, now)
            if state is BrainState.HUNG or lived_ms * STEADY_SHARE >= self._timing.brain_timeout_ms:
                self._brain_away_since = self._brain_seen_alive_at or now
            self._brain_since = self._not_before_stall(self._brain_away_since)
        self._brain = state
        return True

    def _judge_brain(self, stamped_at: Instant, now: Instant) -> BrainState:
        if not self._is_brain_connected or stamped_at <= self._brain_gone_at:
            return BrainState.RESTARTING
        silence_ms = elapsed_ms(self._not_before_stall(stamped_at), now)
        return BrainState.HUNG if silence_ms * HUNG_SHARE > self._timing.brain_timeout_ms else BrainState.ALIVE

    def _not_before_stall(self, instant: Instant) -> Instant:
        """Return the later of `instant` and the end of the last stall, which may have stopped the daemon as well."""
        return instant if self._stalled_at is None else max(instant, self._stalled_at)
