"""What the CIB says of this node: of its present incarnation, and of its boot.

A recorded fencing removes from the CIB what may be active on a node. A node that reads of its own death while it is
alive must still stop all of that, so the status before the record is kept here for as long as the boot lasts.
"""

from haclusterd.machines.no_quorum import LonePolicy, lone_policy, panics
from haclusterd.model.activity import may_hold_anything
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.fencing import DEATHS
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.rules_in_force import SafetyRules

IN_FORCE = (NodeState.ONLINE, NodeState.LOST)
"""States in which the CIB knows what may be active on a node."""


class OwnRecord:
    """The newest CIB, read from the point of view of one node."""

    def __init__(self, node: NodeName, incarnation: Incarnation, rules: SafetyRules) -> None:
        self._node = node
        self._incarnation = incarnation
        self._rules = rules
        self.cib = Cib()
        self.status: NodeStatus | None = None
        """The CIB's status of this node, of whatever incarnation."""
        self.policy = LonePolicy.STOP
        self.panics = False
        """Whether a node that is lost by its own CIB has its watchdog reset it at once."""
        self.in_force: NodeStatus | None = None
        """The CIB's newest status of this node in this boot: a recorded fencing drops it there, but not here."""
        self.holds_nothing = False
        """Whether nothing may be active here according to the CIB."""

    def begin_incarnation(self, incarnation: Incarnation) -> None:
        """Read the CIB for another incarnation from now on."""
        self._incarnation = incarnation

    def take(self, cib: Cib) -> None:
        """Take the newest applied CIB."""
        if cib.in_force is not self.cib.in_force:
            self.policy = lone_policy(cib.in_force)
            self.panics = panics(cib.in_force)
        self.cib = cib
        before, status = self.status, cib.status.nodes.get(self._node)
        if status is not before:
            self.status = status
            self.holds_nothing = status is not None and not may_hold_anything(status)
        if status is not None and status.state in IN_FORCE and self._is_of_this_boot(status):
            # A record that turned out wrong has dropped for good what runs here: the status before it counts.
            self.in_force = self.in_force if self.is_recorded_dead() else status

    @property
    def is_joined(self) -> bool:
        """Whether the CIB has this incarnation online."""
        status = self.status
        if status is None:
            return False
        if not self._rules.own_join_first:
            return True
        return status.incarnation == self._incarnation and status.state is NodeState.ONLINE

    def is_recorded_dead(self, cib: Cib | None = None) -> bool:
        """Return whether the newest joined incarnation of this boot was recorded as fenced, rightly or wrongly.

        By that record nothing runs here: every managed resource may be started on other nodes.
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
        """Return whether a node with a watchdog is lost in its present incarnation, or its boot is recorded as dead."""
        status = cib.status.nodes.get(self._node)
        if status is None or status.watchdog is None or status.state not in (NodeState.LOST, NodeState.FENCED):
            return False
        is_own = status.incarnation == self._incarnation and not status.has_detached
        return is_own or self.is_recorded_dead(cib)

    def _is_of_this_boot(self, status: NodeStatus) -> bool:
        return status.incarnation is not None and status.incarnation.boot_id == self._incarnation.boot_id
