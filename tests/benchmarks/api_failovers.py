"""A service whose node loses its power, over and over; how long the service is down each time.

Measured is from the last heartbeat of its node until the service itself writes that it starts: neither this process,
which may have the load to do as well, nor anything that asks the daemons is part of it.
"""

import signal
import statistics
import time
from pathlib import Path

from haclusterd.model.records import dataclass, field
from tests.processes.daemons import Scenario

FAILOVERS = 5
RECOVERED_WITHIN_S = 60.0


@dataclass
class Failovers:
    """One row of them. The service runs at home, until its node fails, and goes back there when it has booted."""

    scenario: Scenario
    directory: Path
    asked: str
    """The node that must not fail, because it is asked."""
    times: int = FAILOVERS
    home: str = ""
    witness: str = ""
    """The third node, which does not fail either: it may be the DC."""
    took_ms: list[int] = field(default_factory=list)

    @property
    def median_ms(self) -> int:
        return round(statistics.median(self.took_ms))

    def configure(self) -> None:
        """Let there be a service that prefers its home; call it once."""
        self._choose()
        command = f"echo started >> {self._starts}; exec sleep 100000"
        self.scenario.configure(
            self.scenario.power(),
            f"primitive svc ocf:haclusterd:exec params command=sh args=\"-c '{command}'\" "
            "op monitor interval=1s timeout=10s op start timeout=20s op stop timeout=20s",
            f"location svc-home svc 200: {self.home}",
            # A node that is fenced for the fourth time within an hour waits for that.
            "property fencing-loop-limit=0",
        )
        self._until_home()

    def play(self) -> None:
        self._choose()
        for _ in range(self.times):
            self._until_home()
            self.took_ms.append(self._fail_over_ms())
            self.scenario.revive(self.home)
        self._until_home()

    def _fail_over_ms(self) -> int:
        self.scenario.pacer(self.home).send_signal(signal.SIGSTOP)
        began_ns = time.time_ns()
        self.scenario.cluster.power_off(self.home)
        self.scenario.until("svc to start on another node", lambda: self._started_ns() > began_ns, RECOVERED_WITHIN_S)
        return (self._started_ns() - began_ns) // 1_000_000

    def _choose(self) -> None:
        """The DC does not fail: what is measured has no election in it."""
        dc = self.scenario.dc()
        self.home = next(name for name in self.scenario.cluster.names if name not in (self.asked, dc))
        self.witness = next(name for name in self.scenario.cluster.names if name not in (self.asked, self.home))

    def _until_home(self) -> None:
        self.scenario.until(f"svc to run on {self.home}", self._is_home, RECOVERED_WITHIN_S)

    def _is_home(self) -> bool:
        (row,) = (each for each in self.scenario.status(self.asked)["resources"] if each["id"] == "svc")
        is_there = [each["node"] for each in row["instances"]] == [self.home]
        return is_there and len(self.scenario.online()) == len(self.scenario.cluster.names) and self.scenario.is_idle()

    @property
    def _starts(self) -> Path:
        return self.directory / "starts"

    def _started_ns(self) -> int:
        """Return when the service started last."""
        return self._starts.stat().st_mtime_ns
