"""Which parts of a pacer report are news: the main loop of a node that is not the DC wakes for nothing else.

A report comes with every heartbeat, and mostly shows only that all nodes were heard a moment ago. The DC judges by it
which nodes are lost, so every report is news to the DC. Another node acts on the ages in it only at the end of its own
lease, for which it has set a timer.
"""

from haclusterd.machines.joining import DeviceState
from haclusterd.machines.moment import Moment
from haclusterd.model.pacer import PacerReport
from haclusterd.runtime.pacer_settings import device_state
from haclusterd.runtime.settings import NodeSettings


class PacerNews:
    """What was known of the pacer when the machines were last stepped."""

    def __init__(self, settings: NodeSettings) -> None:
        self._settings = settings
        self._seen: tuple[DeviceState, bool, bool] | None = None
        self._errors: tuple[str, ...] = ()

    def new_errors(self, report: PacerReport) -> tuple[str, ...]:
        """Return the pacer's problems that are new in this report."""
        before = self._errors
        self._errors = (*report.errors, *filter(None, (report.watchdog_problem,)))
        return tuple(error for error in self._errors if error not in before)

    def device_at(self, report: PacerReport | None, moment: Moment, *, is_answering: bool) -> DeviceState:
        """Return the state of the watchdog device; the machines are stepped with it and with this moment's lease."""
        device = device_state(self._settings, report)
        self._seen = (device, moment.has_lease, is_answering)
        return device

    def is_in(self, report: PacerReport, moment: Moment) -> bool:
        """Return whether device, lease or the pacer's answering differ from the last step."""
        return (device_state(self._settings, report), moment.has_lease, True) != self._seen
