"""Delivers alerts by the clock of one daemon: starts the calls that the machine returns, and proposes its progress.

A failure of an agent is a line in the log, and delays nothing else.
"""

from collections.abc import Callable
from functools import partial

from haclusterd.cib.commands import Command
from haclusterd.machines.alerting import AlertingMachine
from haclusterd.machines.effects import Scope
from haclusterd.model.alerts import AlertCall, AlertCallResult
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import Instant
from haclusterd.ports.event_log import Priority
from haclusterd.runtime.ports import NodePorts


class AlertDelivery:
    """One node's delivery: idle unless this node is DC."""

    def __init__(
        self,
        node: NodeName,
        incarnation: Incarnation,
        ports: NodePorts,
        *,
        propose: Callable[[Scope, str, Command], None],
        wake: Callable[[], None],
    ) -> None:
        self._machine = AlertingMachine(node, incarnation)
        self._clock = ports.clock
        self._agents = ports.alerts
        self._log = ports.log
        self._propose = propose
        self._wake = wake

    def reincarnated(self, incarnation: Incarnation) -> None:
        """Start a new incarnation of this node."""
        self._machine.reincarnated(incarnation)

    def step(self, cib: Cib) -> None:
        """Start the calls that are due."""
        step = self._machine.step(cib, self._clock.now())
        for call in step.calls:
            self._agents.call(call, partial(self._finished, call))
        for key, count in sorted(step.dropped.items()):
            self._log.write("alert.dropped", priority=Priority.WARNING, recipient=key, count=count)
        if step.record is not None:
            self._propose(Scope.DC, f"alerts:{step.record.term}", step.record)

    def deadline(self) -> Instant:
        """Return when to call `step` again if nothing happens before."""
        return self._machine.deadline()

    def _finished(self, call: AlertCall, result: AlertCallResult) -> None:
        self._machine.finished(call, result)
        self._log.write(
            "alert.failed" if result.problem else "alert.delivered",
            priority=Priority.WARNING if result.problem else Priority.DEBUG,
            recipient=call.key,
            sequence=call.sequence,
            problem=result.problem or None,
            executed_ms=result.executed_ms,
        )
        self._wake()
