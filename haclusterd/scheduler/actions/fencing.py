"""Phase: fence what must be fenced, in which order, and let leave what is asked to.

Source: Pacemaker Explained, "Fencing"; safety.md §5. A lost node that no device can fence stays as it is, and what may
run there stays blocked there. A guest node is fenced by restarting its launcher. A stop on a node that is fenced is
done by the fencing: it becomes a pseudo-action that comes after it, and so does what depends on that stop.
"""

from __future__ import annotations

from haclusterd.model.cluster import NodeState
from haclusterd.model.graph import PRIORITY_DELAY
from haclusterd.model.ids import NodeName
from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.notifications import notify_after_fencing
from haclusterd.scheduler.model.definition import Needs, Variant
from haclusterd.scheduler.model.entities import Action, Node, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.relation_flags import (
    AFTER_FENCING,
    FIRST_IMPLIES_THEN,
    GUEST_ALLOWED,
    ORDERED,
    UNRUNNABLE_FIRST_BLOCKS,
)
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.model.tasks import DEMOTE, DO_SHUTDOWN, MIGRATE_FROM, MIGRATE_TO, PROMOTE, START, STOP


def create_fencing(inventory: Inventory, table: ActionTable, settings: Settings) -> None:
    """Create a fence action for each node that must and can be fenced, and shutdowns, with the orders among them."""
    _Fencing(inventory, table, settings).run()


class _Fencing:
    """Goes through the nodes once."""

    def __init__(self, inventory: Inventory, table: ActionTable, settings: Settings) -> None:
        self._inventory = inventory
        self._table = table
        self._settings = settings
        self._fences: list[Action] = []
        """Of all but the controller's own node."""
        self._shutdowns: list[Action] = []
        self._last: Action | None = None
        """What happens to the controller's own node."""

    def run(self) -> None:
        """Create everything; while nothing is managed, nothing is gained by fencing."""
        is_fencing = any(resource.is_managed for resource in self._inventory.primitives())
        for node in self._inventory.nodes:
            if node.is_guest:
                if is_fencing and node.must_be_reset and node.can_be_fenced:
                    self._fence_guest(node)
            elif is_fencing and node.is_unclean and node.can_be_fenced:
                self._fence(node)
            elif node.is_online and node.is_shutting_down and not node.is_remote:
                self._shut_down(node)
        self._order()

    def _fence(self, node: Node) -> None:
        fence = self._table.make_fence(node, self._settings.fencing_action)
        fence.reason = fence.why = node.fence_reason or "node is unclean"
        if self._settings.priority_fencing_delay_ms:
            fence.meta[PRIORITY_DELAY] = str(self._delay_s(node))
        order_fencing(fence, node, self._inventory, self._table, self._settings)
        if node.is_controller:
            self._last = fence
            return
        if not self._settings.is_fencing_concurrent and self._fences:
            self._table.relate(self._fences[-1], fence, ORDERED)
        self._fences.append(fence)

    def _delay_s(self, node: Node) -> int:
        """The half that loses its more important node waits, so that the other half fences first."""
        members = [each for each in self._inventory.nodes if not each.is_remote]
        is_even = sum(each.is_online for each in members) <= len(members) // 2
        priorities = {each.priority for each in members}
        if node.is_remote or node.is_online or not node.is_fence_delayed or not is_even or len(priorities) == 1:
            return 0
        return self._settings.priority_fencing_delay_ms // 1000 if node.priority == max(priorities) else 0

    def _fence_guest(self, node: Node) -> None:
        """A guest node is gone when its launcher has stopped; Pacemaker waits for one copy of a launcher of several."""
        connection = node.connection
        launcher = connection.launcher if connection is not None else None
        is_restarting = launcher is not None and bool(launcher.actions.get((START, 0)))
        fence = self._table.make_fence(node, "reboot" if is_restarting else "off")
        fence.is_pseudo = True
        fence.reason = fence.why = "guest is unclean"
        stops = launcher.actions.get((STOP, 0), []) if launcher is not None else []
        for stop in stops[-1:] if self._settings.options.is_pacemaker_compatible else stops:
            host = self._table.fences.get((stop.node.name, self._settings.fencing_action)) if stop.node else None
            before = host if stop.is_pseudo and host is not None else stop
            self._table.relate(before, fence, UNRUNNABLE_FIRST_BLOCKS | FIRST_IMPLIES_THEN)
        if not stops and connection is not None:
            for disconnect in connection.actions.get((STOP, 0), ()):
                self._table.relate(disconnect, fence, ORDERED)
        order_fencing(fence, node, self._inventory, self._table, self._settings)

    def _shut_down(self, node: Node) -> None:
        """A member of a running cluster leaves by itself once nothing runs there."""
        if not self._settings.options.is_pacemaker_compatible:
            return
        shutdown = self._table.make_cluster(None, DO_SHUTDOWN, node)
        for leaf in self._inventory.primitives():
            for stop in leaf.actions.get((STOP, 0), ()):
                if stop.node is node and not leaf.found.is_maintenance and (leaf.is_managed or leaf.is_blocked):
                    stop.is_optional = False
                    self._table.relate(stop, shutdown, ORDERED | UNRUNNABLE_FIRST_BLOCKS)
        if node.is_controller:
            self._last = shutdown
        else:
            self._shutdowns.append(shutdown)

    def _order(self) -> None:
        """The controller's own node comes last."""
        if self._last is None:
            return
        before = self._fences if self._settings.is_fencing_concurrent else self._fences[-1:]
        if not self._last.is_fence:
            before = [*self._shutdowns, *before]
        for action in before:
            self._table.relate(action, self._last, ORDERED)


