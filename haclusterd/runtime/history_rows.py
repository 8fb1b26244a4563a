"""The history rows of one applied entry: one for each change, and the configuration version that it made.

Invariant: rows and versions follow from the log alone, so that every node keeps the same.
"""

import json
from functools import partial

from haclusterd.cib.changes import Applied
from haclusterd.cib.codec import decode_cib, encode_cib
from haclusterd.cib.derived.history_facts import Detail
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Configuration
from haclusterd.model.instants import WallTime
from haclusterd.ports.history import HistoryRow, NewVersion


def rows_of(index: int, applied: Applied) -> tuple[HistoryRow, ...]:
    """Return a row for each change."""
    return tuple(
        HistoryRow(index, n, WallTime(at), kind, change.node, change.resource, change.text, detail)
        for n, (change, (at, kind, _, _, detail)) in enumerate(zip(applied.changes, applied.facts, strict=True))
    )


def version_of(cib: Cib) -> NewVersion | None:
    """Return the configuration's version for the history; None before the first."""
    version = cib.version
    if not version.epoch:
        return None
    part = Cib(configuration=cib.configuration, version=version)
    return NewVersion(version.epoch, version.at, version.author, version.reason, partial(encode_cib, part))


def read_version(content: bytes) -> Configuration:
    """Parse a version's content; raises CodecError for anything else."""
    return decode_cib(content).configuration


def read_detail(text: str) -> Detail:
    """Parse a row's detail, which another version of this program may have written."""
    try:
        document = json.loads(text) if text else {}
    except ValueError:
        return {}
    if not isinstance(document, dict):
        return {}
    return {name: value for name, value in document.items() if isinstance(value, str)}
