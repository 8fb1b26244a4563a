"""Taking a resource's node away after its actions were made: what would start there cannot, what runs stops."""

from haclusterd.model.ocf import ExitCode
from haclusterd.scheduler.assign.later import unassign
from haclusterd.scheduler.model.entities import Action, Resource
from haclusterd.scheduler.model.tasks import START, STOP


def withdraw(resource: Resource) -> list[Action]:
    """Let a primitive run nowhere; return the actions that this changed."""
    if not unassign(resource):
        return []
    changed = []
    for (task, interval_ms), actions in resource.actions.items():
        for action in actions:
            if task == STOP and action.is_optional:
                action.is_optional = False
                changed.append(action)
            elif _would_run(action, task, interval_ms) and action.is_runnable:
                action.is_runnable = False
                changed.append(action)
    return changed


def _would_run(action: Action, task: str, interval_ms: int) -> bool:
    return task == START or (bool(interval_ms) and action.expected is not ExitCode.NOT_RUNNING)
