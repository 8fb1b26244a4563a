"""What of a pacer's report is news: the main loop of a node that is not the DC wakes for nothing else.

A report comes with every heartbeat, and mostly shows only that all were heard a moment ago. The DC judges by it who is
lost, so to it every report is news. Whatever any other node does about the ages in it, it does at an instant that it
has set itself a timer for: the end of its own lease.
"""

from haclusterd.machines.joining import DeviceState
from haclusterd.machines.moment import Moment
from haclusterd.model.pacer import PacerReport
from haclusterd.runtime.pacer_settings import device_state
from haclusterd.runtime.settings import NodeSettings


class PacerNews:
    """What was known of the pacer when the machines were stepped last."""

    def __init__(self, settings: NodeSettings) -> None:
        self._settings = settings
        self._seen: tuple[DeviceState, bool, bool] | None = None
        self._errors: tuple[str, ...] = ()

    def new_errors(self, report: PacerReport) -> tuple[str, ...]:
        """Return what the pacer cannot do now and could do before."""
        before = self._errors
        self._errors = (*report.errors, *filter(None, (report.watchdog_problem,)))
        return tuple(error for error in self._errors if error not in before)

    def device_at(self, report: PacerReport | None, moment: Moment, *, is_answering: bool) -> DeviceState:
        """Return how the watchdog device stands; the machines are stepped with that and with this moment's lease."""
        device = device_state(self._settings, report)
        self._seen = (device, moment.has_lease, is_answering)
        return device

    def is_in(self, report: PacerReport, moment: Moment) -> bool:
        """Tell whether device, lease or the pacer's answering are not what they were at the last step."""
        return (device_state(self._settings, report), moment.has_lease, True) != self._seen
