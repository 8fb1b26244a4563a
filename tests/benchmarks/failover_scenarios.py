"""What is done to a cluster, and what the client outside misses of it.

Every trial starts with both clusters whole, so that neither's recovery takes the other's time, and at a moment that
has nothing to do with monitors, tokens or heartbeats.
"""

import random
import signal
import time
from collections.abc import Callable

from haclusterd.model.records import dataclass, field
from tests.benchmarks.failover_contenders import Contender
from tests.lab.site import NotAsExpectedError

WAIT_S_MAX = 60.0
LAST_ANSWERS = 10_000
SERVICE = "lab-service"


@dataclass(frozen=True, slots=True)
class Scenario:
    """`play` gets the holder, and returns when the fault is there; `end` undoes it after the recovery."""

    name: str
    target: float
    """The median of ours, divided by the peer's, is to be no more."""
    play: Callable[[Contender, str, random.Random], None]
    end: Callable[[Contender, str], None] = lambda _contender, _holder: None
    spread_s: float = 1.0
    """The fault comes at a random moment of this time."""
    by_dc: bool = False
    """Whether it is played on a holder that is the DC, and on one that is not, in turn."""
    is_handed_over: bool = False
    """Whether agents stop it on one node before they start it on another: their own time is a part of the outage."""


@dataclass(slots=True)
class Trial:
    """What came of one."""

    contender: str
    scenario: str
    is_dc: bool
    outage_ms: int = 0
    agents_ms: int | None = None
    """Of the outage, what the agents took; None: not asked."""
    problems: list[str] = field(default_factory=list)
    double_holders: list[str] = field(default_factory=list)


def _crash(contender: Contender, holder: str, chance: random.Random) -> None:
    contender.site.machines[holder].switch_off()


def _cut(contender: Contender, holder: str, chance: random.Random) -> None:
    contender.site.switch.unplug(contender.site.machines[holder].index)


def _hang(contender: Contender, holder: str, chance: random.Random) -> None:
    contender.site.machines[holder].stop_all()


def _kill(contender: Contender, holder: str, chance: random.Random) -> None:
    contender.site.machines[holder].signal(SERVICE, signal.SIGKILL)


def _move(contender: Contender, holder: str, chance: random.Random) -> None:
    contender.move(chance.choice(contender.site.others(holder)))


def _standby(contender: Contender, holder: str, chance: random.Random) -> None:
    contender.standby(holder)


def _plug_in(contender: Contender, holder: str) -> None:
    contender.site.heal()


def _end_move(contender: Contender, holder: str) -> None:
    contender.end_move()


def _online(contender: Contender, holder: str) -> None:
    contender.online(holder)


def _forget(contender: Contender, holder: str) -> None:
    contender.forget_failures()


def _losses(suffix: str, target: float) -> tuple[Scenario, ...]:
    return (
        Scenario(f"crash{suffix}", target, _crash, by_dc=True),
        Scenario(f"cut{suffix}", target, _cut, _plug_in, by_dc=True),
        Scenario(f"hang{suffix}", target, _hang, by_dc=True),
    )


AT_DEFAULTS = (*_losses("", 0.35), Scenario("kill10", 0.05, _kill, _forget, spread_s=10.0))
"""Both at their own defaults for lost nodes; monitors every 10 s."""

AT_EQUAL_TOLERANCE = (
    *_losses("_tuned", 0.55),
    Scenario("kill1", 0.5, _kill, _forget),
    Scenario("move", 0.7, _move, _end_move, is_handed_over=True),
    Scenario("standby", 0.7, _standby, _online, is_handed_over=True),
)
"""node-timeout 1 s against token 1000 ms and consensus 1200 ms; monitors every second."""


def play(contender: Contender, scenario: Scenario, *, on_dc: bool, chance: random.Random) -> Trial:
    """Do it once. The caller has waited until both clusters are whole."""
    site = contender.site
    if scenario.by_dc:
        _arrange(contender, on_dc=on_dc, chance=chance)
    holder = site.holder()
    trial = Trial(contender.name, scenario.name, holder == site.dc())
    time.sleep(0.2 + chance.uniform(0, scenario.spread_s))
    since = site.began = time.monotonic_ns()
    try:
        scenario.play(contender, holder, chance)
        site.until("the client to notice", lambda: _has_missed(contender, since), WAIT_S_MAX)
        site.until("the service to answer again", site.client.is_served, WAIT_S_MAX)
        trial.outage_ms = site.client.outage(since).total_ms
        if scenario.is_handed_over:
            trial.agents_ms = contender.agents_ms(holder, site.holder())
    except NotAsExpectedError as finding:
        trial.problems.append(str(finding))
    scenario.end(contender, holder)
    try:
        contender.settle()
    except NotAsExpectedError as finding:
        trial.problems.append(str(finding))
    trial.double_holders = site.double_holders(since)
    return trial


def _has_missed(contender: Contender, since: int) -> bool:
    last = contender.site.client.answers[-LAST_ANSWERS:]
    return any(not each.is_good and each.asked >= since for each in reversed(last))


def _arrange(contender: Contender, *, on_dc: bool, chance: random.Random) -> None:
    """Let the service run on the DC, or beside it."""
    site = contender.site
    dc, holder = site.dc(), site.holder()
    if (holder == dc) == on_dc:
        return
    target = dc if on_dc else chance.choice(site.others(dc))
    contender.move(target)
    site.until(f"the service to run on {target}", lambda: site.client.holder() == target, WAIT_S_MAX)
    contender.end_move()
    contender.settle()
