"""Faults of whole machines: crash, hang, pause, a full disk, and all of them without power."""

import random
import signal
import time
from collections.abc import Callable

from tests.lab.faults import NODE_TIMEOUT_S, RECOVERY_MS, Fault, Played, Verdict, await_recovery, shot, victim
from tests.lab.faults_processes import kill_service
from tests.lab.lab import Lab
from tests.lab.machine import Machine

SLOW_WRITES_PER_S = 4
PAUSES = 50
COLD_START_MS = 40_000
"""What an unseen member may cost: max(10 s, 5 node-timeouts) before it is fenced, and the rest."""


def _lose(kind: str, how: Callable[[Machine], None]) -> Callable[[Lab, random.Random], Played]:
    def play(lab: Lab, chance: random.Random) -> Played:
        name = victim(lab, kind)
        is_holder = name == lab.holder()
        how(lab.machines[name])
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


def _disk_slow(kind: str) -> Callable[[Lab, random.Random], Played]:
    """Every fsync takes a quarter of a second; what must be committed is, and nobody is taken for dead."""

    def play(lab: Lab, chance: random.Random) -> Played:
        lab.machines[victim(lab, kind)].slow_disk(SLOW_WRITES_PER_S)
        for _ in range(3):
            lab.write()
        lab.hold("nobody is fenced", lambda: not lab.fenced(lab.began, "fence-asked"), 2 * NODE_TIMEOUT_S)
        kill_service(lab)
        return Played(bound_ms=6_000)

    return play


def crash_with_slow_disk(lab: Lab, chance: random.Random) -> Played:
    """The holder is lost while the disk of another is slow."""
    holder = lab.holder()
    lab.machines[chance.choice(lab.others(holder))].slow_disk(SLOW_WRITES_PER_S)
    lab.machines[holder].switch_off()
    await_recovery(lab, holder)
    return Played(fenced=(holder,), bound_ms=RECOVERY_MS + 4_000)


def pauses(lab: Lab, chance: random.Random) -> Played:
    """Three quarters of node-timeout, over and over, no matter whom it hits: nobody is fenced."""
    for _ in range(PAUSES):
        machine = lab.machines[chance.choice(sorted(lab.machines))]
        machine.stop_all()
        time.sleep(0.75 * NODE_TIMEOUT_S)
        machine.continue_all()
        lab.hold("nobody is fenced", lambda: not lab.fenced(lab.began, "fence-asked"), chance.uniform(0.5, 2.0))
        lab.until("all to be well between two pauses", lab.is_whole, 30)
    return Played(bound_ms=4_000)


def two_lost(lab: Lab, chance: random.Random) -> Played:
    """The holder and another one of five, at once: three are a majority."""
    holder = lab.holder()
    other = chance.choice(lab.others(holder))
    for name in (holder, other):
        lab.machines[name].switch_off()
    await_recovery(lab, holder)
    await_recovery(lab, other)
    return Played(fenced=(holder, other), bound_ms=RECOVERY_MS + 4_000, explains=("node-lost", "node-fenced"))


def crash_while_fence_device_is_dead(lab: Lab, chance: random.Random) -> Played:
    """The DC is lost too while the fencing of the holder waits for a dead device: its successor goes on."""
    holder = lab.holder()
    lab.power.is_dead = True
    lab.machines[holder].switch_off()
    lab.until("the client to notice", lambda: not lab.client.is_served(), 5)
    lab.until(f"{holder} to be lost", lambda: holder not in lab.online(), 15)
    dc = lab.dc()
    lab.machines[dc].signal("entry_points.haclusterd", signal.SIGKILL)
    lab.hold("nothing is recovered", lambda: not lab.client.is_served(), 2 * NODE_TIMEOUT_S)
    lab.power.restore()
    await_recovery(lab, holder, 60)
    return Played(fenced=(holder,), bound_ms=60_000, explains=("node-lost", "node-fenced"))


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
    """The holder and enough others at once: those that are left can start nothing."""
    holder = lab.holder()
    gone = [holder, *lab.others(holder)[: len(lab.machines) // 2]]
    for name in gone:
        lab.machines[name].switch_off()
    left = lab.others(*gone)[0]
    lab.until("the loss of quorum to be shown", lambda: not lab.status(left)["quorum"].get("has", True), 10)
    lab.hold("nothing answers", lambda: not lab.client.is_served(), 5)
    return Played(may_be_fenced=tuple(gone), bound_ms=COLD_START_MS)


def crash_and_brain_killed(lab: Lab, chance: random.Random) -> Played:
    """The holder's machine, and the DC's daemon."""
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
    """The holder is lost; the DC's daemon dies while the fence agent is at work."""
    holder = lab.holder()
    lab.power.delay_s = 1.0
    lab.machines[holder].switch_off()
    lab.until("the shot", lambda: holder in lab.fenced(lab.began, "fence-asked"), 20)
    lab.machines[lab.dc()].signal("entry_points.haclusterd", 9)
    await_recovery(lab, holder)
    return Played(fenced=(holder,), bound_ms=RECOVERY_MS + 6_000)


FAULTS = (
    Fault("crash-holder", Verdict.RECOVERS, _lose("holder", Machine.switch_off), sizes=(3, 5)),
    Fault("crash-dc", Verdict.RECOVERS, _lose("dc", Machine.switch_off), sizes=(3, 5)),
    Fault("crash-other", Verdict.RECOVERS, _lose("other", Machine.switch_off)),
    Fault("hang-holder", Verdict.RECOVERS, _lose("holder", Machine.stop_all), sizes=(3, 5)),
    Fault("hang-dc", Verdict.RECOVERS, _lose("dc", Machine.stop_all)),
    Fault("pause-holder", Verdict.RECOVERS, _pause("holder")),
    Fault("pause-dc", Verdict.RECOVERS, _pause("dc")),
    Fault("disk-full-holder", Verdict.RECOVERS, _disk_full("holder")),
    Fault("disk-full-dc", Verdict.RECOVERS, _disk_full("dc")),
    Fault("disk-full-other", Verdict.RECOVERS, _disk_full("other")),
    Fault("disk-slow-holder", Verdict.RECOVERS, _disk_slow("holder")),
    Fault("disk-slow-dc", Verdict.RECOVERS, _disk_slow("dc")),
    Fault("disk-slow-other", Verdict.RECOVERS, _disk_slow("other")),
    Fault("crash+disk-slow", Verdict.RECOVERS, crash_with_slow_disk),
    Fault("pause-50", Verdict.RECOVERS, pauses, is_long=True),
    Fault("power-loss", Verdict.RECOVERS, power_lost, sizes=(3, 5)),
    Fault("power-loss-one-missing", Verdict.RECOVERS, power_lost_for_good, sizes=(3, 5)),
    Fault("majority-lost", Verdict.HOLDS, majority_lost, sizes=(3, 5)),
    Fault("crash-two", Verdict.RECOVERS, two_lost, sizes=(5,)),
    Fault("fence-dead+dc-brain-kill", Verdict.HOLDS, crash_while_fence_device_is_dead, sizes=(3, 5)),
    Fault("crash+brain-kill", Verdict.RECOVERS, crash_and_brain_killed),
    Fault("crash+pause", Verdict.RECOVERS, crash_and_pause),
    Fault("crash-twice", Verdict.RECOVERS, crash_during_failover),
    Fault("crash+dc-brain-in-fence", Verdict.RECOVERS, crash_of_the_dc_during_failover),
)
