"""What a relation does to the two actions it stands between, whatever contains them.

`passed` is what is true of the first action (see `collective_flags`); `touched` says which of "optional" and "runnable"
the relation's flag may change. Changes go one way: optional to required, runnable to not, migratable to not.
"""

from haclusterd.model.ocf import Role
from haclusterd.scheduler.model.entities import RUNNING, START, STOP, STOPPED, Action
from haclusterd.scheduler.model.relation_flags import (
    ASYMMETRIC,
    FIRST_ELSE_THEN,
    FIRST_IMPLIES_THEN,
    INTERMEDIATE_STOP,
    PROMOTED_THEN_IMPLIES_FIRST,
    THEN_IMPLIES_FIRST,
    UNMIGRATABLE_THEN_BLOCKS,
    UNRUNNABLE_FIRST_BLOCKS,
)

OPTIONAL = 1
RUNNABLE = 2
MIGRATABLE = 4

FIRST_CHANGED = 1
THEN_CHANGED = 2

REQUIRED = "required"
UNRUNNABLE = "unrunnable"


def apply_flag(first: Action, then: Action, passed: int, touched: int, flag: int) -> int:
    """Let one flag of a relation work; return which of the two it changed."""
    if flag == FIRST_IMPLIES_THEN:
        if touched & OPTIONAL and then.is_optional and not passed & OPTIONAL and not first.is_migratable:
            return require(then, first) * THEN_CHANGED
        return 0
    if flag == UNRUNNABLE_FIRST_BLOCKS:
        if touched & RUNNABLE and then.is_runnable and not passed & RUNNABLE:
            return forbid(then, first) * THEN_CHANGED
        return 0
    effect = _EFFECTS.get(flag)
    return effect(first, then, passed) if effect is not None else 0


def require(action: Action, cause: Action) -> bool:
    """Make an action required; tell whether it was not."""
    if not action.is_optional:
        return False
    action.is_optional = False
    give_reason(action, cause, REQUIRED)
    return True


def forbid(action: Action, cause: Action) -> bool:
    """Make an action impossible, and so a live migration of which it is a part; tell whether that is new.

    Fencing is never impossible because of something before it, except that of a guest node: its launcher must stop.
    """
    if not action.is_runnable or (action.is_fence and not action.is_pseudo):
        return False
    action.is_runnable = action.is_migratable = False
    give_reason(action, cause, UNRUNNABLE)
    return True


def give_reason(action: Action, cause: Action, word: str) -> None:
    """Say in Pacemaker's words why an action changed; the first reason stays.

    What its own resource prevents needs no reason of its own.
    """
    if action.reason or cause is action:
        return
    if cause.resource is None and cause.is_pseudo and not cause.is_fence:
        action.reason = f"{word} {cause.task}"
    elif cause.resource is None or (cause.resource is action.resource and word == REQUIRED):
        action.reason = cause.reason
    elif cause.resource is action.resource:
        return
    else:
        task = {RUNNING: START, STOPPED: STOP}.get(cause.task, cause.task)
        action.reason = f"{word} {cause.resource.id} {task}"


def _intermediate_stop(stop: Action, then: Action, _: int) -> int:
    """A restart in the middle: what must start again must stop first; what cannot start again must stop."""
    owner = then.resource
    is_stranded = not then.is_runnable and owner is not None and owner.is_managed and owner is stop.resource
    if not (then.is_required or is_stranded):
        return 0
    changed = 0
    if stop.is_optional and (stop.is_runnable or then.is_required):
        stop.is_optional = False
        if not stop.reason:
            stop.reason = then.reason if stop.resource is then.resource else ""
        give_reason(stop, then, REQUIRED if then.is_runnable else UNRUNNABLE)
        changed |= FIRST_CHANGED
    if stop.is_migratable and not then.is_migratable:
        stop.is_migratable = False
        changed |= FIRST_CHANGED
    if stop.is_required and not stop.is_runnable and forbid(then, stop):
        changed |= THEN_CHANGED
    return changed


def _then_implies_first(first: Action, then: Action, passed: int) -> int:
    changed = 0
    if not passed & OPTIONAL and first.is_optional:
        changed |= require(first, then) * FIRST_CHANGED
    if passed & MIGRATABLE and then.is_required and not then.is_migratable and first.is_migratable:
        first.is_migratable = False
        changed |= FIRST_CHANGED
    return changed


def _promoted_then_implies_first(first: Action, then: Action, _: int) -> int:
    owner = then.resource
    if owner is None or owner.found.original_role is not Role.PROMOTED or not then.is_required:
        return 0
    changed = require(first, then) * FIRST_CHANGED
    if first.is_migratable and not then.is_migratable:
        first.is_migratable = False
        changed = FIRST_CHANGED
    return changed


def _unmigratable_then_blocks(first: Action, then: Action, _: int) -> int:
    changed = 0
    if not (then.is_migratable and then.is_runnable):
        changed |= forbid(first, then) * FIRST_CHANGED
    if then.is_required:
        changed |= require(first, then) * FIRST_CHANGED
    return changed


def _first_else_then(first: Action, then: Action, _: int) -> int:
    if first.is_runnable or not (then.is_migratable or then.is_pseudo):
        return 0
    then.is_migratable = then.is_pseudo = False
    return THEN_CHANGED


def _asymmetric(first: Action, then: Action, _: int) -> int:
    """Without the inverse, what cannot follow must not be left waiting as if it could."""
    owner = then.resource
    if first.is_runnable or owner is None:
        return 0
    if then.is_optional and then.task == STOP and owner.found.original_role.value <= Role.STOPPED.value:
        return 0
    is_running_there = owner.found.original_role.value > Role.STOPPED.value and owner.found.active_nodes == [then.node]
    if then.is_optional and then.task == START and is_running_there:
        return 0
    is_new = require(then, first)
    return (forbid(then, first) or is_new) * THEN_CHANGED


_EFFECTS = {
    INTERMEDIATE_STOP: _intermediate_stop,
    THEN_IMPLIES_FIRST: _then_implies_first,
    PROMOTED_THEN_IMPLIES_FIRST: _promoted_then_implies_first,
    UNMIGRATABLE_THEN_BLOCKS: _unmigratable_then_blocks,
    FIRST_ELSE_THEN: _first_else_then,
    ASYMMETRIC: _asymmetric,
}
