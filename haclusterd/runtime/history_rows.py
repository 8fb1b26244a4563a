"""What one applied entry leaves in the history: a row for each change, and the configuration version that it made.

Invariant: rows and versions follow from the log alone, so that every node keeps the same; nothing here is decided.
"""

import json
from collections.abc import Iterator
from functools import partial

from haclusterd.cib.changes import Applied, Change, ChangeKind
from haclusterd.cib.codec import decode_cib, encode_cib
from haclusterd.cib.commands import Command, IssueOrders, RecordResults
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Configuration
from haclusterd.model.ids import OrderKey, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.ports.history import HistoryRow, NewVersion

Detail = dict[str, str]
"""What a row says beside its text: `order`, the key of the order that it is about, as far as it is about one."""


def rows_of(index: int, applied: Applied) -> tuple[HistoryRow, ...]:
    """Return a row for each change."""
    envelope = applied.envelope
    at = envelope.at if envelope is not None else WallTime(0)
    command = envelope.command if envelope is not None else None
    return tuple(
        HistoryRow(index, n, at, str(change.kind), change.node, change.resource, change.text, _written(detail))
        for n, (change, detail) in enumerate(zip(applied.changes, _details(command, applied.changes), strict=True))
    )


def version_of(cib: Cib) -> NewVersion | None:
    """Return the configuration's version for the history; None before the first."""
    version = cib.version
    if not version.epoch:
        return None
    part = Cib(configuration=cib.configuration, version=version)
    return NewVersion(version.epoch, version.at, version.author, version.reason, partial(encode_cib, part))


def read_version(content: bytes) -> Configuration:
    """Read a version's content; raise CodecError for everything else."""
    return decode_cib(content).configuration


def read_detail(text: str) -> Detail:
    """Read a row's detail, which another version of this program may have written."""
    try:
        document = json.loads(text) if text else {}
    except ValueError:
        return {}
    if not isinstance(document, dict):
        return {}
    return {name: value for name, value in document.items() if isinstance(value, str)}


def _written(detail: Detail) -> str:
    return json.dumps(detail, separators=(",", ":"), ensure_ascii=False) if detail else ""


def _details(command: Command | None, changes: tuple[Change, ...]) -> Iterator[Detail]:
    """Yield the detail of each change."""
    if isinstance(command, IssueOrders) and len(command.orders) == len(changes):
        yield from ({"order": str(order.key)} for order in command.orders)
        return
    ended: dict[ResourceId, list[OrderKey]] = {}
    if isinstance(command, RecordResults):
        for result in command.results:
            if result.order is not None:
                ended.setdefault(result.resource, []).append(result.order)
    for change in changes:
        keys = ended.get(change.resource, []) if change.resource is not None else []
        is_about_an_order = bool(keys) and change.kind in _ENDS
        yield {"order": str(keys.pop(0))} if is_about_an_order else {}


_ENDS = frozenset(
    {
        ChangeKind.OPERATION_SUCCEEDED,
        ChangeKind.OPERATION_FAILED,
        ChangeKind.ORDER_NOT_BEGUN,
        ChangeKind.OUTCOME_UNKNOWN,
    }
)
"""Changes that tell how an order ended."""
