"""What a plan interrupts, and for how long at most: what a person must know before saying yes."""

from collections.abc import Iterator, Mapping

from haclusterd.model.graph import ActionKind, GraphAction, Plan
from haclusterd.model.ocf import ActionName
from haclusterd.verbs.answers.configuration import Interruption

_BEGINS: Mapping[str, ActionName] = {ActionName.STOP: ActionName.START, ActionName.DEMOTE: ActionName.PROMOTE}
"""By what ends a resource, or its role, what begins it again."""


def interruptions(found: Plan) -> tuple[Interruption, ...]:
    """Return every resource that a plan stops or demotes, where it is begun again, and by when.

    `at_most_ms` is counted from the beginning of the transition and supposes that every action takes its whole timeout,
    fencing too; None: it is begun nowhere. What a fenced node ran ends without an action. A live migration is none.
    """
    actions = found.graph.actions
    migrated = {_instance(each) for each in actions.values() if each.is_named(ActionName.MIGRATE_TO)}
    latest = _latest_ends(actions)
    fenced = {each.node for each in actions.values() if each.kind is ActionKind.FENCE}
    rows: list[Interruption] = []
    for action in _ends(actions):
        if _instance(action) in migrated and action.node not in fenced:
            continue
        begin = _begin(actions, action)
        assert action.resource is not None
        assert action.node is not None
        rows.append(Interruption(
            resource=action.resource,
            node=action.node,
            role="Promoted" if action.name == ActionName.DEMOTE else "",
            to=None if begin is None else begin.node,
            at_most_ms=None if begin is None else latest[begin.id],
        ))  # fmt: skip
    return tuple(rows)


def _ends(actions: Mapping[int, GraphAction]) -> Iterator[GraphAction]:
    for _, action in sorted(actions.items()):
        if action.kind is not ActionKind.FENCE and action.name in _BEGINS and action.node is not None:
            yield action


def _begin(actions: Mapping[int, GraphAction], end: GraphAction) -> GraphAction | None:
    """Return the action that begins again what another one ends: of a role, any instance's."""
    wanted = _BEGINS[end.name]
    for _, action in sorted(actions.items()):
        is_any = end.name == ActionName.DEMOTE and action.resource == end.resource
        if action.is_named(wanted) and (is_any or _instance(action) == _instance(end)):
            return action
    return None


def _instance(action: GraphAction) -> str | None:
    return action.instance or action.resource


def _latest_ends(actions: Mapping[int, GraphAction]) -> dict[int, int]:
    """Return, for each action, ms until it has ended where it and all before it take their whole timeouts."""
    ends: dict[int, int] = {}
    waiting = list(actions)
    while waiting:
        number = waiting[-1]
        missing = [each for each in actions[number].inputs if each in actions and each not in ends]
        if number in ends:
            waiting.pop()
        elif missing:
            waiting += missing
        else:
            before = max((ends[each] for each in actions[number].inputs if each in ends), default=0)
            ends[number] = before + _longest_ms(actions[waiting.pop()])
    return ends


def _longest_ms(action: GraphAction) -> int:
    takes_time = action.kind in (ActionKind.RESOURCE, ActionKind.FENCE)
    return action.start_delay_ms + action.timeout_ms if takes_time else 0
