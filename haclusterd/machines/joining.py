"""How this node joins the cluster, stays in it and leaves it.

A daemon joins under the incarnation that it drew at its start. It draws a new one and joins again when the previous
incarnation is over although the process lives on: it was declared lost or fenced, or its lease ended and it has stopped
its resources on its own. The new incarnation can then never execute orders of the previous one (safety.md §1, §4).
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from haclusterd.cib.activity import possibly_serving
from haclusterd.cib.apply_fencing import order_at_work
from haclusterd.cib.changes import Refusal, RefusalCode
from haclusterd.cib.commands import Join, Leaving, PublishWatchdog, RequestLeave
from haclusterd.machines.effects import Effect, Note, Propose, Scope, TransferLeadership
from haclusterd.machines.moment import Moment
from haclusterd.model.cluster import FIRST_FEATURE_LEVEL, Cib, NodeState, NodeStatus
from haclusterd.model.followers import Followers
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import NEVER, Instant, after
from haclusterd.model.records import dataclass
from haclusterd.model.state_tables import Transition, TransitionTable
from haclusterd.model.watchdog import Watchdog
from haclusterd.scheduler.unpack.management import unmanaged

HELD_REFUSALS = (RefusalCode.HELD_FENCING_IN_FLIGHT, RefusalCode.NEEDS_UPGRADE, RefusalCode.NOT_A_MEMBER)
"""Refusals after which a daemon stays outside and asks again: a new incarnation would not change them."""
NO_PACER = "haclusterd-pacer does not answer; on that node: systemctl status haclusterd-pacer"
HELD_RETRY_MS = 500
"""Pause before asking again to join while this node is being fenced."""


class JoinState(StrEnum):
    """The state of this node's membership."""

    OUTSIDE = "outside"
    """Not joined under the present incarnation."""
    HELD = "held"
    """Its Join waits until a fencing of this node has ended."""
    JOINED = "joined"
    OVER = "over"
    """The present incarnation is over; a new one is needed."""
    LEFT = "left"


class JoinEvent(StrEnum):
    """What changes that state."""

    ONLINE = "the CIB has this incarnation online"
    HELD = "its Join was refused for now"
    GIVEN_UP = "the CIB has this incarnation lost or fenced"
    SUPERSEDED = "the CIB has another incarnation, or refuses this one as old"
    LEFT = "the CIB says that it has left"
    NEW_INCARNATION = "a new incarnation was drawn"


_ANY = tuple(JoinState)
JOINING: Final = TransitionTable(
    "The membership of a node, as its daemon sees it",
    "What the CIB says decides, whatever the daemon believed before.",
    (JoinState.OUTSIDE,),
    (
        Transition(_ANY, JoinEvent.ONLINE, JoinState.JOINED),
        Transition(_ANY, JoinEvent.HELD, JoinState.HELD),
        Transition(_ANY, JoinEvent.GIVEN_UP, JoinState.OVER),
        Transition(_ANY, JoinEvent.SUPERSEDED, JoinState.OVER),
        Transition(_ANY, JoinEvent.LEFT, JoinState.LEFT),
        Transition(_ANY, JoinEvent.NEW_INCARNATION, JoinState.OUTSIDE),
    ),
)


@dataclass(frozen=True, slots=True)
class DrawIncarnation:
    """Draw a new incarnation and pass it to every machine and the pacer."""


@dataclass(frozen=True, slots=True)
class WatchdogState:
    """The state of this node's watchdog device."""

    watchdog: Watchdog | None = None
    """The device that the pacer feeds."""
    is_settled: bool = True
    """Whether the pacer has opened the configured device, or reported why it could not; True if none is configured."""


NO_WATCHDOG = WatchdogState()


