"""Which nodes are lost: the DC's judgement of its peers' silence (safety.md §4, §6).

A node is lost when no voter in the DC's quorum has heard it for node-timeout. If other voters hear a node and only the
DC does not, or the node does not hear the DC, the DC hands the leadership over instead of fencing. A host that is heard
but hears no majority, or whose daemon is away for brain-timeout, is lost too. So is one whose daemon is alive but takes
no part: it does not answer the DC, takes no entry of the log, or has not joined. Nothing here is read from disk, and a
refused connection never hastens a loss.
"""

from collections.abc import Mapping, Sequence

from haclusterd.cib.commands import Lost
from haclusterd.machines.effects import Effect, Note, Propose, Scope, TransferLeadership
from haclusterd.machines.joining import may_lead
from haclusterd.machines.moment import Moment
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.followers import Follower, Followers
from haclusterd.model.ids import Incarnation, NodeName, Term
from haclusterd.model.instants import NEVER, Instant, after
from haclusterd.model.pacer import BrainState, HeardNode, PacerReport
from haclusterd.model.properties import ClusterProperties, fences_unseen
from haclusterd.model.records import dataclass
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.model.timing import Timing

DISK_SHARE = 3
"""Multiple of brain-timeout that a daemon gets that answers but makes no entry durable: its disk may be slow."""
REMEMBERED_SHARE = 60
"""Multiple of brain-timeout in which this node does not hand the leadership over again for the same incarnation."""
FRESH_HEARTBEATS = 3
"""A voter hears a node at present if it got the newest heartbeat within this number of periods."""


@dataclass(frozen=True, slots=True)
class _View:
    """One pacer report, with ages as of now."""

    voters: tuple[NodeName, ...]
    """Sorted by name."""
    heard: Mapping[NodeName, HeardNode]
    ages_ms: Mapping[NodeName, int]
    """By node: how many ms ago the DC itself heard it."""

    @staticmethod
    def of(cib: Cib, report: PacerReport, now: Instant) -> "_View":
        """Return a view of a report, with the time since then added to its ages."""
        drift_ms = max(0, now - report.reported_at)
        ages_ms = {node.name: node.age_ms + drift_ms for node in report.nodes if node.age_ms is not None}
        return _View(cib.voters(), {node.name: node for node in report.nodes}, ages_ms)

    def age_ms(self, node: NodeName) -> int | None:
        """Return how many ms ago the DC itself heard `node`; None: never."""
        return self.ages_ms.get(node)

    def age_through_ms(self, voter: NodeName, node: NodeName) -> int | None:
        """Return how many ms ago `voter` heard `node`, by the voter's newest heartbeat; None: not known."""
        own = self.ages_ms.get(voter)
        age = self.heard[voter].hears.get(node) if own is not None else None
        return None if own is None or age is None else age + own


