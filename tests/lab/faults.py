"""The fault matrix: what is done to a running cluster, and what must come of it.

A fault is played on a whole cluster and waits for what its verdict promises; the round that plays it undoes it, waits
until the cluster is whole again, and audits. The verdicts are those of docs/design/safety.md §9:

    recovers   the service answers again within the fault's bound
    holds      nothing starts while the fault lasts, the first screen of status names the cause; afterwards it recovers
    detected   a lying device without a watchdog: an overlap may be, and is seen
"""

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from tests.lab.lab import Lab

NODE_TIMEOUT_S = 2.0
BRAIN = "entry_points.haclusterd"
PACER = "entry_points.pacer"
SERVICE = "lab-service"


class Verdict(StrEnum):
    """What must come of a fault."""

    RECOVERS = "recovers"
    HOLDS = "holds"
    DETECTED = "detected"


@dataclass(slots=True)
class Played:
    """What a fault did, and what must therefore be found."""

    fenced: tuple[str, ...] = ()
    """Nodes that must have been shot, and nobody else."""
    may_be_fenced: tuple[str, ...] = ()
    bound_ms: int = 500
    """The longest outage that the client may have seen."""
    explains: tuple[str, ...] = ()
    """Kinds of events that the history must have."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One row of the matrix."""

    name: str
    verdict: Verdict
    play: Callable[[Lab, random.Random], Played]


RECOVERY_MS = 9_000
"""Node-timeout, an election, fencing, two starts; the rest is for a machine that has other work."""


def _victim(lab: Lab, kind: str) -> str:
    """Return the node that holds the service, the DC, or one that is neither."""
    holder, dc = lab.holder(), lab.dc()
    if kind == "holder":
        return holder
    if kind == "dc":
        return dc
    return next(name for name in lab.machines if name not in (holder, dc))


def _recovered(lab: Lab, victim: str, patience_s: float = 30.0) -> None:
    """Wait until the client is served, and by somebody else than a node that was shot."""
    lab.until(f"{victim} to be fenced", lambda: victim in lab.fenced(lab.began), patience_s)
    lab.until("the service to answer", lab.client.is_served, patience_s)


def _shot(*names: str, is_holder: bool) -> Played:
    bound_ms = RECOVERY_MS if is_holder else 500
    return Played(fenced=names, bound_ms=bound_ms, explains=("node-lost", "node-fenced"))


# -- processes --------------------------------------------------------------------------------------------------------


def service_killed(lab: Lab, chance: random.Random) -> Played:
    lab.machines[lab.holder()].signal(SERVICE, signal.SIGKILL)
    lab.until("the client to notice", lambda: not lab.client.is_served(), 5)
    lab.until("the service to answer", lab.client.is_served, 20)
    return Played(bound_ms=4_000, explains=("operation-failed",))


def _brain(kind: str, number: int) -> Callable[[Lab, random.Random], Played]:
    def play(lab: Lab, chance: random.Random) -> Played:
        name = _victim(lab, kind)
        machine = lab.machines[name]
        before = machine.find(SERVICE)
        machine.signal(BRAIN, number)
        lab.hold("the service runs on", lambda: machine.find(SERVICE) == before, 3)
        return Played()

    return play


def _brain_hung(kind: str) -> Callable[[Lab, random.Random], Played]:
    def play(lab: Lab, chance: random.Random) -> Played:
        name = _victim(lab, kind)
        is_holder = name == lab.holder()
        machine = lab.machines[name]
        machine.signal(BRAIN, signal.SIGSTOP)
        machine.is_stopped = True
        lab.until(f"{name} to be fenced", lambda: name in lab.fenced(lab.began), 40)
        lab.until("the service to answer", lab.client.is_served, 30)
        return _shot(name, is_holder=is_holder)

    return play


def _brain_stopped(kind: str) -> Callable[[Lab, random.Random], Played]:
    """For half of brain-timeout."""

    def play(lab: Lab, chance: random.Random) -> Played:
        machine = lab.machines[_victim(lab, kind)]
        machine.signal(BRAIN, signal.SIGSTOP)
        machine.is_stopped = True
        time.sleep(5)
        machine.continue_all()
        return Played()

    return play


