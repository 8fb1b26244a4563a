"""Phase: what the plan means for each resource, in the words of an administrator.

Source: Pacemaker's transition summary. The words follow from all actions, also from those that cannot be done: a start
that is wanted and impossible is a blocked start.
"""

from __future__ import annotations

from collections.abc import Iterator

from haclusterd.model.graph import Change, ChangeKind
from haclusterd.model.ocf import Role
from haclusterd.model.records import dataclass
from haclusterd.scheduler.graph.reasons import reason_of
from haclusterd.scheduler.model.entities import Action, Node, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.tasks import DEMOTE, MIGRATE_FROM, PROMOTE, START, STOP


def changes_of(inventory: Inventory) -> tuple[Change, ...]:
    """Return the changes of all primitives in the order of decision, those of a bundle container by container."""
    return tuple(change for leaf in _in_order(inventory) for change in _changes(leaf))


def _in_order(inventory: Inventory) -> Iterator[Resource]:
    bundles: dict[int, Resource] = {}
    for leaf in inventory.primitives():
        bundle = leaf.outermost
        if not bundle.replicas:
            yield leaf
        elif id(bundle) not in bundles:
            bundles[id(bundle)] = bundle
            for each in bundle.replicas:
                parts = (each.ip, each.container, each.connection, each.child)
                yield from (part for part in parts if part is not None)


@dataclass(frozen=True, slots=True)
class _Way:
    """Where a primitive is and is to be, and the actions between."""

    resource: Resource
    origin: Node | None
    target: Node | None
    now_role: Role
    start: Action | None
    stop: Action | None
    promote: Action | None
    demote: Action | None

    @property
    def is_moving(self) -> bool:
        return self.origin is not None and self.target is not None and self.origin is not self.target

    def change(
        self,
        kind: ChangeKind,
        source: Action | None,
        cause: Action | None = None,
        *,
        origin: Node | None,
        target: Node | None,
    ) -> Change:
        """Make a change whose reason is its source's, or its cause's where that is given."""
        action = cause if cause is not None else source
        return Change(
            kind,
            self.resource.id,
            origin.name if origin is not None else None,
            target.name if target is not None else None,
            self.now_role,
            self.resource.assignment.next_role,
            reason_of(action) if action is not None else "",
            is_blocked=source is not None and not source.is_runnable,
            cause=action.reason if action is not None else "",
        )


def _changes(resource: Resource) -> Iterator[Change]:
    origin, target = resource.current_node(), resource.assignment.node
    is_gone = resource.found.is_removed and origin is None
    if is_gone or not resource.is_managed or (origin is None and target is None):
        return
    now_role = resource.found.original_role
    if now_role.value <= Role.STOPPED.value:
        now_role = Role.STARTED if origin is not None else Role.STOPPED
    way = _Way(
        resource,
        origin,
        target,
        now_role,
        start := _on(resource, START, target),
        _stop(resource, start, origin),
        _exactly_on(resource, PROMOTE, target),
        _exactly_on(resource, DEMOTE, target),
    )
    if now_role is resource.assignment.next_role:
        yield from _same_role(way)
    else:
        yield from _other_role(way)


def _on(resource: Resource, task: str, node: Node | None) -> Action | None:
    if node is None:
        return None
    known = resource.actions.get((task, 0), ())
    return next((item for item in reversed(known) if item.node is node or item.node is None), None)


def _exactly_on(resource: Resource, task: str, node: Node | None) -> Action | None:
    return next((item for item in reversed(resource.actions.get((task, 0), ())) if item.node is node), None)


def _stop(resource: Resource, start: Action | None, origin: Node | None) -> Action | None:
    known = resource.actions.get((STOP, 0), ())
    if start is None or not start.is_runnable:
        return known[0] if known else None
    found = _on(resource, STOP, origin)
    if found is None and resource.stops_unexpected_only and known:
        return known[-1]
    return found


def _same_role(way: _Way) -> Iterator[Change]:
    resource, origin, target, start = way.resource, way.origin, way.target, way.start
    arrival = _on(resource, MIGRATE_FROM, target)
    if arrival is not None and arrival.is_runnable and origin is not None:
        yield way.change(ChangeKind.MIGRATE, start, origin=origin, target=target)
    elif resource.is_reloading:
        yield way.change(ChangeKind.RELOAD, start, origin=origin, target=target)
    elif start is None or start.is_optional:
        if _is_due(way.demote) and _is_due(way.promote):
            yield way.change(ChangeKind.REPROMOTE, way.promote, way.demote, origin=origin, target=target)
    elif not start.is_runnable:
        cause = way.stop if way.stop is not None and way.stop.reason else start
        yield way.change(ChangeKind.STOP, way.stop, cause, origin=origin, target=None)
    elif way.is_moving:
        kind = ChangeKind.RECOVER if resource.found.is_failed else ChangeKind.MOVE
        yield way.change(kind, way.stop, origin=origin, target=target)
    elif resource.found.is_failed:
        yield way.change(ChangeKind.RECOVER, way.stop, origin=origin, target=origin)
    else:
        yield way.change(ChangeKind.RESTART, start, origin=origin, target=target)


def _other_role(way: _Way) -> Iterator[Change]:
    resource, origin, target = way.resource, way.origin, way.target
    start, stop, next_role = way.start, way.stop, way.resource.assignment.next_role
    if stop is not None and (next_role is Role.STOPPED or (start is not None and not start.is_runnable)):
        yield from _stops(way)
    elif stop is not None and resource.found.is_failed and resource.found.must_stop_when_failed:
        yield way.change(ChangeKind.RECOVER, stop, start, origin=origin, target=target or origin)
    elif way.is_moving:
        yield way.change(ChangeKind.MOVE, stop, origin=origin, target=target)
    elif resource.is_reloading:
        yield way.change(ChangeKind.RELOAD, start, origin=origin, target=target)
    elif stop is not None and stop.is_required:
        yield way.change(ChangeKind.RESTART, start, origin=origin, target=target)
    elif way.now_role is Role.PROMOTED:
        yield way.change(ChangeKind.DEMOTE, way.demote, origin=origin, target=target)
    elif next_role is Role.PROMOTED:
        yield way.change(ChangeKind.PROMOTE, way.promote, origin=origin, target=target)
    elif way.now_role.value <= Role.STOPPED.value and next_role.value > Role.STOPPED.value:
        yield way.change(ChangeKind.START, start, origin=origin, target=target)


def _stops(way: _Way) -> Iterator[Change]:
    for node in way.resource.found.active_nodes:
        stop = _on(way.resource, STOP, node)
        cause = stop if stop is not None and stop.reason else way.start
        yield way.change(ChangeKind.STOP, stop, cause, origin=node, target=None)


def _is_due(action: Action | None) -> bool:
    return action is not None and action.is_required
