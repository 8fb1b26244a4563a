"""What a group's own actions are worth, remembered: a member's action is looked at once, and again when it changes.

The answers are those of `collective_flags` for a group wherever it is. A change goes one way (needed, impossible), so
what was found once stays found.
"""

from haclusterd.model.records import dataclass
from haclusterd.scheduler.actions.collective_flags import BEGUN, action_of
from haclusterd.scheduler.actions.flags import block, need
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Action, Resource
from haclusterd.scheduler.model.tasks import DEMOTE, STOP


@dataclass(slots=True)
class _Found:
    """What is true of the members' actions of one task, taken together."""

    is_required: bool = False
    is_impossible: bool = False
    is_lacking: bool = False


class GroupFlags:
    """The memory of one propagation."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, str], _Found] = {}

    def look(self, action: Action, group: Resource) -> tuple[bool, bool]:
        """Return whether a group's action is optional, and whether it can be done; it is marked accordingly."""
        begun = BEGUN.get(action.task, action.task)
        found = self._found.get((id(group), begun))
        if found is None:
            found = self._found[id(group), begun] = _scan(group, begun)
        if found.is_required:
            need(action)
        is_runnable = not found.is_lacking
        if begun != action.task and found.is_impossible:
            is_runnable = False
            block(action)
        return not found.is_required, is_runnable

    def note(self, action: Action) -> None:
        """Take up what a changed action means for its group."""
        member = action.resource
        if member is None or member.parent is None or member.parent.variant is not Variant.GROUP:
            return
        found = self._found.get((id(member.parent), action.task))
        if found is not None and action_of(member, action.task, None) is action:
            found.is_required = found.is_required or action.is_required
            found.is_impossible = found.is_impossible or not action.is_runnable


def _scan(group: Resource, begun: str) -> _Found:
    found = _Found()
    for member in group.children:
        action = action_of(member, begun, None)
        if action is None:
            found.is_lacking = found.is_lacking or begun not in (STOP, DEMOTE)
        else:
            found.is_required = found.is_required or action.is_required
            found.is_impossible = found.is_impossible or not action.is_runnable
    return found
