"""An event as the environment of an alert agent (Pacemaker Administration, "Alert Agents", "Writing an Alert Agent").

Beyond Pacemaker: `CRM_alert_repeated` is `true` where another DC may have delivered the same event before;
`CRM_alert_alike` is the number of events that `incident-interval` suppressed since the last call. `CRM_alert_incident`
is the incident that the event belongs to; `CRM_alert_test` is `true` for a test. Where `incident-group` has collected
several events, the variables are those of the newest one, `CRM_alert_grouped` is their number, and `CRM_alert_events`
has them all: a JSON array of objects, oldest first, with the names that follow `CRM_alert_`. Every other variable is
also set as `CRM_notify_...`, for scripts that were written for ClusterMon.
"""

import json
from collections.abc import Mapping
from typing import Final

from haclusterd.formats.cib_xml.status_writer import OPERATION_STATUS, node_numbers
from haclusterd.model.alerts import AlertEvent, AlertTarget, render_time
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import AlertKind
from haclusterd.model.ids import NodeName

VERSION: Final = "2.1.5"
"""The Pacemaker release whose interface this is: some agents check that the variable is set."""
_KINDS: Final = {AlertKind.NODES: "node", AlertKind.FENCING: "fencing", AlertKind.RESOURCES: "resource",
                 AlertKind.ATTRIBUTES: "attribute"}  # fmt: skip
_PREFIXES: Final = ("CRM_alert_", "CRM_notify_")
_VALUE_MAX: Final = 500
"""Maximum characters of one value in a group: a variable has 128 KiB, and a group up to `GROUP_MAX` events."""


def environment_of(
    cib: Cib,
    target: AlertTarget,
    event: AlertEvent,
    *,
    is_repeated: bool,
    alike: int | None,
    earlier: tuple[AlertEvent, ...] = (),
) -> dict[str, str]:
    """Return the environment of a recipient's agent, its own parameters first.

    `earlier`: older events of the same incident that this call covers as well.
    """
    values = {
        "version": VERSION,
        **_of_event(target, event),
        "repeated": str(is_repeated).lower(),
    }
    if target.recipient is not None:
        values["recipient"] = target.recipient.value
    if alike is not None:
        values["alike"] = str(alike)
    if event.only:
        values["test"] = "true"
    number = node_numbers(cib).get(NodeName(event.node))
    if number is not None:
        values["nodeid"] = number
    variables = {f"{prefix}{name}": value for prefix in _PREFIXES for name, value in values.items()}
    if earlier:
        listed = [_shortened(_of_event(target, each)) for each in (*earlier, event)]
        variables["CRM_alert_grouped"] = str(len(listed))
        variables["CRM_alert_events"] = json.dumps(listed, separators=(",", ":"))
    return {**target.parameters, **variables}


def _shortened(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values, shortened so that a group of events fits into one variable."""
    return {name: value[:_VALUE_MAX] for name, value in values.items()}


def _of_event(target: AlertTarget, event: AlertEvent) -> dict[str, str]:
    """Return the variables of one event, the same in a call of its own and in a group."""
    values = {
        "kind": _KINDS[event.kind],
        "node_sequence": str(event.sequence),
        "timestamp": render_time(event.at, target.settings.timestamp_format),
        "timestamp_epoch": str(event.at // 1000),
        "timestamp_usec": str(event.at % 1000 * 1000),
        "node": event.node,
        **_own(event),
    }
    return {**values, "incident": event.incident} if event.incident else values


def _own(event: AlertEvent) -> dict[str, str]:
    """Return the variables that are specific to the event's kind."""
    match event.kind:
        case AlertKind.NODES:
            return {"desc": event.description}
        case AlertKind.FENCING:
            return {"desc": event.description, "task": event.task, "rc": str(event.exit_code)}
        case AlertKind.ATTRIBUTES:
            return {"attribute_name": event.attribute, "attribute_value": event.value}
        case AlertKind.RESOURCES:
            assert event.status is not None
            return {
                "desc": event.description,
                "rsc": event.resource,
                "task": event.task,
                "interval": str(event.interval_ms),
                "status": str(OPERATION_STATUS[event.status]),
                "rc": str(event.exit_code),
                "target_rc": str(event.target_exit_code),
                "exec_time": str(event.executed_ms),
            }
