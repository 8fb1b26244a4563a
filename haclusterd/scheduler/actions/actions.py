"""Actions of a plan, and the relations between them, before it is decided which of them are needed.

An action that need not be done ("optional") is kept because others may force it: an optional stop and start become
required when something they depend on restarts. Relations carry flags that say what they do (Pacemaker Development,
"Scheduler"); `propagate` applies them.
"""

from __future__ import annotations

from haclusterd.model.ids import NodeName
from haclusterd.model.ocf import Role
from haclusterd.scheduler.assign.later import limit_role
from haclusterd.scheduler.model.definition import Needs
from haclusterd.scheduler.model.entities import Action, Node, Relation, Resource
from haclusterd.scheduler.model.settings import NoQuorumPolicy, Settings
from haclusterd.scheduler.model.tasks import LRM_DELETE, MONITOR, NOTIFY, START, STOP
from haclusterd.scheduler.unpack.fencing_demands import demand_fencing

_MANY = 16


class ActionTable:
    """All actions of one plan."""

    def __init__(self, settings: Settings, hold_starts: str = "") -> None:
        self._settings = settings
        self._hold_starts = hold_starts
        self.actions: list[Action] = []
        self.fences: dict[tuple[NodeName, str], Action] = {}
        """By target and action."""
        self.warnings: list[str] = []
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
        """Return the action of a resource on a node, made if it does not exist; it may become required.

        One that has no node yet takes this one. Every call judges again whether it can be done.
        """
        action = self.find(resource, task, node, interval_ms)
        if action is None:
            action = Action(len(self.actions) + 1, resource, task, interval_ms, node)
            self.actions.append(action)
            resource.actions.setdefault((task, interval_ms), []).append(action)
        elif action.node is None:
            action.node = node
        if not resource.is_managed and action.node is not None and not interval_ms and not action.is_pseudo:
            action.is_optional = True
        elif required:
            action.is_optional = False
        self._judge_runnable(action)
        return action

    def find(self, resource: Resource, task: str, node: Node | None, interval_ms: int = 0) -> Action | None:
        """Return the newest action of that name there, or one that has no node yet."""
        for action in reversed(resource.actions.get((task, interval_ms), ())):
            if node is None or action.node is node or action.node is None:
                return action
        return None

    def make_probe(self, resource: Resource, node: Node) -> Action:
        """Return a new probe; there was none of that resource on that node."""
        probe = Action(len(self.actions) + 1, resource, MONITOR, 0, node)
        probe.is_optional = False
        probe.is_probe = True
        probe.is_runnable = not node.is_pending
        self.actions.append(probe)
        resource.actions.setdefault((MONITOR, 0), []).append(probe)
        return probe

    def make_pseudo(self, resource: Resource, task: str, *, required: bool = False, runnable: bool = True) -> Action:
        """Return a group's, clone's or bundle's own action, which nobody executes."""
        known = resource.actions.setdefault((task, 0), [])
        if not known:
            action = Action(len(self.actions) + 1, resource, task, 0, None)
            action.needs = Needs.NOTHING
            action.is_pseudo = True
            action.is_runnable = runnable
            self.actions.append(action)
            known.append(action)
        if required:
            known[-1].is_optional = False
        return known[-1]

    def make_notify(self, resource: Resource, node: Node, notification: str) -> Action:
        """Return the action that tells an instance on a node of an occasion (`pre-stop`), made if there is none."""
        known = resource.actions.setdefault((notification, 0), [])
        for action in known:
            if action.node is node:
                return action
        action = Action(len(self.actions) + 1, resource, NOTIFY, 0, node)
        action.notification = notification
        self.actions.append(action)
        known.append(action)
        self._judge_runnable(action)
        return action

    def make_cluster(self, resource: Resource | None, task: str, node: Node) -> Action:
        """Return the cluster's own bookkeeping of a resource, or about a node."""
        if resource is not None:
            action = self.make(resource, task, node, required=True)
            action.is_optional = False
            action.is_runnable = node.is_online or task == LRM_DELETE
        else:
            action = Action(len(self.actions) + 1, None, task, 0, node)
            action.is_optional = False
            self.actions.append(action)
        action.is_cluster = True
        return action

    def make_fence(self, node: Node, task: str, *, required: bool = True) -> Action:
        """Return the action that fences a node (or ends its fencing, `on`), made if it does not exist."""
        fence = self.fences.get((node.name, task))
        if fence is None:
            fence = self.fences[node.name, task] = Action(len(self.actions) + 1, None, task, 0, node)
            fence.is_fence = True
            fence.meta = {"stonith_action": task}
            self.actions.append(fence)
        if required:
            fence.is_optional = False
        return fence

    def _judge_runnable(self, action: Action) -> None:
        if action.is_pseudo:
            return
        node = action.node
        if node is None:
            action.is_runnable = False
        elif not _can_execute(action, node):
            action.is_runnable = False
            owner = action.resource
            if action.task == STOP and owner is not None and owner.is_managed and not node.is_online:
                demand_fencing(node, "stop is unrunnable")
        elif action.needs is Needs.NOTHING:
            action.reason = ""
            action.is_runnable = not node.is_guest or node.can_be_fenced
        elif self._hold_starts and _is_unheard_of(action.resource):
            action.is_runnable = False
            action.reason = self._hold_starts
        elif action.task == START and action.resource is not None and action.resource.assignment.device_wait:
            action.is_runnable = False
            action.reason = action.resource.assignment.device_wait
        else:
            self._judge_quorum(action)

    def _judge_quorum(self, action: Action) -> None:
        policy = self._settings.no_quorum_policy
        if self._settings.options.has_quorum or policy in (NoQuorumPolicy.IGNORE, NoQuorumPolicy.FENCE):
            action.is_runnable = True
            return
        owner = action.resource
        assert owner is not None
        if policy is NoQuorumPolicy.FREEZE:
            # What a changed definition demands is a new start, not what a restart has left to do (crm_simulate).
            is_new = owner.found.definition_changed or not owner.found.active_nodes
            is_growing = is_new or owner.assignment.next_role.value > owner.found.original_role.value
            action.is_runnable = not is_growing
            if is_growing:
                action.reason = "quorum freeze"
        elif policy is NoQuorumPolicy.DEMOTE and owner.found.original_role in (Role.PROMOTED, Role.UNPROMOTED):
            limit_role(owner, Role.UNPROMOTED)
            action.is_runnable = True
        else:
            action.is_runnable = False
            action.reason = "no quorum"


def _can_execute(action: Action, node: Node) -> bool:
    if action.task == LRM_DELETE:
        return True
    return (node.is_online or (node.is_guest and not node.must_be_reset)) and not node.is_pending


def _is_related(first: Action, then: Action, flags: int) -> bool:
    """Look through the shorter list; of an action with many followers through those to this one."""
    if len(then.before) <= _MANY:
        for relation in then.before:  # noqa: SIM110 -- the innermost loop of all: a generator takes twice the time
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
    if resource is None or resource.definition.needs is not Needs.FENCING:
        return False
    return not resource.found.active_nodes and not any(history.records for history in resource.found.histories.values())
