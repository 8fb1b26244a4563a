"""All checkers of a run, each asked at every event at which its rule could be broken."""

from collections.abc import Callable
from typing import TypeVar

from haclusterd.cib import codec
from haclusterd.cib.changes import Applied
from haclusterd.cib.commands import Fenced, IssueOrders, Lost
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.orders import Order
from haclusterd.ports.agents import AgentCall
from haclusterd.simulator.checks.checker import Accepted, Checker, Log, Scene
from haclusterd.simulator.checks.checkers_of_leases import (
    LeaseEndsAfterLoss,
    LossIsJudgedUnderLease,
    NodesWithoutLeaseStop,
    StartsNeedALease,
    UnmanagedIsLeftAlone,
)
from haclusterd.simulator.checks.checkers_of_losses import (
    DisprovedFencingIsRepeated,
    FencedNodesAreDead,
    JoinsWaitForFencing,
    LostNodesAreSilent,
    NoRecoveryBeforeFence,
    RebootsClear,
    UnseenIsFenced,
)
from haclusterd.simulator.checks.checkers_of_orders import (
    AgentsFindWhatRuns,
    CibsAgree,
    NothingOfReplayRuns,
    OneAgentPerResource,
    OneControllerPerTerm,
    OrdersAreOpenWhenBegun,
    OrdersBeginInTime,
    OrdersFollowTheirTerm,
    OrdersRunByTheirIncarnation,
    OrdersRunOnce,
    OrdersSayWhatTheyRun,
    ResultsAreOfThisLife,
    StopsAreOrderedOnce,
)
from haclusterd.simulator.checks.shapes import Shapes
from haclusterd.simulator.hosts.alert_agents import DeliveredAlert
from haclusterd.simulator.hosts.truth import Holding

WATCHING: tuple[type[Checker], ...] = (
    NoRecoveryBeforeFence,
    UnseenIsFenced,
    OrdersRunOnce,
    OneAgentPerResource,
    AgentsFindWhatRuns,
    OrdersRunByTheirIncarnation,
    NothingOfReplayRuns,
    OrdersAreOpenWhenBegun,
    StartsNeedALease,
    LeaseEndsAfterLoss,
    CibsAgree,
    OneControllerPerTerm,
    OrdersFollowTheirTerm,
    LostNodesAreSilent,
    StopsAreOrderedOnce,
    OrdersSayWhatTheyRun,
    LossIsJudgedUnderLease,
    JoinsWaitForFencing,
    DisprovedFencingIsRepeated,
    RebootsClear,
    ResultsAreOfThisLife,
    OrdersBeginInTime,
    UnmanagedIsLeftAlone,
    NodesWithoutLeaseStop,
    FencedNodesAreDead,
)
"""Those of every run; a scenario adds its own."""

OneChecker = TypeVar("OneChecker", bound=Checker)


class Checkers:
    """All checkers of one run, and the log they share."""

    def __init__(self, scene: Scene) -> None:
        self.log = Log()
        self._scene = scene
        self._proposed: set[bytes] = set()
        self.all: list[Checker] = [kind(scene, self.log) for kind in WATCHING]
        self._concerned: dict[str, list[Checker]] = {}
        """Who looks at what: only those who have something to say are asked."""
        self._find_concerned()

    def add(self, *checkers: Checker) -> None:
        """Let some more look on."""
        self.all += checkers
        self._find_concerned()

    def one(self, kind: type[OneChecker], make: Callable[[], OneChecker]) -> OneChecker:
        """Return the checker of a kind; the first who asks for it has it made, and it looks on from then."""
        for checker in self.all:
            if isinstance(checker, kind):
                return checker
        made = make()
        self.add(made)
        return made

    def leave_out(self, kind: type[Checker]) -> None:
        """Ask a checker no more: what it objects to is what a scenario is about."""
        self.all = [each for each in self.all if not isinstance(each, kind)]
        self._find_concerned()

    def _find_concerned(self) -> None:
        for hook, base in vars(Checker).items():
            if callable(base):
                self._concerned[hook] = [each for each in self.all if getattr(type(each), hook) is not base]

    def holders_changed(self, begun: Holding, others: tuple[Holding, ...], *, has_moved: bool) -> None:
        """See `Witness`."""
        for checker in self._concerned["holders_changed"]:
            checker.holders_changed(begun, others, has_moved=has_moved)

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Witness`."""
        for checker in self._concerned["agent_begins"]:
            checker.agent_begins(node, call)

    def lease_published(self, node: NodeName, incarnation: Incarnation, until: Instant, until_us: int) -> None:
        """A pacer published a lease."""
        for checker in self._concerned["lease_published"]:
            checker.lease_published(node, incarnation, until, until_us)

    def proposed(self, node: NodeName, entry: bytes) -> None:
        """A daemon asks its store for an entry; it may have asked before."""
        if b'"Lost"' not in entry or entry in self._proposed:
            return
        self._proposed.add(entry)
        command = codec.decode_envelope(entry).command
        for checker in self._concerned["proposed"]:
            checker.proposed(node, command)

    def orders_received(self, node: NodeName, orders: tuple[Order, ...]) -> None:
        """A main loop was shown orders."""
        for checker in self._concerned["orders_received"]:
            checker.orders_received(node, orders)

    def looked_at(self, node: NodeName) -> None:
        """It is time to look at a node."""
        for checker in self._concerned["looked_at"]:
            checker.looked_at(node)

    def applied(self, node: NodeName, applied: Applied, before: Cib) -> None:
        """A replica applied an entry to the CIB `before`."""
        is_first = applied.cib.index not in self.log.cibs
        for checker in self._concerned["applied"]:
            checker.applied(node, applied.cib)
        if not is_first:
            return
        envelope = applied.envelope
        if envelope is not None and applied.refusal is None and not applied.is_repetition:
            accepted = Accepted(envelope.command, envelope.proposer, before, applied.cib)
            for checker in self._concerned["first_accepted"]:
                checker.first_accepted(accepted)
        self._note(applied)
        for checker in self._concerned["first_applied"]:
            checker.first_applied(applied)

    def restored(self, node: NodeName, cib: Cib) -> None:
        """A replica was restored from a snapshot."""
        for checker in self._concerned["applied"]:
            checker.applied(node, cib)
        if cib.index > self.log.newest.index:
            self.log.newest = cib
            self.log.shapes.configured(cib)

    def alert_begins(self, delivered: DeliveredAlert) -> None:
        """An agent of an alert is being executed."""
        for checker in self._concerned["alert_begins"]:
            checker.alert_begins(delivered)

    def another_log_begins(self) -> None:
        """People make another cluster of what is left, and have switched off whatever else there was."""
        self.log.newest = Cib()
        self.log.cibs.clear()
        self.log.shapes = Shapes()
        for checker in self.all:
            checker.another_log_begins()

    def _note(self, applied: Applied) -> None:
        log = self.log
        if applied.cib.index > log.newest.index:
            log.newest = applied.cib
            log.shapes.configured(applied.cib)
        if applied.envelope is None or applied.refusal is not None or applied.is_repetition:
            return
        match applied.envelope.command:
            case IssueOrders(orders=orders):
                log.orders.update({order.key: order for order in orders})
                for order in orders:
                    log.shapes.issued(order.key)
            case Lost(node=node, incarnation=incarnation) if incarnation is not None:
                log.lost_at_us.setdefault((node, incarnation), self._scene.world.now_us)
            case Fenced(node=node, incarnation=incarnation):
                log.fenced.add((node, incarnation))
            case _:
                pass
