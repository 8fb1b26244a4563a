"""Phase: let relations work until nothing changes: what is required or impossible makes others so.

A worklist: an action is looked at again only when something before it changed, so the cost follows the number of
relations and changes. Changes go one way (optional to required, runnable to not), so it ends.
"""

from collections import deque
from collections.abc import Iterator

from haclusterd.model.ocf import Role
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.actions import ActionTable
from haclusterd.scheduler.colocation import with_this
from haclusterd.scheduler.entities import (
    ASYMMETRIC,
    FIRST_IMPLIES_THEN,
    FIRST_IMPLIES_THEN_GRAPHED,
    INTERMEDIATE_STOP,
    PROMOTE,
    RUNNING,
    START,
    STOP,
    STOPPED,
    THEN_IMPLIES_FIRST,
    THEN_IMPLIES_FIRST_GRAPHED,
    UNRUNNABLE_FIRST_BLOCKS,
    Action,
    Relation,
    Resource,
    Together,
    Variant,
)

_DONE_WORD = {START: RUNNING, STOP: STOPPED}
_MEMBER_WORD = {RUNNING: START, STOPPED: STOP}


class Propagation:
    """One run over all actions of a plan."""

    def __init__(self, table: ActionTable) -> None:
        self._table = table
        self._waiting: deque[Action] = deque()
        self._is_waiting: set[int] = set()

    def run(self) -> None:
        """Propagate until nothing changes."""
        for action in reversed(self._table.actions):
            if not action.is_runnable and action.task in (START, PROMOTE) and action.resource is not None:
                self._block_dependents(action.resource, action.task)
        for action in reversed(self._table.actions):
            self._push(action)
        while self._waiting:
            action = self._waiting.popleft()
            self._is_waiting.discard(action.id)
            self._update(action)

    def _push(self, action: Action) -> None:
        if action.id not in self._is_waiting:
            self._is_waiting.add(action.id)
            self._waiting.append(action)

    def _changed(self, action: Action) -> None:
        self._push(action)
        for relation in action.after:
            if relation.flags:
                self._push(relation.then)

    def _update(self, then: Action) -> None:
        if then.is_pseudo and then.resource is not None and then.resource.variant is Variant.GROUP:
            refresh_group_action(then)
        for relation in list(then.before):
            if relation.flags and not self._remapped(relation):
                self._apply(relation)

    def _remapped(self, relation: Relation) -> bool:
        """Others wait for a whole group: its start counts when it runs, its stop when it has stopped."""
        first, then = relation.first, relation.then
        owner = first.resource
        if owner is None or owner.variant is not Variant.GROUP or first.task not in _DONE_WORD:
            return False
        if then.resource is None or then.resource.is_inside(owner):
            return False
        done = owner.actions[(_DONE_WORD[first.task], 0)][0]
        self._table.relate(done, then, relation.flags)
        relation.flags = 0
        self._push(then)
        return True

    def _apply(self, relation: Relation) -> None:
        first, then, flags = relation.first, relation.then, relation.flags
        if first.resource is not None and first.resource.variant is Variant.GROUP:
            refresh_group_action(first)
        if flags & FIRST_IMPLIES_THEN and first.is_required:
            self._require(then, first)
        if flags & INTERMEDIATE_STOP:
            self._intermediate_stop(first, then)
        if flags & UNRUNNABLE_FIRST_BLOCKS and not first.is_runnable:
            self._forbid(then, first)
        if flags & ASYMMETRIC:
            self._asymmetric(first, then)
        if flags & THEN_IMPLIES_FIRST_GRAPHED and then.is_required:
            first.is_always = True
        if flags & FIRST_IMPLIES_THEN_GRAPHED and first.is_required and first.is_runnable:
            then.is_always = True
        self._blocked_stop(first, then, flags)

    # -- the effects ------------------------------------------------------------------------------------------------

    def _require(self, action: Action, cause: Action) -> None:
        for item in _with_members(action):
            if item.is_optional:
                item.is_optional = False
                _give_reason(item, cause, "required")
                self._changed(item)

    def _forbid(self, action: Action, cause: Action) -> None:
        for item in _with_members(action):
            if item.is_runnable and not item.is_fence:
                item.is_runnable = False
                _give_reason(item, cause, "unrunnable")
                self._changed(item)
                if item.task in (START, PROMOTE) and item.resource is not None:
                    self._block_dependents(item.resource, item.task)

    def _intermediate_stop(self, stop: Action, then: Action) -> None:
        """A restart in the middle: what must start again must stop first; what cannot start again must stop."""
        owner = then.resource
        is_stranded = not then.is_runnable and owner is not None and owner.is_managed and owner is stop.resource
        if not (then.is_required or is_stranded):
            return
        if stop.is_optional and (stop.is_runnable or then.is_required):
            self._require_stop(stop, then)
        if stop.is_required and not stop.is_runnable:
            self._forbid(then, stop)

    def _require_stop(self, stop: Action, then: Action) -> None:
        stop.is_optional = False
        if not stop.reason:
            stop.reason = then.reason if stop.resource is then.resource else ""
        _give_reason(stop, then, "required" if then.is_runnable else "unrunnable")
        self._changed(stop)

    def _asymmetric(self, first: Action, then: Action) -> None:
        """Without the inverse, what cannot follow must not be left waiting as if it could."""
        if first.is_runnable:
            return
        for item in _with_members(then):
            if item.resource is not None and item.resource.variant is not Variant.GROUP:
                self._strand(first, item, item.resource)

    def _strand(self, first: Action, then: Action, owner: Resource) -> None:
        if then.is_optional and then.task == STOP and owner.original_role in (Role.STOPPED, Role.UNKNOWN):
            return
        is_running_there = owner.original_role.value > Role.STOPPED.value and owner.active_nodes == [then.node]
        if then.is_optional and then.task == START and is_running_there:
            return
        self._require(then, first)
        self._forbid(then, first)

    def _blocked_stop(self, first: Action, then: Action, flags: int) -> None:
        """What follows the stop of a blocked resource cannot be done."""
        if not flags & (FIRST_IMPLIES_THEN | THEN_IMPLIES_FIRST | INTERMEDIATE_STOP):
            return
        owner = first.resource
        if first.task != STOP or first.is_runnable or owner is None or owner.is_managed or not owner.is_blocked:
            return
        self._forbid(then, first)

    def _block_dependents(self, resource: Resource, task: str) -> None:
        """What must run with a resource that cannot start cannot start either, and so on."""
        blocked = [(resource, task)]
        while blocked:
            blocked.extend(self._blocked_by(*blocked.pop()))

    def _blocked_by(self, resource: Resource, task: str) -> Iterator[tuple[Resource, str]]:
        top = resource.top
        for leaf in top.children or [top]:
            known = leaf.actions.get((task, 0), ())
            if leaf is not resource and (not known or any(item.is_runnable for item in known)):
                return
        for together in _mandatory_dependents(top):
            if task == PROMOTE and together.primary_role is not Role.PROMOTED:
                continue
            dependent = together.dependent
            wanted = PROMOTE if together.dependent_role is Role.PROMOTED else START
            for leaf in dependent.children or [dependent]:
                for action in leaf.actions.get((wanted, 0), ()):
                    if action.is_runnable:
                        action.is_runnable = False
                        action.reason = action.reason or f"colocation with {together.primary.id}"
                        self._changed(action)
                        yield leaf, wanted


