"""Faults of whole machines: crash, hang, pause, a full disk, and all of them without power."""

import random
import time
from collections.abc import Callable

from tests.lab.faults import NODE_TIMEOUT_S, RECOVERY_MS, Fault, Played, Verdict, await_recovery, shot, victim
from tests.lab.lab import Lab

COLD_START_MS = 40_000
"""What an unseen member may cost: max(10 s, 5 node-timeouts) before it is fenced, and the rest."""


def _crash(kind: str) -> Callable[[Lab, random.Random], Played]:
    def play(lab: Lab, chance: random.Random) -> Played:
        name = victim(lab, kind)
        is_holder = name == lab.holder()
        lab.machines[name].switch_off()
        await_recovery(lab, name)
        return shot(name, is_holder=is_holder)

    return play


def _hang(kind: str) -> Callable[[Lab, random.Random], Played]:
    def play(lab: Lab, chance: random.Random) -> Played:
        name = victim(lab, kind)
        is_holder = name == lab.holder()
        lab.machines[name].stop_all()
        await_recovery(lab, name)
        return shot(name, is_holder=is_holder)

    return play


def _pause(kind: str) -> Callable[[Lab, random.Random], Played]:
    def play(lab: Lab, chance: random.Random) -> Played:
        machine = lab.machines[victim(lab, kind)]
        machine.stop_all()
        time.sleep(0.75 * NODE_TIMEOUT_S)
        machine.continue_all()
        time.sleep(NODE_TIMEOUT_S)
        return Played(bound_ms=3_000)

    return play


def _disk_full(kind: str) -> Callable[[Lab, random.Random], Played]:
    """A daemon whose disk takes no more ends at once; when it cannot come back, its peers fence the node."""

    def play(lab: Lab, chance: random.Random) -> Played:
        name = victim(lab, kind)
        is_holder = name == lab.holder()
        lab.machines[name].fill_disk()
        deadline = time.monotonic() + 40
        while name not in lab.fenced(lab.began) and time.monotonic() < deadline:
            # The last block of a file may have room for a while.
            lab.write()
            time.sleep(0.5)
        lab.until(f"{name} to be fenced", lambda: name in lab.fenced(lab.began), 1)
        lab.until("the service to answer", lab.client.is_served, 30)
        return shot(name, is_holder=is_holder)

    return play


def power_lost(lab: Lab, chance: random.Random) -> Played:
    """All at once, and all come back."""
    for machine in lab.machines.values():
        machine.switch_off()
    time.sleep(1)
    for machine in lab.machines.values():
        machine.switch_on()
    lab.until("the service to answer", lab.client.is_served, 60)
    return Played(bound_ms=COLD_START_MS)


def power_lost_for_good(lab: Lab, chance: random.Random) -> Played:
    """All at once, and one does not come back: it is fenced before anything starts that may run there."""
    for machine in lab.machines.values():
        machine.switch_off()
    missing = chance.choice(sorted(lab.machines))
    for machine in lab.machines.values():
        if machine.name != missing:
            machine.switch_on()
    lab.until(f"{missing} to be fenced", lambda: missing in lab.fenced(lab.began), 60)
    lab.until("the service to answer", lab.client.is_served, 60)
    return Played(fenced=(missing,), bound_ms=COLD_START_MS)


def majority_lost(lab: Lab, chance: random.Random) -> Played:
    """The holder and enough others at once: whoever is left can start nothing."""
    holder = lab.holder()
    gone = [holder, *lab.others(holder)[: len(lab.machines) // 2]]
    for name in gone:
        lab.machines[name].switch_off()
    left = lab.others(*gone)[0]
    lab.until("the loss of quorum to be told", lambda: not lab.status(left)["quorum"].get("has", True), 10)
    lab.hold("nothing answers", lambda: not lab.client.is_served(), 5)
    return Played(may_be_fenced=tuple(gone), bound_ms=COLD_START_MS)


def crash_and_brain_killed(lab: Lab, chance: random.Random) -> Played:
    """The holder's machine, and the DC's brain."""
    holder, dc = lab.holder(), lab.dc()
    other = dc if dc != holder else lab.others(holder)[0]
    lab.machines[holder].switch_off()
    lab.machines[other].signal("entry_points.haclusterd", 9)
    await_recovery(lab, holder)
    return Played(fenced=(holder,), bound_ms=RECOVERY_MS + 4_000)


def crash_and_pause(lab: Lab, chance: random.Random) -> Played:
    """The holder's machine, and another one pauses meanwhile, for less than node-timeout."""
    holder = lab.holder()
    other = lab.machines[chance.choice(lab.others(holder))]
    lab.machines[holder].switch_off()
    time.sleep(chance.uniform(0, 2.0))
    other.stop_all()
    time.sleep(0.75 * NODE_TIMEOUT_S)
    other.continue_all()
    await_recovery(lab, holder)
    return Played(fenced=(holder,), bound_ms=RECOVERY_MS + 4_000)


def crash_during_failover(lab: Lab, chance: random.Random) -> Played:
    """As soon as the service is back, the machine that got it is lost too; by then the first may be back or not."""
    first = lab.holder()
    lab.machines[first].switch_off()
    await_recovery(lab, first)
    second = lab.holder()
    lab.until(f"{first} to be back", lambda: first in lab.online(), 40)
    lab.machines[second].switch_off()
    await_recovery(lab, second)
    return Played(fenced=(first, second), bound_ms=RECOVERY_MS + 4_000)


def crash_of_the_dc_during_failover(lab: Lab, chance: random.Random) -> Played:
    """The holder is lost; the DC's brain dies while the fence agent is at work."""
    holder = lab.holder()
    lab.power.delay_s = 1.0
    lab.machines[holder].switch_off()
    lab.until("the shot", lambda: holder in lab.fenced(lab.began, "fence-asked"), 20)
    lab.machines[lab.dc()].signal("entry_points.haclusterd", 9)
    await_recovery(lab, holder)
    return Played(fenced=(holder,), bound_ms=RECOVERY_MS + 6_000)


FAULTS = (
    Fault("crash-holder", Verdict.RECOVERS, _crash("holder")),
    Fault("crash-dc", Verdict.RECOVERS, _crash("dc")),
    Fault("crash-other", Verdict.RECOVERS, _crash("other")),
    Fault("hang-holder", Verdict.RECOVERS, _hang("holder")),
    Fault("hang-dc", Verdict.RECOVERS, _hang("dc")),
    Fault("pause-holder", Verdict.RECOVERS, _pause("holder")),
    Fault("pause-dc", Verdict.RECOVERS, _pause("dc")),
    Fault("disk-full-holder", Verdict.RECOVERS, _disk_full("holder")),
    Fault("disk-full-dc", Verdict.RECOVERS, _disk_full("dc")),
    Fault("disk-full-other", Verdict.RECOVERS, _disk_full("other")),
    Fault("power-loss", Verdict.RECOVERS, power_lost),
    Fault("power-loss-one-missing", Verdict.RECOVERS, power_lost_for_good),
    Fault("majority-lost", Verdict.HOLDS, majority_lost),
    Fault("crash+brain-kill", Verdict.RECOVERS, crash_and_brain_killed),
    Fault("crash+pause", Verdict.RECOVERS, crash_and_pause),
    Fault("crash-twice", Verdict.RECOVERS, crash_during_failover),
    Fault("crash+dc-brain-in-fence", Verdict.RECOVERS, crash_of_the_dc_during_failover),
)