def fencing_warnings(inventory: Inventory, settings: Settings) -> list[str]:
    """Say what cannot be recovered, and what is recovered without certainty."""
    found: list[str] = []
    for node in inventory.nodes:
        held = sorted(resource.id for resource in inventory.primitives() if node in resource.found.active_nodes)
        if node.is_unclean and not node.can_be_fenced:
            cause = "no fencing device can fence it" if not node.devices else "without quorum nothing is fenced"
            what = f"; not recovered: {', '.join(held)}" if held else ""
            found.append(f"{node.name} is lost ({node.fence_reason}) and {cause}{what}")
        elif node.status.state is NodeState.LOST and not settings.is_fencing_enabled:
            found.append(
                f"FENCING IS DISABLED: {node.name} is lost, and what it ran starts on other nodes although it may still"
                " run there; data may be destroyed"
            )
    found += [
        f"{resource.id} {_what_would_free(resource)}: {resource.failed_because}"
        for resource in inventory.primitives()
        if resource.is_blocked and resource.failed_because
    ]
    return found


def _what_would_free(resource: Resource) -> str:
    if resource.scores.frozen_by and not resource.found.is_blocked:
        return "stays where it is until the ticket is granted"
    return "is left alone until a person cleans up"


def impossible_fencing(table: ActionTable) -> tuple[tuple[NodeName, str, str], ...]:
    """Return node, action and reason of the fencings that are wanted and cannot be done."""
    return tuple(
        (node, task, fence.reason)
        for (node, task), fence in table.fences.items()
        if fence.is_required and not fence.is_runnable
    )


def unseen_hold(inventory: Inventory) -> str:
    """Say why what has never run yet must not start: a member that was not seen may run it (safety.md §6)."""
    if not inventory.nodes:
        return ""
    unseen = [node.name for node in inventory.nodes if node.is_never_seen]
    return f"{', '.join(unseen)} not seen yet, and not fenced" if unseen else ""


_WAITING = (START, PROMOTE, MIGRATE_TO, MIGRATE_FROM)


def order_fencing(fence: Action, node: Node, inventory: Inventory, table: ActionTable, settings: Settings) -> None:
    """Order after a fencing what must not be done before it, and make the stops that it stands for pseudo-actions."""
    for leaf in inventory.primitives():
        if leaf.is_managed:
            _order_starts(fence, leaf, node, table)
            _order_stops(fence, leaf, node, table, settings)


def _order_starts(fence: Action, leaf: Resource, node: Node, table: ActionTable) -> None:
    for task in _WAITING:
        for action in leaf.actions.get((task, 0), ()):
            if action.needs is Needs.FENCING:
                table.relate(fence, action, ORDERED)
            elif action.needs is Needs.QUORUM and task == START and _may_be_there(leaf, node):
                table.relate(fence, action, ORDERED | UNRUNNABLE_FIRST_BLOCKS)


def _may_be_there(leaf: Resource, node: Node) -> bool:
    parent = leaf.parent
    if parent is not None and parent.is_anonymous_clone and node.name in parent.found.known_on:
        return False
    return node.name in leaf.assignment.allowed and node.name not in leaf.found.known_on


def _order_stops(fence: Action, leaf: Resource, node: Node, table: ActionTable, settings: Settings) -> None:
    is_after = leaf.definition.needs is Needs.FENCING or node.is_guest or not settings.options.is_pacemaker_compatible
    is_in_bundle = leaf.outermost.variant is Variant.BUNDLE
    for stop in leaf.actions.get((STOP, 0), ()):
        if stop.node is not node:
            continue
        stop.is_pseudo = stop.is_runnable = True
        if is_after:
            if not is_in_bundle:
                table.relate(fence, stop, AFTER_FENCING | GUEST_ALLOWED | _blocking(settings))
            _before_outer_stop(fence, leaf, table)
        if leaf.definition.notifies:
            notify_after_fencing(fence, stop, leaf, table)
    for demote in leaf.actions.get((DEMOTE, 0), ()):
        if demote.node is not node or (node.is_online and not node.is_unclean and not leaf.found.is_failed):
            continue
        demote.is_pseudo = demote.is_runnable = True
        if is_after and not is_in_bundle:
            table.relate(fence, demote, AFTER_FENCING | GUEST_ALLOWED | ORDERED)


def _blocking(settings: Settings) -> int:
    """Pacemaker starts on another node what ran on a guest node whose launcher could not be stopped: two copies."""
    return 0 if settings.options.is_pacemaker_compatible else UNRUNNABLE_FIRST_BLOCKS


def _before_outer_stop(fence: Action, leaf: Resource, table: ActionTable) -> None:
    outer = leaf.top.actions.get((STOP, 0))
    if outer:
        table.relate(fence, outer[-1], AFTER_FENCING | GUEST_ALLOWED)
