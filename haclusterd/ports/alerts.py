"""Execution of alert agents (Pacemaker Administration, "Alert Agents").

Contract: what an agent is to know is in its environment, never in an argument vector or a log. It runs at ordinary
priority, in a process group of its own, which is killed at the timeout. `done` is called once, on the main loop.
"""

from collections.abc import Callable
from typing import Protocol

from haclusterd.model.alerts import AlertCall as AlertCall
from haclusterd.model.alerts import AlertCallResult as AlertCallResult


class AlertAgents(Protocol):
    """Runs alert agents on this node."""

    def call(self, call: AlertCall, done: Callable[[AlertCallResult], None]) -> None:
        """Run the agent; deliver how it ended on the main loop."""
        ...