class JoiningMachine:
    """This node's membership; see the module."""

    def __init__(
        self,
        node: NodeName,
        incarnation: Incarnation,
        feature_level: int = FIRST_FEATURE_LEVEL,
        secret_key: str = "",
    ) -> None:
        """`secret_key`: the public key for which secrets are sealed for this node."""
        self._node = node
        self._secret_key = secret_key
        self._feature_level = feature_level
        self._incarnation = incarnation
        self._state = JoinState.OUTSIDE
        self._attempt = 0
        self._retry_at = NEVER
        self._is_leaving = False
        self._held_because = ""
        self._lacks_pacer = False

    @property
    def state(self) -> JoinState:
        """The state of this node's membership."""
        return self._state

    @property
    def held_because(self) -> str:
        """Why its Join is held; empty when it is not."""
        if self._lacks_pacer:
            return NO_PACER
        return self._held_because if self._state is JoinState.HELD else ""

    def reincarnated(self, incarnation: Incarnation) -> None:
        """Start a new incarnation."""
        self._incarnation = incarnation
        self._happened(JoinEvent.NEW_INCARNATION)
        self._attempt += 1
        self._retry_at = NEVER

    def leave(self) -> None:
        """Ask to be drained and to leave (SIGTERM)."""
        self._is_leaving = True

    def refused(self, refusal: Refusal, moment: Moment) -> None:
        """Take the refusal of a Join: ask again later; a Join that was only held keeps its incarnation."""
        if refusal.code in HELD_REFUSALS:
            self._happened(JoinEvent.HELD)
            self._held_because = refusal.text
            self._attempt += 1
            self._retry_at = after(moment.now, HELD_RETRY_MS)
        elif refusal.code is RefusalCode.OLD_INCARNATION:
            self._happened(JoinEvent.SUPERSEDED)

    def _happened(self, event: JoinEvent) -> None:
        self._state = JOINING.after(self._state, event)

    def step(
        self,
        cib: Cib,
        moment: Moment,
        *,
        has_acted_alone: bool,
        is_stopping_alone: bool,
        is_fencing: bool,
        is_leader: bool,
        device: WatchdogState = NO_WATCHDOG,
        has_pacer: bool = True,
        keeps_running: bool = False,
    ) -> Sequence[Effect | DrawIncarnation]:
        """Compare the CIB's status of this node with its own state, and return what follows.

        `is_fencing`: fence agents of this incarnation are at work. The incarnation must not end before them: its orders
        would be closed as unknown, and a late `off` could hit a node that has come back. `device`: the watchdog, which
        a Join publishes. `has_pacer`: this node's pacer answers; a member without heartbeats would be declared lost and
        fenced. `keeps_running`: a node without a lease leaves its resources running (no-quorum-policy freeze, ignore).
        """
        status = cib.status.nodes.get(self._node)
        self._lacks_pacer = False
        if status is None:
            return ()
        self._observe(status)
        if self._state is JoinState.LEFT:
            return ()
        if has_acted_alone and (is_stopping_alone or self._is_leaving):
            return ()
        if self._state is JoinState.JOINED and has_acted_alone:
            is_over = moment.has_lease and not is_fencing
            return self._end_incarnation("its resources were stopped without a lease") if is_over else ()
        if self._state is JoinState.JOINED:
            # An administrator may have asked this node to leave; its daemon runs on until it is removed or restarted.
            is_leaving = self._is_leaving or status.is_leaving
            left = self._leave_step(cib, status, moment, is_leader=is_leader) if is_leaving else ()
            return (*self._publish(status, device), *left)
        if self._state is JoinState.OVER:
            # What a wrongly fenced incarnation runs must be stopped first: it may be starting on another node.
            # What a lost incarnation runs is about to be fenced, and has no lease.
            is_given_up = status.state is NodeState.FENCED or (status.state is NodeState.LOST and not keeps_running)
            is_own = status.incarnation == self._incarnation
            must_stop_first = is_given_up and (is_own or status.state is NodeState.FENCED) and not has_acted_alone
            return () if must_stop_first or is_fencing else self._end_incarnation(f"it is {status.state}")
        self._lacks_pacer = not has_pacer
        return self._ask(moment, device) if has_pacer and device.is_settled else ()

    def _publish(self, status: NodeStatus, device: WatchdogState) -> Sequence[Effect]:
        """Publish that another device is fed than the one that survivors count on, or none."""
        if not device.is_settled or device.watchdog == status.watchdog:
            return ()
        timeout_ms = device.watchdog.timeout_ms if device.watchdog is not None else 0
        command = PublishWatchdog(self._node, self._incarnation, device.watchdog)
        return (Propose(Scope.INCARNATION, f"watchdog:{self._incarnation}:{timeout_ms}", command),)

    def _end_incarnation(self, why: str) -> Sequence[Effect | DrawIncarnation]:
        return (Note("reincarnation", f"this incarnation is over: {why}"), DrawIncarnation())

    def _ask(self, moment: Moment, device: WatchdogState) -> Sequence[Effect]:
        """Ask to join, with or without a lease: no voter echoes a lost node until its next Join is applied."""
        if self._state is JoinState.HELD:
            if moment.now < self._retry_at:
                return ()
            self._retry_at = after(moment.now, HELD_RETRY_MS)
        join = Join(self._node, self._incarnation, device.watchdog, self._feature_level, self._secret_key)
        return (Propose(Scope.INCARNATION, f"join:{self._incarnation}:{self._attempt}", join),)

    def _observe(self, status: NodeStatus) -> None:
        if status.incarnation != self._incarnation:
            if self._state is JoinState.JOINED:
                self._happened(JoinEvent.SUPERSEDED)
        elif status.state is NodeState.ONLINE:
            self._happened(JoinEvent.ONLINE)
        elif status.state is NodeState.LEFT or status.has_detached:
            self._happened(JoinEvent.LEFT)
        else:
            self._happened(JoinEvent.GIVEN_UP)

    def _leave_step(self, cib: Cib, status: NodeStatus, moment: Moment, *, is_leader: bool) -> Sequence[Effect]:
        if not status.is_leaving:
            request = RequestLeave(self._node, self._incarnation)
            return (Propose(Scope.INCARNATION, f"leave:{self._incarnation}", request),)
        if status.orders or order_at_work(cib, self._node) is not None:
            return ()
        running = possibly_serving(status)
        left_alone = unmanaged(cib, self._node, running, moment.wall) if running else frozenset()
        if left_alone != running:
            return ()
        if is_leader:
            target = transfer_target(cib, self._node)
            if target is not None:
                return (TransferLeadership(target),)
        leaving = Leaving(self._node, self._incarnation, tuple(sorted(running)))
        return (Propose(Scope.INCARNATION, f"left:{self._incarnation}", leaving),)

    def deadline(self) -> Instant:
        """Return when `step` must be called next."""
        return self._retry_at if self._state is JoinState.HELD else NEVER


def may_lead(cib: Cib, node: NodeName) -> bool:
    """Return whether a member is a voter that is online and stays: one that is lost could plan nothing as DC."""
    status = cib.status.nodes.get(node)
    is_there = status is not None and status.state is NodeState.ONLINE and not status.is_leaving
    return is_there and node in cib.voters()


def transfer_target(cib: Cib, node: NodeName, followers: Followers | None = None) -> NodeName | None:
    """Return another voter that may lead, the first by name; a witness only if there is no other.

    Of `followers` those that do not answer come last, the longest silent at the end: nobody has declared a dead node
    lost as long as the DC itself is.
    """
    behind = {each.name: each for each in followers.behind} if followers is not None else {}

    def rank(name: NodeName) -> tuple[bool, bool, int, NodeName]:
        silent = behind.get(name)
        return silent is not None, cib.members[name].is_witness, -silent.answered_at if silent is not None else 0, name

    return min((name for name in cib.voters() if name != node and may_lead(cib, name)), key=rank, default=None)