def _mandatory_dependents(top: Resource) -> list[Together]:
    return [item for item in with_this(top) if item.score >= INFINITY]


def _with_members(action: Action) -> list[Action]:
    """An effect on a group's action is one on its members' too."""
    owner = action.resource
    if owner is None or owner.variant is not Variant.GROUP:
        return [action]
    task = _MEMBER_WORD.get(action.task)
    if task is not None:
        return [action]
    found = [action]
    for member in owner.children:
        found.extend(member.actions.get((action.task, 0), ()))
    return found


def refresh_group_action(action: Action) -> None:
    """Recompute a group's action from its members' (required if one is; running only if all can)."""
    owner = action.resource
    assert owner is not None
    task = _MEMBER_WORD.get(action.task, action.task)
    is_summary = task != action.task
    for member in owner.children:
        known = member.actions.get((task, 0), ())
        if not known:
            if task != STOP:
                action.is_runnable = False
            continue
        if any(item.is_required for item in known):
            action.is_optional = False
        if is_summary and not any(item.is_runnable for item in known):
            action.is_runnable = False


def _give_reason(action: Action, cause: Action, word: str) -> None:
    if action.reason or cause is action:
        return
    if cause.resource is action.resource or cause.resource is None:
        action.reason = cause.reason
    else:
        task = START if cause.task == RUNNING else STOP if cause.task == STOPPED else cause.task
        action.reason = f"{word} {cause.resource.id} {task}"
