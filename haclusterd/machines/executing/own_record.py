"""What the CIB says of this node: of its present life, and of the boot in which it lives.

A recorded fencing drops from the CIB what may be active on a node. A node that reads of its own death, and lives, must
still stop all that: so what was in force before is kept here for as long as the boot lasts.
"""

from haclusterd.machines.no_quorum import LonePolicy, lone_policy, panics
from haclusterd.model.activity import may_hold_anything
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.rules_in_force import SafetyRules

DEATHS = (FenceOutcome.FENCED, FenceOutcome.CONFIRMED)
IN_FORCE = (NodeState.ONLINE, NodeState.LOST)
"""States in which the CIB knows what may be active on a node."""


class OwnRecord:
    """The newest CIB, read by the node that it is about."""

    def __init__(self, node: NodeName, incarnation: Incarnation, rules: SafetyRules) -> None:
        self._node = node
        self._incarnation = incarnation
        self._rules = rules
        self.cib = Cib()
        self.status: NodeStatus | None = None
        """What it says of this node, whichever life."""
        self.policy = LonePolicy.STOP
        self.panics = False
        """Whether a node that finds itself lost has its watchdog reset it at once."""
        self.in_force: NodeStatus | None = None
        """What the CIB last knew of this node in this boot: a recorded fencing drops it there, but not here."""
        self.holds_nothing = False
        """Whether nothing may be active here, as the CIB has it."""

    def begin_life(self, incarnation: Incarnation) -> None:
        """Read the CIB for another incarnation from here on."""
        self._incarnation = incarnation

    def take(self, cib: Cib) -> None:
        """Take in the newest applied CIB."""
        if cib.in_force is not self.cib.in_force:
            self.policy = lone_policy(cib.in_force)
            self.panics = panics(cib.in_force)
        self.cib = cib
        before, status = self.status, cib.status.nodes.get(self._node)
        if status is not before:
            self.status = status
            self.holds_nothing = status is not None and not may_hold_anything(status)
        if status is not None and status.state in IN_FORCE and self._is_of_this_boot(status):
            # A record that is disproved has dropped what runs here for good: it is the state before that counts.
            self.in_force = self.in_force if self.is_recorded_dead() else status

    @property
    def is_joined(self) -> bool:
        """Whether it has this incarnation online."""
        status = self.status
        if status is None:
            return False
        if not self._rules.own_join_first:
            return True
        return status.incarnation == self._incarnation and status.state is NodeState.ONLINE

    def is_recorded_dead(self, cib: Cib | None = None) -> bool:
        """Tell whether the newest life of this boot that has joined was recorded as fenced, disproved or not.

        By that record nothing runs here: whatever is managed may be started on other nodes.
        """
        cib = cib or self.cib
        status = cib.status.nodes.get(self._node)
        if status is None or not self._is_of_this_boot(status):
            return False
        return status.state is NodeState.FENCED or (
            status.state is NodeState.LOST
            and any(
                record.target == self._node
                and record.target_incarnation == status.incarnation
                and record.outcome in DEATHS
                for record in cib.status.fencing_history
            )
        )

    def is_given_up(self, cib: Cib) -> bool:
        """Tell whether a node with a watchdog finds its present life lost, or the death of its boot recorded."""
        status = cib.status.nodes.get(self._node)
        if status is None or status.watchdog is None or status.state not in (NodeState.LOST, NodeState.FENCED):
            return False
        is_own = status.incarnation == self._incarnation and not status.has_detached
        return is_own or self.is_recorded_dead(cib)

    def _is_of_this_boot(self, status: NodeStatus) -> bool:
        return status.incarnation is not None and status.incarnation.boot_id == self._incarnation.boot_id
