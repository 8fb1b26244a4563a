"""Phase: the own actions of clones and bundles, which nobody executes: they stand for those of all instances.

Source: Pacemaker Explained, "Clones", "Bundles". What they are worth follows from the instances' actions; propagation
asks for it again (`collective_flags`).
"""

from __future__ import annotations

from haclusterd.model.ocf import Role
from haclusterd.model.records import dataclass
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.collective_flags import instances_of
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Resource
from haclusterd.scheduler.model.tasks import DEMOTE, DEMOTED, PROMOTE, PROMOTED, RUNNING, START, STOP, STOPPED


@dataclass(slots=True)
class _Doing:
    """What instances do, taken together."""

    is_active: bool = False
    is_starting: bool = False
    is_stopping: bool = False
    is_restarting: bool = False
    is_promoting: bool = False
    is_demoting: bool = False


def create_instance_marks(collective: Resource, table: ActionTable) -> None:
    """Create start, running, stop and stopped of a clone or bundle, after those of the instances."""
    doing = _doing(instances_of(collective, START))
    table.make_pseudo(collective, START, required=doing.is_starting)
    running = table.make_pseudo(
        collective, RUNNING, required=doing.is_starting, runnable=doing.is_active or doing.is_starting
    )
    running.priority = INFINITY
    stop = table.make_pseudo(collective, STOP, required=doing.is_stopping)
    stopped = table.make_pseudo(collective, STOPPED, required=doing.is_stopping)
    stopped.priority = INFINITY
    stop.is_migratable = not doing.is_restarting


def create_promotion_marks(collective: Resource, table: ActionTable) -> None:
    """Create promote, promoted, demote and demoted of a promotable clone, or of a bundle around one."""
    doing = _doing(instances_of(collective, PROMOTE))
    for task, mark, is_required in (
        (PROMOTE, PROMOTED, doing.is_promoting),
        (DEMOTE, DEMOTED, doing.is_demoting),
    ):
        table.make_pseudo(collective, task, required=is_required)
        table.make_pseudo(collective, mark, required=is_required).priority = INFINITY


def _doing(instances: list[Resource]) -> _Doing:
    found = _Doing()
    for instance in instances:
        for leaf in instance.leaves():
            _take(leaf, found)
    return found


def _take(leaf: Resource, found: _Doing) -> None:
    found.is_active = found.is_active or leaf.found.original_role.value > Role.STOPPED.value
    is_starting = any(start.is_required and start.is_runnable for start in leaf.actions.get((START, 0), ()))
    is_stopping = any(
        stop.is_required and (stop.is_pseudo or stop.is_runnable) for stop in leaf.actions.get((STOP, 0), ())
    )
    found.is_starting = found.is_starting or is_starting
    found.is_stopping = found.is_stopping or is_stopping
    found.is_restarting = found.is_restarting or (is_starting and is_stopping)
    for promote in leaf.actions.get((PROMOTE, 0), ()):
        found.is_promoting = found.is_promoting or (promote.is_required and promote.is_runnable)
    for demote in leaf.actions.get((DEMOTE, 0), ()):
        found.is_demoting = found.is_demoting or (demote.is_required and demote.is_runnable)


def bundled_clone(bundle: Resource) -> Resource | None:
    """Return what runs inside a bundle's containers, if anything does."""
    return next((child for child in bundle.children if child.variant is Variant.CLONE), None)
