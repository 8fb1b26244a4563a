"""The priority of a log line about a change of the CIB (table for administrators: docs/howto/read-the-log.md)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from haclusterd.model.change_kinds import ChangeKind
from haclusterd.ports.event_log import Priority

_PRIORITIES: Final[Mapping[ChangeKind, Priority]] = MappingProxyType({
    ChangeKind.NODE_LOST: Priority.ERROR,
    ChangeKind.FENCING_FAILED: Priority.ERROR,
    ChangeKind.OPERATION_FAILED: Priority.ERROR,
    ChangeKind.FENCING_ORDERED: Priority.WARNING,
    ChangeKind.NODE_FENCED: Priority.WARNING,
    ChangeKind.OUTCOME_UNKNOWN: Priority.WARNING,
    ChangeKind.DEVICES_CHANGED: Priority.WARNING,
    ChangeKind.DEVICE_STORM: Priority.WARNING,
    ChangeKind.HISTORY_GAP: Priority.WARNING,
    ChangeKind.CLUSTER_FORMED: Priority.NOTICE,
    ChangeKind.MEMBERS_CHANGED: Priority.NOTICE,
    ChangeKind.NODE_RETIRED: Priority.NOTICE,
    ChangeKind.DC_ELECTED: Priority.NOTICE,
    ChangeKind.NODE_JOINED: Priority.NOTICE,
    ChangeKind.NODE_LEAVING: Priority.NOTICE,
    ChangeKind.NODE_LEFT: Priority.NOTICE,
    ChangeKind.CONFIGURATION_CHANGED: Priority.NOTICE,
    ChangeKind.RULES_JUDGED: Priority.NOTICE,
    ChangeKind.RESTART_BEGUN: Priority.NOTICE,
    ChangeKind.RESTART_ENDED: Priority.NOTICE,
    ChangeKind.TICKET_CHANGED: Priority.NOTICE,
    ChangeKind.API_TOKEN_CHANGED: Priority.NOTICE,
    ChangeKind.SECRET_CHANGED: Priority.NOTICE,
    ChangeKind.SECRET_KEY_CHANGED: Priority.NOTICE,
    ChangeKind.SECRET_SHOWN: Priority.NOTICE,
    ChangeKind.WATCHDOG_CHANGED: Priority.NOTICE,
    ChangeKind.DEVICE_STEERED: Priority.NOTICE,
    ChangeKind.DEVICE_RECOVERY_BEGUN: Priority.NOTICE,
    ChangeKind.DEVICE_RECOVERY_ENDED: Priority.NOTICE,
    ChangeKind.REFUSED: Priority.DEBUG,
})  # fmt: skip


def priority_of(kind: ChangeKind, *, is_replayed: bool = False) -> Priority:
    """Return the priority; entries that a daemon replays at its start are not reported as new."""
    return Priority.DEBUG if is_replayed else _PRIORITIES.get(kind, Priority.INFO)
