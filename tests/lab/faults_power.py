"""Faults of the power switch, each together with the loss of the machine that holds the service."""

import random
import signal
import time

from tests.lab.faults import NODE_TIMEOUT_S, RECOVERY_MS, Fault, Played, Verdict, await_recovery
from tests.lab.lab import Lab

HELD_S = 4 * NODE_TIMEOUT_S
SLOW_S = 4.0


def _gravest(lab: Lab) -> str:
    """Return what the first screen of status says."""
    return " / ".join(f"{each['text']} {each['remedy']}" for each in lab.status()["headlines"])


def _must_be_shown(lab: Lab, name: str) -> None:
    noted = _gravest(lab)
    if name not in noted or "fenc" not in noted:
        raise AssertionError(f"status does not say that {name} cannot be fenced: {noted!r}")


def dead_switch(lab: Lab, chance: random.Random) -> Played:
    """The holder crashes, and nobody can prove it: nothing is recovered until the switch works again."""
    holder = lab.holder()
    lab.power.is_dead = True
    lab.machines[holder].switch_off()
    lab.until("the client to notice", lambda: not lab.client.is_served(), 5)
    lab.hold("nothing is recovered", lambda: not lab.client.is_served(), HELD_S)
    _must_be_shown(lab, holder)
    lab.power.restore()
    await_recovery(lab, holder, 60)
    return Played(fenced=(holder,), bound_ms=60_000, explains=("node-lost", "node-fenced"))


def dead_switch_and_return(lab: Lab, chance: random.Random) -> Played:
    """The holder crashes, cannot be fenced, and comes back by itself: its new boot proves that the old one is dead."""
    holder = lab.holder()
    lab.power.is_dead = True
    lab.machines[holder].switch_off()
    lab.until("the client to notice", lambda: not lab.client.is_served(), 5)
    lab.hold("nothing is recovered", lambda: not lab.client.is_served(), HELD_S)
    lab.machines[holder].switch_on()
    lab.until("the service to answer", lab.client.is_served, 60)
    return Played(bound_ms=60_000, explains=("node-lost",))


def dead_switch_and_cut(lab: Lab, chance: random.Random) -> Played:
    """The holder is cut from its peers, and cannot be fenced: it stops the service itself, nobody else starts it."""
    holder = lab.holder()
    lab.power.is_dead = True
    for other in lab.others(holder):
        lab.switch.drop(lab.machines[other].index, lab.machines[holder].index)
        lab.switch.drop(lab.machines[holder].index, lab.machines[other].index)
    lab.until("the holder to stop the service", lambda: not lab.client.is_served(), 10)
    lab.hold("nothing is recovered", lambda: not lab.client.is_served(), HELD_S)
    lab.switch.heal([each.index for each in lab.machines.values()])
    lab.power.restore()
    lab.until("the service to answer", lab.client.is_served, 60)
    return Played(may_be_fenced=(holder,), bound_ms=60_000)


def slow_switch(lab: Lab, chance: random.Random) -> Played:
    holder = lab.holder()
    lab.power.delay_s = SLOW_S
    lab.machines[holder].switch_off()
    await_recovery(lab, holder, 40)
    return Played(fenced=(holder,), bound_ms=RECOVERY_MS + int(SLOW_S * 1000))


def slow_switch_and_return(lab: Lab, chance: random.Random) -> Played:
    """The holder is back before the shot that was fired at it lands: it may not join before, and is shot."""
    holder = lab.holder()
    lab.power.delay_s = SLOW_S
    lab.machines[holder].switch_off()
    lab.until("the shot", lambda: holder in lab.fenced(lab.began, "fence-asked"), 20)
    lab.machines[holder].switch_on()
    lab.hold(
        "it may not join before the shot has landed",
        lambda: holder in lab.fenced(lab.began) or holder not in lab.online(),
        SLOW_S - 0.5,
    )
    await_recovery(lab, holder, 40)
    return Played(fenced=(holder,), bound_ms=RECOVERY_MS + int(SLOW_S * 1000))


def lying_switch_dead_machine(lab: Lab, chance: random.Random) -> Played:
    """It says that it shot a machine that is dead anyhow."""
    holder = lab.holder()
    lab.power.is_lying = True
    lab.machines[holder].switch_off()
    lab.until("the lie", lambda: holder in lab.fenced(lab.began, "fence-lied"), 20)
    lab.until("the service to answer", lab.client.is_served, 20)
    return Played(bound_ms=RECOVERY_MS)


def lying_switch_live_machine(lab: Lab, chance: random.Random) -> Played:
    """The holder's daemon hangs, the switch lies, and the holder's heartbeats say so: nothing is recovered."""
    holder = lab.holder()
    machine = lab.machines[holder]
    lab.power.is_lying = True
    machine.signal("entry_points.haclusterd", signal.SIGSTOP)
    machine.is_stopped = True
    lab.until("the lie", lambda: holder in lab.fenced(lab.began, "fence-lied"), 40)
    until = time.monotonic() + HELD_S
    while time.monotonic() < until:
        others = [each for each in lab.others(holder) if lab.machines[each].find("lab-service")]
        assert not others, f"recovered on {others} while {holder} lives"
        time.sleep(0.1)
    _must_be_shown(lab, holder)
    lab.power.restore()
    await_recovery(lab, holder, 60)
    return Played(fenced=(holder,), bound_ms=60_000)


def lying_switch_silent_machine(lab: Lab, chance: random.Random) -> Played:
    """The holder stands still, the switch lies, and nobody can know; then it runs on. The overlap is the witnesses'.

    Found out, it is fenced, unless it has stopped everything by itself and joined with a new life before that.
    """
    holder = lab.holder()
    machine = lab.machines[holder]
    lab.power.is_lying = True
    machine.stop_all()
    lab.until("the lie", lambda: holder in lab.fenced(lab.began, "fence-lied"), 20)
    lab.until("the service to answer", lab.client.is_served, 20)
    lab.power.restore()
    machine.continue_all()
    lab.until("the lie to be found out", lambda: "lied" in str(lab.events(0)), 20)
    return Played(may_be_fenced=(holder,), bound_ms=RECOVERY_MS)


FAULTS = (
    Fault("fence-dead", Verdict.HOLDS, dead_switch, sizes=(3, 5)),
    Fault("fence-dead-return", Verdict.HOLDS, dead_switch_and_return),
    Fault("fence-dead-cut", Verdict.HOLDS, dead_switch_and_cut),
    Fault("fence-slow", Verdict.RECOVERS, slow_switch, sizes=(3, 5)),
    Fault("fence-slow-return", Verdict.RECOVERS, slow_switch_and_return),
    Fault("fence-lies-dead", Verdict.RECOVERS, lying_switch_dead_machine),
    Fault("fence-lies-alive", Verdict.HOLDS, lying_switch_live_machine),
    Fault("fence-lies-silent", Verdict.DETECTED, lying_switch_silent_machine),
)
