"""Actions of a plan, and the relations between them, before it is decided which of them are needed.

An action that need not be done ("optional") is kept because others may force it: an optional stop and start become
required when something they depend on restarts. Relations carry flags that say what they do (Pacemaker Development,
"Scheduler"); `propagate` applies them.
"""

from __future__ import annotations

from haclusterd.scheduler.entities import MONITOR, Action, Needs, Relation, Resource
from haclusterd.scheduler.nodes import Node
from haclusterd.scheduler.settings import Settings

_MANY = 16


class ActionTable:
    """All actions of one plan."""

    def __init__(self, settings: Settings, hold_starts: str = "") -> None:
        self._settings = settings
        self._hold_starts = hold_starts
        self.actions: list[Action] = []
        self._marks: dict[str, Action] = {}

    def relate(self, first: Action, then: Action, flags: int) -> Relation | None:
        """Put one action before another, unless a relation with one of these flags is there already."""
        if first is then or not flags or _is_related(first, then, flags):
            return None
        relation = Relation(first, then, flags)
        first.after.append(relation)
        then.before.append(relation)
        if first.linked is not None:
            first.linked.setdefault(then.id, []).append(relation)
        return relation

    def make_mark(self, name: str, node: Node | None = None) -> Action:
        """Return the pseudo-action of that name that belongs to no resource, made if it does not exist."""
        mark = self._marks.get(name)
        if mark is None:
            mark = self._marks[name] = Action(len(self.actions) + 1, None, name, 0, node)
            mark.is_pseudo = True
            self.actions.append(mark)
        return mark

    def make(self, resource: Resource, task: str, node: Node | None, *, required: bool, interval_ms: int = 0) -> Action:
        """Return the action of a resource on a node, made if it does not exist; it may become required."""
        known = resource.actions.setdefault((task, interval_ms), [])
        action = next((item for item in known if item.node is node or item.node is None or node is None), None)
        if action is None:
            action = Action(len(self.actions) + 1, resource, task, interval_ms, node)
            self.actions.append(action)
            known.append(action)
        elif action.node is None:
            action.node = node
        if not resource.is_managed and action.node is not None and not interval_ms and task != MONITOR:
            action.is_optional = True
        elif required:
            action.is_optional = False
        self._judge_runnable(action)
        return action

    def make_pseudo(self, resource: Resource, task: str) -> Action:
        """Return a group's own action, which nobody executes."""
        known = resource.actions.setdefault((task, 0), [])
        if not known:
            action = Action(len(self.actions) + 1, resource, task, 0, None)
            action.is_pseudo = True
            self.actions.append(action)
            known.append(action)
        return known[0]

    def make_fence(self, node: Node, task: str) -> Action:
        """Return the action that fences a node."""
        action = Action(len(self.actions) + 1, None, task, 0, node)
        action.is_fence = True
        action.is_optional = False
        action.why = action.reason = node.fence_reason
        self.actions.append(action)
        return action

    def _judge_runnable(self, action: Action) -> None:
        if action.is_pseudo:
            return
        node = action.node
        if node is None or not node.is_online or node.is_pending:
            action.is_runnable = False
        elif action.needs is Needs.NOTHING:
            action.is_runnable = True
        elif not self._settings.options.has_quorum:
            action.is_runnable = False
            action.reason = "no quorum"
        elif self._hold_starts and _is_unheard_of(action.resource):
            action.is_runnable = False
            action.reason = self._hold_starts
        else:
            action.is_runnable = True


def _is_related(first: Action, then: Action, flags: int) -> bool:
    """Look through the shorter list; of an action with many followers through those to this one."""
    if len(then.before) <= _MANY:
        for relation in then.before:
            if relation.first is first and relation.flags & flags:
                return True
        return False
    known = first.after
    if len(known) > _MANY:
        if first.linked is None:
            first.linked = {}
            for relation in known:
                first.linked.setdefault(relation.then.id, []).append(relation)
        known = first.linked.get(then.id, [])
    return any(relation.then is then and relation.flags & flags for relation in known)


def _is_unheard_of(resource: Resource | None) -> bool:
    """Whether nothing is known of a resource in this life of the cluster, so that a node not seen yet may have it."""
    if resource is None or resource.needs is not Needs.FENCING:
        return False
    return not resource.active_nodes and not any(history.records for history in resource.histories.values())
