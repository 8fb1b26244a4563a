"""What a plan interrupts, and for how long at most: what a person must know before saying yes."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from haclusterd.model.graph import ActionKind, GraphAction, Plan
from haclusterd.model.ocf import ActionName
from haclusterd.verbs.answers.configuration import Interruption

_BEGINS: Mapping[str, ActionName] = {ActionName.STOP: ActionName.START, ActionName.DEMOTE: ActionName.PROMOTE}
"""By what ends a resource, or its role, what begins it again."""


def interruptions(found: Plan, measured: Callable[[GraphAction], int | None]) -> tuple[Interruption, ...]:
    """Return every resource that a plan stops or demotes, where it is begun again, and by when.

    `at_most_ms` is counted from the beginning of the transition and supposes that every action takes its whole timeout,
    fencing too; `expected_ms` supposes that each takes what `measured` says. None: it is begun nowhere, or something on
    the way was never measured. What a fenced node ran ends without an action. A live migration is none.
    """
    actions = found.graph.actions
    migrated = {_instance(each) for each in actions.values() if each.is_named(ActionName.MIGRATE_TO)}
    latest = _ends_of_all(actions, _longest_ms)
    expected = _ends_of_all(actions, measured)
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
            expected_ms=None if begin is None else expected[begin.id],
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


def _ends_of_all(
    actions: Mapping[int, GraphAction], takes: Callable[[GraphAction], int | None]
) -> dict[int, int | None]:
    """Return, for each action, ms until it and all before it have ended; None: one of them takes nobody knows what."""
    ends: dict[int, int | None] = {}
    waiting = list(actions)
    while waiting:
        number = waiting[-1]
        missing = [each for each in actions[number].inputs if each in actions and each not in ends]
        if number in ends:
            waiting.pop()
        elif missing:
            waiting += missing
        else:
            before = [ends[each] for each in actions[number].inputs if each in ends]
            ends[number] = _sum([takes(actions[waiting.pop()]), *_latest(before)])
    return ends


def _latest(ends: Sequence[int | None]) -> list[int | None]:
    known = [each for each in ends if each is not None]
    return [max(known, default=0) if len(known) == len(ends) else None]


def _sum(parts: Sequence[int | None]) -> int | None:
    known = [each for each in parts if each is not None]
    return sum(known) if len(known) == len(parts) else None


def _longest_ms(action: GraphAction) -> int:
    takes_time = action.kind in (ActionKind.RESOURCE, ActionKind.FENCE)
    return action.start_delay_ms + action.timeout_ms if takes_time else 0
