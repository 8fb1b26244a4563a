"""`apply` for alerts: how far their recipients have got."""

from dataclasses import replace

from haclusterd.cib.changes import RefusalCode
from haclusterd.cib.commands import RecordAlerts
from haclusterd.cib.derived.alert_events import trimmed
from haclusterd.cib.verdict import Entry, Verdict, accept, refuse, with_status
from haclusterd.model.cluster import Cib


def record_alerts(cib: Cib, command: RecordAlerts, entry: Entry) -> Verdict:
    """Believe the DC of this term; nobody falls back, nobody is ahead of what happened."""
    controller = cib.status.controller
    if controller is None or controller.term != command.term:
        return refuse(cib, RefusalCode.OLD_TERM, f"term {command.term} is over")
    queue = cib.status.alerts
    delivered = {
        key: max(position, min(command.delivered.get(key, 0), queue.last)) for key, position in queue.delivered.items()
    }
    after = trimmed(replace(queue, delivered=delivered))
    return accept(with_status(cib, replace(cib.status, alerts=after)))
