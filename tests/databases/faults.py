"""What is done to the primary, and what of it is judged.

Every trial begins with a whole cluster: a primary, two copies that follow it, one of them part of every commit. It ends
when an administrator has made it whole again with the words of the how-to page.
"""

import random
import signal
import time
from collections.abc import Callable
from typing import NamedTuple

from haclusterd.model.records import dataclass, field
from tests.databases.database import Database
from tests.databases.losses import Reason, judge
from tests.databases.sites import DatabaseSite, OurDatabases, PeerDatabases
from tests.lab.namespaces import LabError
from tests.lab.site import NotAsExpectedError

WAIT_S_MAX = 120.0
WHOLE_S_MAX = 180.0
QUIET_S = 5.0
MARGIN = 1_000
"""So many acknowledged numbers before a fault are looked for, beside all after it."""
DAEMONS = {OurDatabases: "entry_points.haclusterd", PeerDatabases: "pacemakerd"}


class Fault(NamedTuple):
    """`play` gets the primary, and returns when the fault is there; `end` undoes it once writes are taken again."""

    name: str
    play: Callable[[DatabaseSite, str, random.Random], None]
    end: Callable[[DatabaseSite], None] = lambda _site: None
    is_noticed: bool = True
    """Whether the client must miss something."""


@dataclass(slots=True)
class Trial:
    """What came of one."""

    database: str
    manager: str
    fault: str
    outage_ms: int = 0
    lost: int = 0
    reason: Reason | None = None
    """Why something was lost."""
    acknowledged: int = 0
    rejoined: int = 0
    double_primaries: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def _kill(site: DatabaseSite, primary: str, chance: random.Random) -> None:
    site.machines[primary].signal(site.database.process, signal.SIGKILL)


def _crash(site: DatabaseSite, primary: str, chance: random.Random) -> None:
    site.machines[primary].switch_off()


def _cut(site: DatabaseSite, primary: str, chance: random.Random) -> None:
    site.switch.unplug(site.machines[primary].index)


def _hang(site: DatabaseSite, primary: str, chance: random.Random) -> None:
    site.machines[primary].stop_all()


def _daemon(site: DatabaseSite, primary: str, chance: random.Random) -> None:
    needle = next(needle for kind, needle in DAEMONS.items() if isinstance(site, kind))
    site.machines[primary].signal(needle, signal.SIGKILL)


def _move(site: DatabaseSite, primary: str, chance: random.Random) -> None:
    database = site.database
    ready = database.candidates(site.machines[primary])
    target = chance.choice([each for each in site.others(primary) if each in ready])
    site.move(target)


FAULTS = (
    Fault("kill", _kill),
    Fault("crash", _crash),
    Fault("cut", _cut, lambda site: site.heal()),
    Fault("hang", _hang),
    Fault("daemon", _daemon, is_noticed=False),
    Fault("move", _move, lambda site: site.end_move()),
)


def play(site: DatabaseSite, fault: Fault, chance: random.Random) -> Trial:
    """Do it once, and make the cluster whole again. The caller has waited until all is well."""
    trial = Trial(site.database.name, site.manager, fault.name)
    primary = site.holder()
    time.sleep(0.2 + chance.uniform(0, 1))
    before = site.client.acknowledged[-MARGIN:]
    first = before[0].number if before else 0
    since = site.began = time.monotonic_ns()
    try:
        fault.play(site, primary, chance)
        if fault.is_noticed:
            site.until("the writer to notice", lambda: not site.client.is_served(), WAIT_S_MAX)
        else:
            time.sleep(QUIET_S)
        site.until("writes to be taken again", site.client.is_served, WAIT_S_MAX)
        trial.outage_ms = site.client.outage(since).total_ms
    except NotAsExpectedError as finding:
        trial.problems.append(str(finding))
    fault.end(site)
    try:
        trial.rejoined = make_whole(site, primary)
    except (NotAsExpectedError, LabError) as finding:
        trial.problems.append(str(finding))
    trial.double_primaries = site.double_holders(since)
    _count_losses(site, trial, first, since, primary)
    return trial


def _count_losses(site: DatabaseSite, trial: Trial, first: int, since: int, primary: str) -> None:
    acknowledged = {each.number: each for each in site.client.acknowledged[-200_000:] if each.number >= first}
    trial.acknowledged = len(acknowledged)
    try:
        lost = [acknowledged[number] for number in sorted(site.missing(first, set(acknowledged)))]
    except LabError as finding:
        trial.problems.append(str(finding))
        return
    trial.lost = len(lost)
    if lost:
        trial.reason = judge(lost, since, primary, has_commits_twice=site.database.has_commits_twice,
                             had_two_primaries=bool(trial.double_primaries))  # fmt: skip


def make_whole(site: DatabaseSite, former: str) -> int:
    """Wait until nothing is in flight, then make copies of what was primary; return of how many nodes.

    `former` was primary when the fault came.
    """
    database: Database = site.database
    machines = site.machines.values()
    rejoined: set[str] = set()

    def is_there() -> bool:
        if database.is_fenced_until_copied and former not in rejoined:
            _copy_at_once(site, former, rejoined)
        return all(each.is_on for each in machines) and site.is_at_rest()

    site.until(f"all nodes of {site.manager} to be there, at rest", is_there, WHOLE_S_MAX)
    site.until("writes to be taken", site.client.is_served, WAIT_S_MAX)
    deadline = time.monotonic() + WHOLE_S_MAX
    while not site.is_whole():
        if time.monotonic() > deadline:
            raise NotAsExpectedError(f"{site.manager} is not whole after {WHOLE_S_MAX:g} s: {site.explain()}")
        idle = [each for each in site.idle() if each.name not in rejoined]
        if idle and site.is_at_rest():
            for machine in idle:
                database.rejoin(machine)
                rejoined.add(machine.name)
            site.cleanup()
        time.sleep(0.2)
    return len(rejoined)


def _copy_at_once(site: DatabaseSite, former: str, rejoined: set[str]) -> None:
    """Make a copy of what was primary as soon as another node is, whatever the cluster does meanwhile."""
    machine = site.machines[former]
    if machine not in site.idle() or site.client.holder() in (None, former):
        return
    try:
        site.database.rejoin(machine)
        site.cleanup()
    except LabError:
        return  # It was fenced meanwhile; it comes up again.
    rejoined.add(former)
