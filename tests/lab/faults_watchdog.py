"""Faults of machines that nothing fences but their own watchdogs (docs/design/safety.md §2).

A node that cannot be heard counts as fenced after W. Before that its watchdog must have reset it, or it must have
stopped everything by itself; the witnesses look whether it has.
"""

import random
import signal
from collections.abc import Callable

from tests.lab.faults import Cluster, Fault, Played, Verdict, victim
from tests.lab.faults_processes import BRAIN, PACER
from tests.lab.lab import Lab

WATCHDOG_MS = 2_000
AFTER_W_MS = 16_000
"""Node-timeout, W = (2 s + 2 x 2 s) x 1.02 + 1 s, and two starts; the rest is for a machine that has other work."""


def _recovered(lab: Lab, name: str, *, is_reset: bool) -> None:
    if is_reset:
        lab.until(f"{name} to be reset by its watchdog", lambda: name in lab.fenced(lab.began, "reset"), 40)
    lab.until("the service to end there", lambda: lab.client.holder() != name, 40)
    lab.until("the service to answer", lab.client.is_served, 40)


def _hang(lab: Lab, chance: random.Random) -> Played:
    """Everything on the holder stands still, its pacer included; its next boot proves the old one dead before W."""
    holder = lab.holder()
    lab.machines[holder].stop_all()
    _recovered(lab, holder, is_reset=True)
    return Played(bound_ms=AFTER_W_MS, explains=("node-lost",))


def _crash(lab: Lab, chance: random.Random) -> Played:
    holder = lab.holder()
    lab.machines[holder].switch_off()
    _recovered(lab, holder, is_reset=False)
    return Played(bound_ms=AFTER_W_MS, explains=("node-lost", "node-fenced"))


def _cut(lab: Lab, chance: random.Random) -> Played:
    """The holder is cut from its peers only: it stops in time, and need not be reset."""
    holder = lab.holder()
    for other in lab.others(holder):
        lab.switch.drop(lab.machines[other].index, lab.machines[holder].index)
        lab.switch.drop(lab.machines[holder].index, lab.machines[other].index)
    _recovered(lab, holder, is_reset=False)
    return Played(bound_ms=AFTER_W_MS, explains=("node-lost", "node-fenced"))


def _stopped(program: str) -> Callable[[Lab, random.Random], Played]:
    """One of the two daemons stands still on the holder, everything else goes on."""

    def play(lab: Lab, chance: random.Random) -> Played:
        name = victim(lab, "holder")
        machine = lab.machines[name]
        machine.signal(program, signal.SIGSTOP)
        machine.is_stopped = True
        _recovered(lab, name, is_reset=True)
        return Played(bound_ms=AFTER_W_MS)

    return play


def _all_cut(lab: Lab, chance: random.Random) -> Played:
    """Everybody from everybody: all stop; who runs nothing is fed on, and nobody is reset."""
    for name in lab.machines:
        for other in lab.others(name):
            lab.switch.drop(lab.machines[name].index, lab.machines[other].index)
    lab.until("the service to end", lambda: not lab.client.is_served(), 15)
    lab.hold("nothing answers", lambda: not lab.client.is_served(), 4 * WATCHDOG_MS / 1000)
    resets = lab.fenced(lab.began, "reset")
    assert not resets, f"reset although empty: {resets}"
    return Played(bound_ms=60_000)


FAULTS = (
    Fault("watchdog-hang", Verdict.RECOVERS, _hang, cluster=Cluster.WATCHDOGS),
    Fault("watchdog-crash", Verdict.RECOVERS, _crash, cluster=Cluster.WATCHDOGS),
    Fault("watchdog-cut-peers", Verdict.RECOVERS, _cut, cluster=Cluster.WATCHDOGS),
    Fault("watchdog-brain-hang", Verdict.RECOVERS, _stopped(BRAIN), cluster=Cluster.WATCHDOGS),
    Fault("watchdog-pacer-hang", Verdict.RECOVERS, _stopped(PACER), cluster=Cluster.WATCHDOGS),
    Fault("watchdog-cut-all", Verdict.HOLDS, _all_cut, cluster=Cluster.WATCHDOGS),
)
