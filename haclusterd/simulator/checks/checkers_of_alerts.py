"""What must be of alerts, whatever happens to the DCs that deliver them (docs/design/0013-alerts.md)."""

from collections import Counter

from haclusterd.cib.changes import Applied
from haclusterd.model.alerts import targets
from haclusterd.model.cluster import Cib
from haclusterd.simulator.checks.checker import Checker, Log, Scene
from haclusterd.simulator.hosts.alert_agents import DeliveredAlert


class AlertsArriveInOrder(Checker):
    """Each recipient gets what it wants once without a mark, in the order of the log, and nothing is passed over.

    What was dropped, and counted as dropped, is not waited for.
    """

    def __init__(self, scene: Scene, log: Log) -> None:
        super().__init__(scene, log)
        self._last = 0
        self._wanted: dict[str, list[int]] = {}
        """By recipient: the events that it is to get and has not got, oldest first."""
        self._unmarked: Counter[tuple[str, int]] = Counter()
        self._seen: dict[str, int] = {}
        """By recipient: the newest event that it was called for."""
        self.delivered = 0
        self.repeated = 0

    def first_applied(self, applied: Applied) -> None:
        """Note what recipients are to get."""
        queue = applied.cib.status.alerts
        if queue.last == self._last and not queue.dropped:
            return
        wanted = list(targets(applied.cib.configuration))
        for event in queue.pending:
            if event.sequence > self._last:
                for target in wanted:
                    if target.wants(event):
                        self._wanted.setdefault(target.key, []).append(event.sequence)
        self._last = max(self._last, queue.last)
        if queue.dropped and queue.pending:
            through = queue.pending[0].sequence
            self._wanted = {key: [each for each in waiting if each >= through or not queue.dropped.get(key)]
                            for key, waiting in self._wanted.items()}  # fmt: skip

    def alert_begins(self, delivered: DeliveredAlert) -> None:
        """Judge a call."""
        key, numbers = delivered.call.key, delivered.call.sequences
        if list(numbers) != sorted(set(numbers)):
            self.object_to(f"{key} is called for {numbers}, which is no order")
        for number in numbers:
            self._judge(delivered, key, number)

    def _judge(self, delivered: DeliveredAlert, key: str, number: int) -> None:
        self.delivered += 1
        self.repeated += delivered.is_repeated
        if not delivered.is_repeated:
            self._unmarked[key, number] += 1
            if self._unmarked[key, number] > 1:
                self.object_to(f"{delivered.node} calls {key} for event {number} again, and does not say so")
        if number <= self._seen.get(key, 0):
            return
        self._seen[key] = number
        waiting = self._wanted.get(key, [])
        if not waiting or waiting[0] != number:
            self.object_to(f"{delivered.node} calls {key} for event {number}, and {waiting[:3]} come first")
        del waiting[0]

    def nothing_waits(self, cib: Cib) -> None:
        """Judge the end, when everything is delivered."""
        lost = {key: waiting[:5] for key, waiting in sorted(self._wanted.items()) if waiting}
        if lost:
            self.object_to(f"events were never delivered: {lost}")
        queue = cib.status.alerts
        open_tests = [key for key, test in queue.tests.items() if not test.is_done and not queue.dropped.get(key)]
        if open_tests:
            self.object_to(f"nobody says how tests of {open_tests} ended")

    def another_log_begins(self) -> None:
        """Begin again: its events have numbers of their own."""
        self._last = 0
        self._wanted.clear()
        self._unmarked.clear()
        self._seen.clear()
