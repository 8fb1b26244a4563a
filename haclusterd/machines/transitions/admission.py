"""What may be ordered now: the limits of a node and of the cluster, start-delays, and what safety forbids.

Nothing that makes a resource active is admitted while a lost node, not fenced yet, may hold it. Open orders of an older
transition block the resources that constraints bind to theirs until their executors have answered. A recurring monitor
lets starts on its node go first, for a moment: users wait for the next member of a group that moves.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from haclusterd.cib.activity import copies_of, unfenced_holders
from haclusterd.machines.moment import Moment
from haclusterd.machines.transitions.affinity import Affinity
from haclusterd.machines.transitions.start_delays import StartDelays
from haclusterd.machines.transitions.tracked_actions import ActionsByNode, ActionState, TrackedAction, is_migration
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.graph import GraphAction
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import NEVER, Instant, after
from haclusterd.model.ocf import ACTIVATING, ActionName
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.rules_in_force import SafetyRules

OPEN_ON_NODE_MAX = 64
"""Maximum number of open orders on one node: more than it can run at once, few enough to keep the status small and to
be handled in one step."""
MONITORS_WAIT_MS = 250
"""How long a recurring monitor lets starts on its node go first: users wait for these."""


class Admission:
    """What may be ordered in one step, by one CIB; made for that step."""

    def __init__(
        self,
        cib: Cib,
        moment: Moment,
        actions: ActionsByNode,
        delays: StartDelays,
        rules: SafetyRules,
        *,
        is_closing: bool,
    ) -> None:
        self._cib = cib
        self._moment = moment
        self._actions = actions
        self._delays = delays
        # A notification activates nothing: after an abort it does not wait for orders of other transitions.
        self._guard = _Guard(cib, rules, None if is_closing else _blocked_resources(cib, actions, rules))
        self._limits = _Limits(ClusterProperties(cib.in_force))
        self.deadline: Instant = NEVER
        """When the first of the actions that `choose` has left waiting may be ordered."""

    def choose(self) -> list[TrackedAction]:
        """Return what may be ordered now: for each node the most urgent actions, as many as it has room for."""
        chosen: list[TrackedAction] = []
        for node, ready in self._actions.ready.items():
            room = self._room_on(node)
            if room <= 0 or not ready:
                continue
            self._actions.sort(node)
            is_starting = self._actions.is_starting_on(node)
            migrations = sum(is_migration(each.action) for each in self._actions.issued.get(node, {}).values())
            admitted = (each for each in ready if self._may_begin(each))
            due = (
                each for each in admitted if not any(self._waits(one, is_starting) for one in each.together or (each,))
            )
            chosen.extend(islice(_few_migrations(due, self._limits.migrations - migrations), room))
        return chosen

    def room(self, otherwise: int) -> int:
        """Return how many more orders the cluster may have open by `batch-limit`; `otherwise`: there is no limit."""
        limit = ClusterProperties(self._cib.in_force).integer("batch-limit")
        if limit <= 0:
            return otherwise
        return max(0, limit - sum(len(status.orders) for status in self._cib.status.nodes.values()))

    def _room_on(self, node: NodeName | None) -> int:
        status = self._cib.status.nodes.get(node) if node is not None else None
        issued = self._actions.issued.get(node, {})
        open_keys = {*issued, *status.orders} if status is not None else set(issued)
        return self._limits.of(status) - len(open_keys)

    def _may_begin(self, tracked: TrackedAction) -> bool:
        """Return whether an action may be ordered now; a start of a gang only if all its starts may."""
        if not tracked.together:
            return self._guard.admits(tracked.action)
        return all(
            each.state is ActionState.READY
            and self._guard.admits(each.action)
            and self._room_on(each.action.node) > 0
            for each in tracked.together
        )

    def _waits(self, tracked: TrackedAction, is_starting: bool) -> bool:
        """Return whether an action has a start-delay left, or is a monitor that lets starts on its node go first.

        The executor delays the first run of a recurring monitor itself.
        """
        action, now = tracked.action, self._moment.now
        if action.interval_ms:
            span_ms = MONITORS_WAIT_MS if is_starting and action.is_named(ActionName.MONITOR) else 0
        else:
            span_ms = action.start_delay_ms
        if not span_ms:
            return False
        if tracked.waits_until is None:
            ready_at = now if action.interval_ms else self._delays.ready_since(action, now)
            tracked.waits_until = after(ready_at, span_ms)
        if now >= tracked.waits_until:
            return False
        self.deadline = min(self.deadline, tracked.waits_until)
        return True


def _blocked_resources(cib: Cib, actions: ActionsByNode, rules: SafetyRules) -> Affinity | None:
    """Return the resources bound to one on which an order of an older graph is at work; None: there are none."""
    foreign = {
        order.resource
        for status in cib.status.nodes.values()
        if status.state is NodeState.ONLINE
        for key, order in status.orders.items()
        if key not in actions.by_order and (rules.open_orders_possibly_active or not order.is_activating)
    }
    return Affinity(cib.configuration, foreign) if foreign else None


class _Limits:
    """How many actions one node runs at once (Pacemaker Explained, "Cluster Options")."""

    def __init__(self, properties: ClusterProperties) -> None:
        stated, migrations = properties.integer("node-action-limit"), properties.integer("migration-limit")
        self.actions = min(stated, OPEN_ON_NODE_MAX) if stated > 0 else OPEN_ON_NODE_MAX
        self.migrations = OPEN_ON_NODE_MAX if migrations < 0 else max(1, migrations)

    def of(self, status: NodeStatus | None) -> int:
        """Return how many actions a node may have open, by the properties and its load."""
        left = status.actions_max if status is not None else 0
        return min(self.actions, left) if left else self.actions


def _few_migrations(due: Iterable[TrackedAction], room: int) -> Iterator[TrackedAction]:
    """Yield what is due, with no more migrations than there is room for."""
    for tracked in due:
        if is_migration(tracked.action):
            if room <= 0:
                continue
            room -= 1
        yield tracked


class _Guard:
    """What must not be ordered yet, by one CIB."""

    def __init__(self, cib: Cib, rules: SafetyRules, blocked: Affinity | None) -> None:
        self._cib = cib
        self._blocked = blocked
        is_fencing_enabled = ClusterProperties(cib.in_force).boolean("fencing-enabled")
        is_any_lost = any(status.state is NodeState.LOST for status in cib.status.nodes.values())
        self._has_holders = rules.fence_before_recovery and is_fencing_enabled and is_any_lost
        self._copies = copies_of(cib)

    def admits(self, action: GraphAction) -> bool:
        """Return whether an action may be ordered now."""
        if action.resource is None or action.node is None:
            return False
        if self._blocked is not None and self._blocked.touches(action.resource):
            return False
        if action.name not in ACTIVATING or not self._has_holders:
            return True
        holders = unfenced_holders(self._cib, action.resource)
        return not holders or len(holders) < self._copies.most(action.resource)