class MembershipMachine:
    """The DC's judgement of which nodes are there; made each time this node becomes DC."""

    def __init__(
        self,
        node: NodeName,
        term: Term,
        timing: Timing,
        now: Instant,
        *,
        handed_over: dict[tuple[NodeName, Incarnation | None], Instant] | None = None,
        rules: SafetyRules = ALL_RULES,
    ) -> None:
        """`handed_over`: because of which incarnations this node handed over, and when first; kept by the caller."""
        self._node = node
        self._term = term
        self._timing = timing
        self._since = now
        """The start of silence for nodes that were never heard."""
        self._rules = rules
        self._seen_stall: Instant | None = None
        self._heard: frozenset[NodeName] = frozenset()
        """The nodes in the newest report that this node's pacer has heard."""
        self._unheard_since: dict[NodeName, Instant] = {}
        """Since when a node that others hear is cut off from the DC: not heard by it, or not hearing it."""
        self._known: dict[NodeName, tuple[Incarnation | None, Instant]] | None = None
        """The incarnation of each node in the CIB, and since when this DC knows it."""
        self._blank_since: dict[tuple[NodeName, NodeName], Instant] = {}
        """By (voter, node): since when the voter is heard without naming the node, so at least how long it has
        listened."""
        self._handed_over = handed_over if handed_over is not None else {}
        self._followers: Followers | None = None
        self._cut_at: dict[NodeName, Instant] = {}
        """When this DC was last without a session with a node."""
        self._met: set[NodeName] = set()
        """Nodes whose incarnation in the CIB this DC has heard or seen joining: their status is not outdated."""
        self._unjoined_since: dict[NodeName, Instant] = {}
        """Since when a node is heard under another incarnation than the CIB's."""
        self._pending_since: dict[NodeName, tuple[Incarnation, Instant]] = {}
        """Since when a node that counts as away is heard under another incarnation."""
        self._leaseless_since: Instant | None = None
        self._next_one_way_at = Instant(0)
        self._wake_at = NEVER

    def retimed(self, timing: Timing) -> None:
        """Note that the administrator changed node-timeout or brain-timeout."""
        self._timing = timing

    def deadline(self) -> Instant:
        """Return when `step` must be called next."""
        return self._wake_at

    def is_settled(self, cib: Cib, report: PacerReport | None) -> bool:
        """Return whether this DC has met every member in the incarnation that the CIB knows, or has decided about it.

        Until then a plan would rest on a status that may be a week old. A member that was met and then starts another
        incarnation does not delay the others: it is judged on its own.
        """
        heard = {node.name: node for node in report.nodes} if report is not None else {}
        for name, status in cib.status.nodes.items():
            if status.state is NodeState.UNSEEN:
                if self._is_unseen_fenced(cib):
                    return False
            elif status.state is NodeState.ONLINE and name != self._node and name not in self._met:
                known = heard.get(name)
                if known is None or known.incarnation != status.incarnation:
                    return False
        own = cib.status.nodes.get(self._node)
        return own is not None and own.state is NodeState.ONLINE

    def _is_unseen_fenced(self, cib: Cib) -> bool:
        """Return whether members that were never seen are fenced; if not, the administrator is responsible for them."""
        return self._rules.unseen_is_fenced and fences_unseen(cib.in_force)

    def step(
        self, cib: Cib, report: PacerReport | None, moment: Moment, followers: Followers | None = None
    ) -> Sequence[Effect]:
        """Judge every member. `followers`: the nodes that lag behind in Raft; None: not reported, none known."""
        self._wake_at = NEVER
        self._followers = followers
        self._cut_at |= {name: moment.now for name, each in self._behind().items() if not each.is_linked}
        self._learn(cib, moment)
        if report is None:
            return ()
        self._meet(cib, report)
        if self._rules.dc_needs_fresh_lease and not moment.has_lease:
            return self._without_lease(cib, report, moment)
        self._leaseless_since = None
        self._handed_over.pop(self._own_incarnation(cib), None)
        self._restart_after_stall(report, moment)
        if self._is_from_before_a_standstill(report, moment):
            return ()
        view = _View.of(cib, report, moment.now)
        quorum = self._quorum(view)
        if len(quorum) * 2 <= len(view.voters):
            return ()
        effects: list[Effect] = []
        for name, status in sorted(cib.status.nodes.items()):
            if name != self._node and status.state in (NodeState.ONLINE, NodeState.UNSEEN):
                effects.extend(self._judge(cib, view, quorum, status, moment))
            if name != self._node and status.state in (NodeState.LEFT, NodeState.FENCED):
                effects.extend(self._judge_pending(cib, view, status, moment))
        return effects

    def _judge_pending(self, cib: Cib, view: _View, status: NodeStatus, moment: Moment) -> Sequence[Effect]:
        """Have a node fenced that was away, is back, and does not join in time (`node-pending-timeout`).

        While it is being fenced its Join is held, and the time does not count.
        """
        properties = ClusterProperties(cib.in_force)
        limit_ms = properties.duration_ms("node-pending-timeout") if properties.boolean("fencing-enabled") else 0
        heard = view.heard.get(status.name)
        is_there = heard is not None and _is_below(view.age_ms(status.name), self._timing.node_timeout_ms)
        is_there = is_there and heard is not None and heard.brain is BrainState.ALIVE
        incarnation = heard.incarnation if heard is not None and is_there else None
        is_held = any(order.target == status.name for order in cib.status.fence_orders.values())
        known_before = (status.incarnation, status.fenced_incarnation)
        if not limit_ms or incarnation is None or is_held or incarnation in known_before:
            self._pending_since.pop(status.name, None)
            return ()
        known = self._pending_since.get(status.name)
        if known is None or known[0] != incarnation:
            known = self._pending_since[status.name] = (incarnation, moment.now)
        waited_ms = moment.now - known[1]
        if waited_ms < limit_ms:
            self._wake_in(limit_ms - waited_ms, moment)
            return ()
        reason = f"it is heard, and its daemon has not joined for {waited_ms} ms (node-pending-timeout)"
        command = Lost(status.name, status.incarnation, self._term, reason, is_pending=True)
        return (Propose(Scope.DC, f"lost:{status.name}:{status.incarnation}:{self._term}", command),)

    def _without_lease(self, cib: Cib, report: PacerReport, moment: Moment) -> Sequence[Effect]:
        """Hand the leadership over if the lease stays away: a DC that is not heard could never judge a node.

        If Raft works and only heartbeats are lost, the leadership would not end otherwise. A DC that is heard lacks a
        lease for another reason, which no other DC would remove.
        """
        since = self._leaseless_since if self._leaseless_since is not None else moment.now
        self._leaseless_since = since
        waited_ms = moment.now - since
        self._wake_in(self._timing.node_timeout_ms, moment)
        if waited_ms < self._timing.node_timeout_ms:
            return ()
        view = _View.of(cib, report, moment.now)
        heard = [
            voter
            for voter in view.voters
            if voter != self._node and _is_below(view.age_ms(voter), self._timing.node_timeout_ms)
        ]
        if not heard:
            return self._in_silence(cib, waited_ms, moment)
        candidates = [
            voter
            for voter in heard
            if not _is_below(view.age_through_ms(voter, self._node), self._timing.node_timeout_ms)
        ]
        if not candidates:
            return ()
        turn = waited_ms // self._timing.node_timeout_ms
        return self._because_of_lease(candidates[turn % len(candidates)], waited_ms)

    def _in_silence(self, cib: Cib, waited_ms: int, moment: Moment) -> Sequence[Effect]:
        """Hand over to a voter that answers through Raft, when no heartbeats pass in either direction.

        Each candidate is tried for one node-timeout, and only once in a while: if heartbeats pass between no two nodes,
        another DC would be in the same situation.
        """
        timeout_ms = self._timing.node_timeout_ms
        behind = self._behind()
        candidates = [
            voter
            for voter in sorted(cib.voters(), key=lambda name: (cib.members[name].is_witness, name))
            if voter != self._node
            and (voter not in behind or moment.now - behind[voter].answered_at < timeout_ms)
        ]
        own = self._own_incarnation(cib)
        first_at = self._handed_over.get(own, moment.now)
        if moment.now - first_at > REMEMBERED_SHARE * self._timing.brain_timeout_ms:
            first_at = moment.now
        turn = (moment.now - first_at) // timeout_ms
        if turn >= len(candidates):
            return ()
        self._handed_over[own] = first_at
        return self._because_of_lease(candidates[turn], waited_ms)

    @staticmethod
    def _because_of_lease(target: NodeName, waited_ms: int) -> Sequence[Effect]:
        text = f"no lease for {waited_ms} ms; handing over to {target}"
        return (Note("leadership", text), TransferLeadership(target))

    def _own_incarnation(self, cib: Cib) -> tuple[NodeName, Incarnation | None]:
        status = cib.status.nodes.get(self._node)
        return (self._node, status.incarnation if status is not None else None)

    def _learn(self, cib: Cib, moment: Moment) -> None:
        """Note the incarnations in the CIB; drop observations of other incarnations, and of nodes not in force."""
        nodes = cib.status.nodes
        if self._known is None:
            self._known = {name: (status.incarnation, self._since) for name, status in nodes.items()}
        for name, status in nodes.items():
            is_in_force = status.state in (NodeState.ONLINE, NodeState.UNSEEN)
            is_new = name not in self._known or self._known[name][0] != status.incarnation
            if is_new:
                self._known[name] = (status.incarnation, moment.now)
            if is_new or not is_in_force:
                self._unheard_since.pop(name, None)
                self._unjoined_since.pop(name, None)
            if is_new:
                self._met.add(name)

    def _meet(self, cib: Cib, report: PacerReport) -> None:
        for node in report.nodes:
            status = cib.status.nodes.get(node.name)
            if status is not None and node.incarnation is not None and node.incarnation == status.incarnation:
                self._met.add(node.name)
                self._unjoined_since.pop(node.name, None)

    def _restart_after_stall(self, report: PacerReport, moment: Moment) -> None:
        """Restart all measurements of silence after a stall of the pacer, or when it is a new process."""
        heard = frozenset(node.name for node in report.nodes if node.age_ms is not None)
        has_forgotten = any(node.name in self._heard and node.age_ms is None for node in report.nodes)
        self._heard = heard
        is_stall = report.stalled_at != self._seen_stall or has_forgotten
        if is_stall and self._rules.silence_clocks_restart_after_stall:
            self._seen_stall = report.stalled_at
            self._since = moment.now
            self._unheard_since.clear()
            self._blank_since.clear()
            self._unjoined_since.clear()
            self._pending_since.clear()

    def _is_from_before_a_standstill(self, report: PacerReport, moment: Moment) -> bool:
        """Return whether the report predates a stall of this daemon or its pacer: what arrived since is not in it."""
        is_old = moment.now - report.reported_at > self._timing.stall_ms
        return is_old and self._rules.silence_clocks_restart_after_stall

    def _quorum(self, view: _View) -> tuple[NodeName, ...]:
        """Return the voters that the DC hears, itself included."""
        timeout_ms = self._timing.node_timeout_ms
        return tuple(
            voter
            for voter in view.voters
            if voter == self._node or _is_below(view.age_ms(voter), timeout_ms)
        )

    def _judge(
        self, cib: Cib, view: _View, quorum: tuple[NodeName, ...], status: NodeStatus, moment: Moment
    ) -> Sequence[Effect]:
        own_age_ms = view.age_ms(status.name)
        ages_ms = self._ages(view, quorum, status.name, moment)
        if _is_below(own_age_ms, self._timing.node_timeout_ms):
            self._wake_in(self._timing.node_timeout_ms - (own_age_ms or 0), moment)
            return (
                self._judge_brain(cib, view, status, moment)
                or self._judge_hearing(cib, view, quorum, status, moment)
                or self._judge_part(cib, view, quorum, status, moment)
            )
        waits_until = self._waits_until(view, status)
        if moment.now < waits_until:
            self._wake_in(waits_until - moment.now, moment)
            return ()
        unsure = self._unsure(view, quorum, status.name, moment)
        if unsure and self._rules.lost_needs_whole_quorum:
            # Each of them will report again, or fall silent itself.
            self._wake_in(min(self._timing.node_timeout_ms - (view.age_ms(voter) or 0) for voter in unsure), moment)
            # A node that has just died was last heard by some voter slightly later than here: that is no partial cut.
            fresh_ms = FRESH_HEARTBEATS * self._timing.heartbeat_ms
            fresh = [voter for voter in unsure if ages_ms[voter] < fresh_ms]
            return self._heard_by_others(cib, view, status, fresh, moment) if fresh else ()
        if status.state is NodeState.UNSEEN and not self._is_unseen_fenced(cib):
            return ()
        oldest = min(ages_ms.values())
        reason = f"no voter heard it for {oldest} ms" if own_age_ms is not None else "not seen since the DC began"
        return (self._lost(status, reason, ages_ms),)

    def _waits_until(self, view: _View, status: NodeStatus) -> Instant:
        """Return until when to wait for a node that is not heard.

        The silence of an incarnation that was heard is measured directly. If an earlier one was heard, or none, a
        joined incarnation is given node-timeout, and a member that may never have started is given longer. If another
        voter has heard the incarnation, it existed: having listened for node-timeout is then enough, for a new pacer
        too.
        """
        known = view.heard.get(status.name)
        heard = known if known is not None and known.age_ms is not None else None
        if status.state is NodeState.ONLINE and heard is not None and heard.incarnation == status.incarnation:
            return Instant(0)
        if status.state is NodeState.ONLINE and _is_known_to_a_voter(view, status):
            return after(self._since, self._timing.node_timeout_ms)
        assert self._known is not None
        since = max(self._known[status.name][1], self._since)
        was_heard_or_joined = since > self._since or heard is not None
        is_sure_to_be_there = status.state is NodeState.ONLINE and was_heard_or_joined
        return after(since, self._timing.node_timeout_ms if is_sure_to_be_there else self._timing.unseen_wait_ms)

    def _unsure(
        self, view: _View, quorum: tuple[NodeName, ...], node: NodeName, moment: Moment
    ) -> list[NodeName]:
        """Return the voters of the quorum, except the DC, that may have heard `node` within node-timeout.

        A voter's statement holds for the time when it was made: it may have heard the node since. A voter that does not
        name the node has not heard it for as long as it is known to have listened.
        """
        unsure = []
        for voter in quorum:
            if voter in (node, self._node):
                continue
            silent_ms = view.heard[voter].hears.get(node)
            if silent_ms is None:
                begin = self._since if view.age_ms(node) is None else moment.now
                silent_ms = moment.now - self._blank_since.setdefault((voter, node), begin)
            else:
                self._blank_since.pop((voter, node), None)
            if silent_ms < self._timing.node_timeout_ms:
                unsure.append(voter)
        return unsure

    def _ages(
        self, view: _View, quorum: tuple[NodeName, ...], node: NodeName, moment: Moment
    ) -> dict[NodeName, int]:
        """Return how many ms ago each voter of the quorum heard `node`; never: the time since the DC's start."""
        never_ms = moment.now - self._since
        ages: dict[NodeName, int] = {}
        for voter in quorum:
            if voter == node:
                continue
            age = view.age_ms(node) if voter == self._node else view.age_through_ms(voter, node)
            ages[voter] = age if age is not None else max(never_ms, self._timing.node_timeout_ms)
        return ages

    def _has_waited(self, moment: Moment) -> bool:
        return moment.now - self._since >= self._timing.unseen_wait_ms

    def _judge_brain(self, cib: Cib, view: _View, status: NodeStatus, moment: Moment) -> Sequence[Effect]:
        heard = view.heard[status.name]
        if heard.brain is BrainState.ALIVE:
            return ()
        away_ms = heard.brain_since_ms + (view.age_ms(status.name) or 0)
        if away_ms < self._timing.brain_timeout_ms:
            self._wake_in(self._timing.brain_timeout_ms - away_ms, moment)
            return ()
        if status.state is NodeState.UNSEEN and not (self._is_unseen_fenced(cib) and self._has_waited(moment)):
            return ()
        if self._is_from_before_its_join(view, status, moment):
            return ()
        return (self._lost(status, f"its daemon is {heard.brain} for {away_ms} ms", {self._node: away_ms}),)

    def _is_from_before_its_join(self, view: _View, status: NodeStatus, moment: Moment) -> bool:
        """Return whether the newest heartbeat may be from before this incarnation joined, and so proves nothing.

        A daemon that joins and ends repeatedly is still judged, by the heartbeats soon after each of its Joins.
        """
        assert self._known is not None
        joined_at = self._known[status.name][1]
        age_ms = view.age_ms(status.name) or 0
        is_older = moment.now - age_ms < after(joined_at, self._timing.heartbeat_ms)
        if joined_at == self._since or not is_older:
            return False
        self._wake_in(self._timing.heartbeat_ms, moment)
        return True

    def _judge_hearing(
        self, cib: Cib, view: _View, quorum: tuple[NodeName, ...], status: NodeStatus, moment: Moment
    ) -> Sequence[Effect]:
        """Judge a node that is heard, but cannot be given orders because it does not hear the DC.

        A node that no majority of voters can echo has no lease: it has stopped its resources, and they run nowhere.
        """
        hears_dc = self._hears(view, status.name, self._node)
        is_echoed = self._may_be_echoed(view, status.name)
        if status.state is not NodeState.ONLINE or (hears_dc and is_echoed):
            self._unheard_since.pop(status.name, None)
            return ()
        deaf_at = after(self._unheard_since.setdefault(status.name, moment.now), self._timing.node_timeout_ms)
        if moment.now < deaf_at:
            self._wake_in(deaf_at - moment.now, moment)
            return ()
        if hears_dc:
            return self._give_up_without_echo(cib, quorum, status, moment)
        if not is_echoed:
            return (self._lost(status, "it is heard, but hears no majority of voters", {}),)
        hearing = [voter for voter in quorum if voter != self._node and self._hears(view, status.name, voter)]
        return self._heard_by_others(cib, view, status, hearing, moment)

    def _may_be_echoed(self, view: _View, node: NodeName) -> bool:
        """Return whether a majority of the voters may echo a node (safety.md §2, "Lease"); a voter counts itself.

        A voter may do so if the node hears it, and it hears the node or is not heard here, so that this is unknown.
        """
        echoing = [
            voter
            for voter in view.voters
            if voter == node
            or (
                self._hears(view, node, voter)
                and (not self._hears(view, self._node, voter) or self._hears(view, voter, node))
            )
        ]
        return len(echoing) * 2 > len(view.voters)

    def _give_up_without_echo(
        self, cib: Cib, quorum: tuple[NodeName, ...], status: NodeStatus, moment: Moment
    ) -> Sequence[Effect]:
        """Declare a node lost that has two-way links with too few voters, at most one node per node-timeout.

        Not if fewer than a majority of the voters would be left: the DC itself would have no lease then.
        """
        voters = cib.voters()
        if 2 * len([voter for voter in quorum if voter != status.name]) <= len(voters):
            return ()
        if moment.now < self._next_one_way_at:
            self._wake_in(self._next_one_way_at - moment.now, moment)
            return ()
        self._next_one_way_at = after(moment.now, self._timing.node_timeout_ms)
        return (self._lost(status, "it is heard, but has links both ways with no majority of voters", {}),)

    # -- who is there and takes no part ------------------------------------------------------------------------------

    def _judge_part(
        self, cib: Cib, view: _View, quorum: tuple[NodeName, ...], status: NodeStatus, moment: Moment
    ) -> Sequence[Effect]:
        """Declare a node lost whose daemon is alive and takes no part: TCP is filtered, or it does not join."""
        if not self._rules.heard_must_take_part:
            return ()
        heard = view.heard[status.name]
        if status.state is NodeState.UNSEEN and not (self._is_unseen_fenced(cib) and self._has_waited(moment)):
            return ()
        if heard.incarnation != status.incarnation:
            return self._judge_unjoined(cib, view, quorum, status, moment)
        follower = self._behind().get(status.name)
        if follower is None or self._followers is None:
            return ()
        if moment.now - self._followers.at > self._timing.node_timeout_ms:
            return ()  # What has changed since then is unknown: the store will report it.
        assert self._known is not None
        # An incarnation that has just joined may be newer than the store's last report: it was away until then.
        began_at = max(self._since, self._known[status.name][1])
        silent_ms = moment.now - max(follower.answered_at, began_at)
        idle_ms = moment.now - max(follower.advanced_at, began_at)
        limit_ms = self._timing.brain_timeout_ms
        if silent_ms >= limit_ms:
            text = f"it is heard, but its daemon has not answered the DC for {silent_ms} ms: " \
                   f"check {_ports_of(cib, status.name)}"
            target = self._linked_target(cib, view, quorum, status.name, moment)
            return self._give_up(status, target, self._lost(status, text, {self._node: silent_ms}), moment)
        if idle_ms >= DISK_SHARE * limit_ms:
            text = f"it is heard and its daemon answers, but has made no entry of the log durable for {idle_ms} ms: " \
                   "look at its disk"
            return (self._lost(status, text, {self._node: idle_ms}),)
        self._wake_in(min(limit_ms - silent_ms, DISK_SHARE * limit_ms - idle_ms), moment)
        return ()

    def _behind(self) -> Mapping[NodeName, Follower]:
        return {follower.name: follower for follower in self._followers.behind} if self._followers is not None else {}

    def _judge_unjoined(
        self, cib: Cib, view: _View, quorum: tuple[NodeName, ...], status: NodeStatus, moment: Moment
    ) -> Sequence[Effect]:
        """Judge a node heard under another incarnation than the CIB's: nobody manages the resources of that one."""
        waited_ms = moment.now - self._unjoined_since.setdefault(status.name, moment.now)
        if waited_ms < self._timing.brain_timeout_ms:
            self._wake_in(self._timing.brain_timeout_ms - waited_ms, moment)
            return ()
        began = "" if status.incarnation is None else "began again and "
        text = f"it is heard, but its daemon {began}has not joined for {waited_ms} ms: " \
               f"see crm status there, and check {_ports_of(cib, status.name)}"
        target = self._linked_target(cib, view, quorum, status.name, moment)
        return self._give_up(status, target, self._lost(status, text, {self._node: waited_ms}), moment)

    def _give_up(
        self, status: NodeStatus, target: NodeName | None, loss: Effect, moment: Moment
    ) -> Sequence[Effect]:
        """Hand over, once, to a voter that has a session with the node; a node that answers no leader is lost."""
        key = (status.name, status.incarnation)
        first_at = self._handed_over.get(key)
        if first_at is not None and moment.now - first_at > REMEMBERED_SHARE * self._timing.brain_timeout_ms:
            first_at = None
        is_tried = first_at is not None and moment.now - first_at > self._timing.node_timeout_ms
        if target is not None and not is_tried and self._rules.linked_node_leads_first:
            self._handed_over[key] = moment.now if first_at is None else first_at
            self._wake_in(self._timing.election_max_ms, moment)
            text = f"the daemon of {status.name} does not answer here and has a session with {target}; " \
                   "handing over to it"
            return (Note("leadership", text), TransferLeadership(target))
        return (loss,)

    def _linked_target(
        self, cib: Cib, view: _View, quorum: tuple[NodeName, ...], node: NodeName, moment: Moment
    ) -> NodeName | None:
        """Return a voter that takes part and has sessions with this node, with the DC and with all who take part.

        None if there is no such voter, or the DC itself has had a session with the node during the whole wait.
        """
        behind = self._behind()
        cut_at = self._cut_at.get(node)
        if node not in behind or cut_at is None or moment.now - cut_at >= self._timing.brain_timeout_ms:
            return None
        online = [name for name, status in cib.status.nodes.items() if status.state is NodeState.ONLINE]
        wanted = {node, *(name for name in online if name not in behind)}
        for voter in sorted(quorum, key=lambda name: (cib.members[name].is_witness, name)):
            heard = view.heard.get(voter)
            is_there = voter in wanted and voter not in (node, self._node) and heard is not None
            if is_there and heard is not None and wanted <= {*heard.linked, voter}:
                return voter
        return None

    def _hears(self, view: _View, listener: NodeName, speaker: NodeName) -> bool:
        """Return whether one node heard another within node-timeout, as far as the DC knows."""
        age = view.age_ms(speaker) if listener == self._node else view.age_through_ms(listener, speaker)
        return _is_below(age, self._timing.node_timeout_ms)

    def _heard_by_others(
        self, cib: Cib, view: _View, status: NodeStatus, hearing: list[NodeName], moment: Moment
    ) -> Sequence[Effect]:
        """Judge a node cut off from the DC only: hand over to a node that hears all, or fence the least linked one."""
        since = self._unheard_since.setdefault(status.name, moment.now)
        for target in sorted(hearing):
            if target != self._node and may_lead(cib, target) and self._hears_all(cib, view, target):
                text = f"{status.name} is cut from here, not from {', '.join(hearing)}; handing over to {target}"
                return (Note("leadership", text), TransferLeadership(target))
        wait_until = max(after(since, self._timing.one_way_ms), self._next_one_way_at)
        if moment.now < wait_until:
            self._wake_in(wait_until - moment.now, moment)
            return ()
        loser = self._fewest_links(cib, view)
        if loser is None:
            return ()
        self._next_one_way_at = after(moment.now, self._timing.node_timeout_ms)
        reason = "it has the fewest links in a cluster that is cut in part"
        return (self._lost(cib.status.nodes[loser], reason, {}),)

    def _hears_all(self, cib: Cib, view: _View, voter: NodeName) -> bool:
        """Return whether a voter hears every other node, and each of those that the DC hears hears the voter."""
        others = [
            name for name, status in cib.status.nodes.items() if status.state is NodeState.ONLINE and name != voter
        ]
        return voter in cib.voters() and all(
            self._hears(view, voter, name)
            and (not self._hears(view, self._node, name) or self._hears(view, name, voter))
            for name in others
            if name != self._node
        ) and self._hears(view, voter, self._node)

    def _fewest_links(self, cib: Cib, view: _View) -> NodeName | None:
        """Return the online node with the fewest two-way links, of equals the last by name; never the DC."""
        online = sorted(name for name, status in cib.status.nodes.items() if status.state is NodeState.ONLINE)

        def links(node: NodeName) -> int:
            others = [other for other in online if other != node]
            return sum(1 for other in others if self._hears(view, node, other) and self._hears(view, other, node))

        candidates = [name for name in online if name != self._node]
        return min(reversed(candidates), key=links, default=None)

    def _lost(self, status: NodeStatus, reason: str, ages_ms: Mapping[NodeName, int]) -> Effect:
        command = Lost(status.name, status.incarnation, self._term, reason, dict(ages_ms))
        return Propose(Scope.DC, f"lost:{status.name}:{status.incarnation}:{self._term}", command)

    def _wake_in(self, span_ms: int, moment: Moment) -> None:
        self._wake_at = min(self._wake_at, after(moment.now, max(1, span_ms)))


def _is_known_to_a_voter(view: _View, status: NodeStatus) -> bool:
    token = status.incarnation.token if status.incarnation is not None else None
    return any(voter.hears_token.get(status.name) == token for voter in view.heard.values())


def _ports_of(cib: Cib, node: NodeName) -> str:
    """Return the TCP ports of a node's daemon, as text."""
    return "TCP " + ", ".join(f"{host}:{port}" for host, port in cib.members[node].addresses)


def _is_below(age_ms: int | None, limit_ms: int) -> bool:
    return age_ms is not None and age_ms < limit_ms
