"""How long actions took when they were executed last: what an interruption is expected to last by.

The newest measurement of an action counts, on whichever node: of the history, which every node has, and where it does
not go back that far, of the results that the CIB keeps.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from haclusterd.commands.context import Context
from haclusterd.model.change_kinds import ChangeKind
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.graph import ActionKind, GraphAction
from haclusterd.model.ids import ResourceId
from haclusterd.model.ocf import ExecutionStatus
from haclusterd.model.remembered import HistoryQuery

ROWS_MAX: Final = 2000
"""Of the history."""
RESOURCES_MAX: Final = 200
"""More are not asked for."""
_TOOK: Final = re.compile(r" succeeded in (\d{1,12}) ms\Z", re.ASCII)


class Measured:
    """What is known of how long actions take."""

    def __init__(self, context: Context, actions: Iterable[GraphAction]) -> None:
        wanted = {each.resource for each in actions if each.kind is ActionKind.RESOURCE and each.resource is not None}
        self._fencings = context.cib.status.fencing_history
        self._known: dict[tuple[str, str], int] = dict(_of_records(context))
        self._known.update(_of_history(context, sorted(wanted)[:RESOURCES_MAX]))

    def of(self, action: GraphAction) -> int | None:
        """Return how many ms an action is expected to take; None: it was never measured."""
        match action.kind:
            case ActionKind.FENCE:
                done = [each for each in self._fencings if each.outcome is FenceOutcome.FENCED]
                same = [each for each in done if each.target == action.node] or done
                return max(0, same[-1].ended_at - same[-1].issued_at) if same else None
            case ActionKind.RESOURCE:
                found = self._known.get((_base(action.resource), action.name))
                return None if found is None else action.start_delay_ms + found
            case _:
                return 0


def _of_records(context: Context) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield the results that the CIB keeps, the oldest first."""
    records = [
        (record.run_at, resource, record.operation, record.executed_ms)
        for _, node in sorted(context.cib.status.nodes.items())
        for resource, history in node.histories.items()
        for record in history.records.values()
        if record.status is ExecutionStatus.DONE and not record.is_failure and not record.is_probe
    ]
    return (((_base(resource), operation), took) for _, resource, operation, took in sorted(records))


def _of_history(context: Context, resources: list[ResourceId]) -> Mapping[tuple[str, str], int]:
    if context.past is None or not resources:
        return {}
    kinds = (str(ChangeKind.OPERATION_SUCCEEDED),)
    found = context.past.recall(HistoryQuery(ROWS_MAX, resources=tuple(resources), kinds=kinds))
    return {
        (_base(event.change.resource), event.change.facts.action): int(took[1])
        for event in found.events
        if event.change.facts.action and (took := _TOOK.search(event.change.text))
    }


def _base(resource: ResourceId | None) -> str:
    return (resource or "").partition(":")[0]
