"""What a relation does to the two actions it is between, whatever contains them.

`passed` is what is true of the first action (see `collective_flags`); `touched` says which of "optional" and "runnable"
the relation's flag may change. Changes go one way: optional to required, runnable to not, migratable to not.
"""

from haclusterd.model.ocf import Role
from haclusterd.scheduler.actions.flags import forbid, keep_from_migrating, make_real, require, stop_for
from haclusterd.scheduler.model.entities import Action
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
from haclusterd.scheduler.model.tasks import START, STOP

OPTIONAL = 1
RUNNABLE = 2
MIGRATABLE = 4

FIRST_CHANGED = 1
THEN_CHANGED = 2


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


def _intermediate_stop(stop: Action, then: Action, _: int) -> int:
    """A restart in the middle: what must start again must stop first; what cannot start again must stop."""
    owner = then.resource
    is_stranded = not then.is_runnable and owner is not None and owner.is_managed and owner is stop.resource
    if not (then.is_required or is_stranded):
        return 0
    changed = 0
    if stop.is_optional and (stop.is_runnable or then.is_required):
        stop_for(stop, then)
        changed |= FIRST_CHANGED
    if stop.is_migratable and not then.is_migratable:
        keep_from_migrating(stop)
        changed |= FIRST_CHANGED
    if stop.is_required and not stop.is_runnable and forbid(then, stop):
        changed |= THEN_CHANGED
    return changed


def _then_implies_first(first: Action, then: Action, passed: int) -> int:
    changed = 0
    if not passed & OPTIONAL and first.is_optional:
        changed |= require(first, then) * FIRST_CHANGED
    if passed & MIGRATABLE and then.is_required and not then.is_migratable and first.is_migratable:
        keep_from_migrating(first)
        changed |= FIRST_CHANGED
    return changed


def _promoted_then_implies_first(first: Action, then: Action, _: int) -> int:
    owner = then.resource
    if owner is None or owner.found.original_role is not Role.PROMOTED or not then.is_required:
        return 0
    changed = require(first, then) * FIRST_CHANGED
    if first.is_migratable and not then.is_migratable:
        keep_from_migrating(first)
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
    make_real(then)
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
