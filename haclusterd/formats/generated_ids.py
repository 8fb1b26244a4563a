"""Ids for what a user did not name: blocks of attributes, operations (cli.md §4.5).

Both readers and both writers use these, so that a text without ids and the configuration it makes belong together: a
writer leaves ids out exactly when reading the text again makes the same ones.
"""

import re
from collections.abc import Sequence

from haclusterd.formats.stated import written_interval
from haclusterd.model import durations
from haclusterd.model.configuration import Operation
from haclusterd.model.ids import NCNAME

DEFAULT_SET_IDS = {
    "properties": "cib-bootstrap-options",
    "resource_defaults": "rsc-options",
    "operation_defaults": "op-options",
}

NO_INTERVAL = "0"
_OF_IDS = re.compile(r"[A-Za-z0-9._-]+")

LEVEL_ID = "fencing"
"""The id of the first fencing level."""


def allocate(wanted: Sequence[tuple[str | None, str]]) -> list[str]:
    """Give each of (given id or None, id to generate) an id; the second of equal generated ids ends in -2."""
    taken = {given for given, _ in wanted if given is not None}
    ids: list[str] = []
    for given, base in wanted:
        chosen, number = (base, 1) if given is None else (given, 0)
        while given is None and chosen in taken:
            number += 1
            chosen = f"{base}-{number}"
        taken.add(chosen)
        ids.append(chosen)
    return ids


def block_base(owner: str, section: str) -> str:
    """Return the id of an owner's first block; sections: params, meta, utilization, attributes.

    A node may be called 1, but no id may begin with a digit.
    """
    suffix = {
        "params": "instance_attributes",
        "attributes": "instance_attributes",
        "meta": "meta_attributes",
        "utilization": "utilization",
    }[section]
    return f"{owner}-{suffix}" if NCNAME.match(owner) else f"node-{owner}-{suffix}"


def operation_base(resource: str, action: str, interval: str) -> str:
    """Return the id of an operation, as in `web-monitor-10s`; the interval as it is written, as in crmsh, or empty."""
    if not _OF_IDS.fullmatch(interval):
        interval = _rendered(interval)
    return f"{resource}-{action}-{interval}"


def _rendered(interval: str) -> str:
    try:
        return durations.render(durations.parse(interval)) if interval else NO_INTERVAL
    except ValueError:
        return NO_INTERVAL


def interval_text(operation: Operation) -> str:
    """Return an operation's interval as it is written; whether 0 has a unit, its id alone says."""
    if operation.interval_ms:
        return written_interval(operation)
    return "0s" if operation.id.endswith(f"-{operation.name}-0s") else NO_INTERVAL


def rule_base(owner: str) -> str:
    """Return the id of the first rule of a constraint or block."""
    return f"{owner}-rule"


def set_base(constraint: str, number: int) -> str:
    """Return the id of a constraint's set, counted from 0."""
    return f"{constraint}-{number}"


def recipient_base(alert: str) -> str:
    """Return the id of an alert's first recipient."""
    return f"{alert}-recipient"


def mapping_base(bundle: str, kind: str) -> str:
    """Return the id of a bundle's first `port` or `storage` mapping."""
    return f"{bundle}-{kind}-mapping"


def are_natural(ids: Sequence[str], bases: Sequence[str]) -> bool:
    """Tell whether reading the owners without ids would make exactly these ids."""
    return list(ids) == allocate([(None, base) for base in bases])


def natural_operations(resource: str, operations: Sequence[Operation]) -> bool:
    """Tell whether a resource's operations need no ids in the text."""
    bases = [operation_base(resource, operation.name, interval_text(operation)) for operation in operations]
    return are_natural([operation.id for operation in operations], bases)


def permission_base(role: str, number: int) -> str:
    """Return the id of a role's permission; numbers count from 0, as in crmsh."""
    return f"{role}-{number}"


def own_role_of(user: str) -> str:
    """Return the role that holds permissions written for a user, as `cibadmin --upgrade` calls it."""
    return f"auto-{user}"