def pacer_killed(lab: Lab, chance: random.Random) -> Played:
    lab.machines[lab.holder()].signal(PACER, signal.SIGKILL)
    time.sleep(2.5 * NODE_TIMEOUT_S)
    return Played()


def both_killed(lab: Lab, chance: random.Random) -> Played:
    machine = lab.machines[lab.holder()]
    machine.signal("haclusterd.entry_points", signal.SIGKILL)
    time.sleep(2.5 * NODE_TIMEOUT_S)
    return Played()


def _rolling(number: int) -> Callable[[Lab, random.Random], Played]:
    def play(lab: Lab, chance: random.Random) -> Played:
        for machine in lab.machines.values():
            before = machine.find(BRAIN)
            machine.signal(BRAIN, number)
            if number != signal.SIGHUP:
                lab.until(f"{machine.name}'s daemon to end", lambda m=machine, b=before: m.find(BRAIN) != b, 60)
            lab.until(f"{machine.name} to be back", lab.is_whole, 60)
        return Played(bound_ms=4_000)

    return play


# -- machines ---------------------------------------------------------------------------------------------------------


def _crash(kind: str) -> Callable[[Lab, random.Random], Played]:
    def play(lab: Lab, chance: random.Random) -> Played:
        name = _victim(lab, kind)
        is_holder = name == lab.holder()
        lab.machines[name].switch_off()
        _recovered(lab, name)
        return _shot(name, is_holder=is_holder)

    return play


def _hang(kind: str) -> Callable[[Lab, random.Random], Played]:
    def play(lab: Lab, chance: random.Random) -> Played:
        name = _victim(lab, kind)
        is_holder = name == lab.holder()
        lab.machines[name].stop_all()
        _recovered(lab, name)
        return _shot(name, is_holder=is_holder)

    return play


def _pause(kind: str) -> Callable[[Lab, random.Random], Played]:
    def play(lab: Lab, chance: random.Random) -> Played:
        machine = lab.machines[_victim(lab, kind)]
        machine.stop_all()
        time.sleep(0.75 * NODE_TIMEOUT_S)
        machine.continue_all()
        time.sleep(NODE_TIMEOUT_S)
        return Played(bound_ms=3_000)

    return play


FAULTS = (
    Fault("service-kill", Verdict.RECOVERS, service_killed),
    Fault("crash-holder", Verdict.RECOVERS, _crash("holder")),
    Fault("crash-dc", Verdict.RECOVERS, _crash("dc")),
    Fault("crash-other", Verdict.RECOVERS, _crash("other")),
    Fault("hang-holder", Verdict.RECOVERS, _hang("holder")),
    Fault("hang-dc", Verdict.RECOVERS, _hang("dc")),
    Fault("pause-holder", Verdict.RECOVERS, _pause("holder")),
    Fault("pause-dc", Verdict.RECOVERS, _pause("dc")),
    Fault("brain-kill-holder", Verdict.RECOVERS, _brain("holder", signal.SIGKILL)),
    Fault("brain-kill-dc", Verdict.RECOVERS, _brain("dc", signal.SIGKILL)),
    Fault("brain-renew-holder", Verdict.RECOVERS, _brain("holder", signal.SIGHUP)),
    Fault("brain-renew-dc", Verdict.RECOVERS, _brain("dc", signal.SIGHUP)),
    Fault("brain-hang-holder", Verdict.RECOVERS, _brain_hung("holder")),
    Fault("brain-hang-dc", Verdict.RECOVERS, _brain_hung("dc")),
    Fault("brain-pause-dc", Verdict.RECOVERS, _brain_stopped("dc")),
    Fault("pacer-kill", Verdict.RECOVERS, pacer_killed),
    Fault("both-kill", Verdict.RECOVERS, both_killed),
    Fault("rolling-renew", Verdict.RECOVERS, _rolling(signal.SIGHUP)),
    Fault("rolling-restart", Verdict.RECOVERS, _rolling(signal.SIGTERM)),
)
