"""`apply` for alerts: the progress of deliveries, and tests."""

from haclusterd.cib.changes import ChangeKind, RefusalCode
from haclusterd.cib.commands import RecordAlerts, RequestAlertTest
from haclusterd.cib.derived.alert_events import trimmed, with_test
from haclusterd.cib.verdict import Entry, Verdict, accept, by, change, refuse, with_status
from haclusterd.model.alerts import targets
from haclusterd.model.cluster import Cib
from haclusterd.model.records import replace


def record_alerts(cib: Cib, command: RecordAlerts, entry: Entry) -> Verdict:
    """Record the deliveries of the DC of this term; progress never goes back, nor beyond the newest event."""
    controller = cib.status.controller
    if controller is None or controller.term != command.term:
        return refuse(cib, RefusalCode.OLD_TERM, f"term {command.term} is over")
    queue = cib.status.alerts
    delivered = {
        key: max(position, min(command.delivered.get(key, 0), queue.last)) for key, position in queue.delivered.items()
    }
    ended = {
        key: test for key, test in sorted(command.tests.items())
        if key in queue.tests and queue.tests[key].sequence == test.sequence
    }  # fmt: skip
    tests = {**queue.tests, **ended} if ended else queue.tests
    after = trimmed(replace(queue, delivered=delivered, tests=tests))
    return accept(with_status(cib, replace(cib.status, alerts=after)))


def request_alert_test(cib: Cib, command: RequestAlertTest, entry: Entry) -> Verdict:
    """Put a test event into the queue of these recipients; it is delivered like every other event."""
    known = {target.key for target in targets(cib.configuration)}
    unknown = [key for key in command.recipients if key not in known]
    if unknown or not command.recipients:
        text = f"there is no recipient {', '.join(unknown)} of an alert" if unknown else "no recipient is named"
        return refuse(cib, RefusalCode.CONFIGURATION_CONFLICT, text)
    text = f"a test was sent to {', '.join(command.recipients)}" + by(command.author, command.reason)
    tested = with_test(cib, command, entry.at)
    return accept(tested, change(ChangeKind.ALERT_TESTED, text))
