"""Alert agents on simulated hosts: each call is noted, takes a while, and ends as the host does."""

from collections.abc import Callable
from dataclasses import dataclass

from haclusterd.model.alerts import AlertCall, AlertCallResult
from haclusterd.model.ids import NodeName
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


class SimulatedAlertAgents:
    """The `AlertAgents` of one brain."""

    def __init__(self, host: Host, boot: Boot, life: Life, delivered: list[DeliveredAlert]) -> None:
        self._host = host
        self._boot = boot
        self._life = life
        self._delivered = delivered

    def call(self, call: AlertCall, done: Callable[[AlertCallResult], None]) -> None:
        """See `AlertAgents.call`."""
        self._delivered.append(DeliveredAlert(self._host.name, call))
        result = AlertCallResult(0, "", TAKES_MS)

        def ended() -> None:
            self._life.after(0, lambda: done(result))

        self._boot.life.after(TAKES_MS * MS, ended)
