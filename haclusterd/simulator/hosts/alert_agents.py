"""Alert agents on simulated hosts: each call is noted, takes a while, may fail or hang, and ends as the host does."""

import random
from collections.abc import Callable

from haclusterd.model.alerts import AlertCall, AlertCallResult
from haclusterd.model.ids import NodeName
from haclusterd.model.records import dataclass
from haclusterd.simulator.hosts.hosts import Boot, Host
from haclusterd.simulator.hosts.world import MS, Life

TAKES_MS = 20


@dataclass(frozen=True, slots=True)
class DeliveredAlert:
    """A call that was begun, and by whom."""

    node: NodeName
    call: AlertCall

    @property
    def is_repeated(self) -> bool:
        """Whether the agent was warned that it may have had this before."""
        return self.call.environment["CRM_alert_repeated"] == "true"


class AlertBehaviour:
    """How calls end, and how long they take; drawn one by one."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.longest_ms = TAKES_MS
        self.failing = 0.0
        """Of the calls, those whose agent fails."""
        self.hanging = 0.0
        """Of the calls, those whose agent is killed at its timeout."""

    def draw(self, call: AlertCall) -> AlertCallResult:
        """Return how a call ends."""
        if self.longest_ms == TAKES_MS and not self.failing and not self.hanging:
            return AlertCallResult(0, "", TAKES_MS)
        drawn = self._chance.random()
        if drawn < self.hanging:
            return AlertCallResult(None, "timeout", call.timeout_ms)
        code = 1 if drawn < self.hanging + self.failing else 0
        return AlertCallResult(code, "exit code 1" if code else "", self._chance.randint(1, self.longest_ms))


class SimulatedAlertAgents:
    """The `AlertAgents` of one daemon."""

    def __init__(
        self, host: Host, boot: Boot, life: Life, behaviour: AlertBehaviour, begins: Callable[[DeliveredAlert], None]
    ) -> None:
        """`begins` is called with each call."""
        self._host = host
        self._boot = boot
        self._life = life
        self._behaviour = behaviour
        self._begins = begins

    def call(self, call: AlertCall, done: Callable[[AlertCallResult], None]) -> None:
        """See `AlertAgents.call`."""
        self._begins(DeliveredAlert(self._host.name, call))
        result = self._behaviour.draw(call)

        def ended() -> None:
            self._life.after(0, lambda: done(result))

        self._boot.life.after(result.executed_ms * MS, ended)
