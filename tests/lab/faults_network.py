"""Faults of the network: cables, directions, rings, loss and delay."""

import random
import time
from collections.abc import Callable

from tests.lab.faults import NODE_TIMEOUT_S, RECOVERY_MS, Fault, Played, Verdict, await_recovery, shot, victim
from tests.lab.faults_processes import kill_service
from tests.lab.lab import Lab

WATCH_S = 4 * NODE_TIMEOUT_S
"""How long a fault lasts that must harm nobody: longer than any timer of loss detection."""


def _cut(kind: str) -> Callable[[Lab, random.Random], Played]:
    """Both cables are pulled."""

    def play(lab: Lab, chance: random.Random) -> Played:
        name = victim(lab, kind)
        is_holder = name == lab.holder()
        lab.switch.unplug(lab.machines[name].index)
        await_recovery(lab, name)
        return shot(name, is_holder=is_holder)

    return play


def _cut_from_peers(kind: str) -> Callable[[Lab, random.Random], Played]:
    """No frame passes between a machine and the others; the client sees them all."""

    def play(lab: Lab, chance: random.Random) -> Played:
        name = victim(lab, kind)
        is_holder = name == lab.holder()
        _part(lab, name, lab.others(name))
        await_recovery(lab, name)
        return shot(name, is_holder=is_holder)

    return play


def _part(lab: Lab, name: str, others: list[str]) -> None:
    for other in others:
        lab.switch.drop(lab.machines[name].index, lab.machines[other].index)
        lab.switch.drop(lab.machines[other].index, lab.machines[name].index)


def one_pair_cut(lab: Lab, chance: random.Random) -> Played:
    """Only between the DC and one other: somebody hears both, so nobody is lost."""
    dc = lab.dc()
    other = chance.choice(lab.others(dc))
    _part(lab, dc, [other])
    lab.hold("nobody is fenced", lambda: not lab.fenced(lab.began, "fence-asked"), WATCH_S)
    kill_service(lab)
    return Played(bound_ms=4_000)


def one_pair_cut_one_way(lab: Lab, chance: random.Random) -> Played:
    """One machine does not hear the DC, which hears it; a service that dies there is started again."""
    dc = lab.dc()
    holder = lab.holder()
    other = holder if holder != dc else lab.others(dc)[0]
    lab.switch.drop(lab.machines[dc].index, lab.machines[other].index)
    lab.hold("nobody is fenced", lambda: not lab.fenced(lab.began, "fence-asked"), WATCH_S)
    kill_service(lab)
    return Played(bound_ms=4_000)


def one_pair_cut_beside_the_dc(lab: Lab, chance: random.Random) -> Played:
    """Between two that are not the DC."""
    one, two = lab.others(lab.dc())[:2]
    _part(lab, one, [two])
    lab.hold("nobody is fenced", lambda: not lab.fenced(lab.began, "fence-asked"), WATCH_S)
    return Played()


def deaf(lab: Lab, chance: random.Random) -> Played:
    """The holder hears nobody, but is heard: its lease ends, and the others take the service over."""
    holder = lab.holder()
    for other in lab.others(holder):
        lab.switch.drop(lab.machines[other].index, lab.machines[holder].index)
    lab.until("the client to notice", lambda: not lab.client.is_served(), 20)
    lab.until("the service to answer", lab.client.is_served, 40)
    return Played(fenced=(holder,), bound_ms=RECOVERY_MS)


def mute(lab: Lab, chance: random.Random) -> Played:
    """Nobody hears the holder, which hears all."""
    holder = lab.holder()
    for other in lab.others(holder):
        lab.switch.drop(lab.machines[holder].index, lab.machines[other].index)
    await_recovery(lab, holder)
    return shot(holder, is_holder=True)


def mute_dc(lab: Lab, chance: random.Random) -> Played:
    dc = lab.dc()
    is_holder = dc == lab.holder()
    for other in lab.others(dc):
        lab.switch.drop(lab.machines[dc].index, lab.machines[other].index)
    await_recovery(lab, dc)
    return shot(dc, is_holder=is_holder)


def deaf_dc(lab: Lab, chance: random.Random) -> Played:
    dc = lab.dc()
    is_holder = dc == lab.holder()
    for other in lab.others(dc):
        lab.switch.drop(lab.machines[other].index, lab.machines[dc].index)
    await_recovery(lab, dc, 40)
    return shot(dc, is_holder=is_holder)


def _ring_cut(ring: int) -> Callable[[Lab, random.Random], Played]:
    """One of two networks between the machines is gone, for all; a service that dies meanwhile is started again."""

    def play(lab: Lab, chance: random.Random) -> Played:
        for one in lab.machines.values():
            for two in lab.machines.values():
                if one is not two:
                    lab.switch.drop(one.index, two.index, [ring])
        lab.hold("nobody is fenced", lambda: not lab.fenced(lab.began, "fence-asked"), WATCH_S)
        kill_service(lab)
        return Played(bound_ms=4_000)

    return play


def _ring_one_way(ring: int, kind: str) -> Callable[[Lab, random.Random], Played]:
    """One machine hears nobody on one of two networks, where all hear it."""

    def play(lab: Lab, chance: random.Random) -> Played:
        name = victim(lab, kind)
        for other in lab.others(name):
            lab.switch.drop(lab.machines[other].index, lab.machines[name].index, [ring])
        lab.hold("nobody is fenced", lambda: not lab.fenced(lab.began, "fence-asked"), WATCH_S)
        kill_service(lab)
        return Played(bound_ms=4_000)

    return play


def crossed_rings(lab: Lab, chance: random.Random) -> Played:
    """One network is lost from the DC to the others, the other one from the others to the DC: both ways are left."""
    dc = lab.dc()
    for other in lab.others(dc):
        lab.switch.drop(lab.machines[dc].index, lab.machines[other].index, [0], only_ip=True)
        lab.switch.drop(lab.machines[other].index, lab.machines[dc].index, [1], only_ip=True)
    lab.hold("nobody is fenced", lambda: not lab.fenced(lab.began, "fence-asked"), WATCH_S)
    return Played(bound_ms=500)


def parted_in_two(lab: Lab, chance: random.Random) -> Played:
    """Five fall into three and two, the holder among the two: these stop, the three fence them and go on."""
    holder = lab.holder()
    few = (holder, chance.choice(lab.others(holder)))
    for one in few:
        _part(lab, one, lab.others(*few))
    for name in few:
        await_recovery(lab, name)
    return Played(fenced=few, bound_ms=RECOVERY_MS + 4_000, explains=("node-lost", "node-fenced"))


def _ring_of_one_cut(ring: int, kind: str) -> Callable[[Lab, random.Random], Played]:
    def play(lab: Lab, chance: random.Random) -> Played:
        index = lab.machines[victim(lab, kind)].index
        for other in lab.machines.values():
            if other.index != index:
                lab.switch.drop(index, other.index, [ring])
                lab.switch.drop(other.index, index, [ring])
        lab.hold("nobody is fenced", lambda: not lab.fenced(lab.began, "fence-asked"), WATCH_S)
        kill_service(lab)
        return Played(bound_ms=4_000)

    return play


def _loss(percent: int) -> Callable[[Lab, random.Random], Played]:
    """Of all frames between machines; a service that dies meanwhile is started again."""

    def play(lab: Lab, chance: random.Random) -> Played:
        lab.switch.lose(percent)
        lab.hold("nobody is fenced", lambda: not lab.fenced(lab.began, "fence-asked"), WATCH_S)
        kill_service(lab)
        lab.hold("nobody is fenced", lambda: not lab.fenced(lab.began, "fence-asked"), NODE_TIMEOUT_S)
        return Played(bound_ms=4_000 if percent < 20 else 15_000)

    return play


def _delay(delay_ms: int, jitter_ms: int) -> Callable[[Lab, random.Random], Played]:
    """On the cables of one machine, each way; not the holder's, whose client waits less long."""

    def play(lab: Lab, chance: random.Random) -> Played:
        machine = lab.machines[chance.choice(lab.others(lab.holder()))]
        inits = [each.init for each in lab.machines.values()]
        lab.switch.delay(machine.index, inits, delay_ms, jitter_ms)
        lab.hold("nobody is fenced", lambda: not lab.fenced(lab.began, "fence-asked"), WATCH_S)
        kill_service(lab)
        return Played(bound_ms=6_000)

    return play


def cut_and_back(lab: Lab, chance: random.Random) -> Played:
    """The holder from all others, for half of node-timeout; its carrier stays, the client sees it, and nothing ends."""
    holder = lab.holder()
    _part(lab, holder, lab.others(holder))
    time.sleep(0.5 * NODE_TIMEOUT_S)
    lab.switch.heal([each.index for each in lab.machines.values()])
    time.sleep(2 * NODE_TIMEOUT_S)
    return Played(bound_ms=500)


def flap(lab: Lab, chance: random.Random) -> Played:
    """All cables of the holder are out and in again: afterwards its kernel asks for addresses only once a second."""
    index = lab.machines[lab.holder()].index
    lab.switch.unplug(index)
    time.sleep(0.25 * NODE_TIMEOUT_S)
    lab.switch.heal([each.index for each in lab.machines.values()])
    time.sleep(2 * NODE_TIMEOUT_S)
    return Played(bound_ms=3_000)


def all_cut(lab: Lab, chance: random.Random) -> Played:
    """Everybody from everybody: nobody may go on, nobody is shot; then all is well again."""
    for machine in lab.machines.values():
        _part(lab, machine.name, lab.others(machine.name))
    lab.until("the service to end", lambda: not lab.client.is_served(), 15)
    lab.hold("nothing answers", lambda: not lab.client.is_served(), 5)
    for name in lab.machines:
        if lab.status(name)["quorum"].get("has", True):
            raise AssertionError(f"{name} says that it has quorum, alone")
    assert not lab.fenced(lab.began, "fence-asked"), "somebody was shot without quorum"
    return Played(bound_ms=40_000)


def crash_under_loss(lab: Lab, chance: random.Random) -> Played:
    lab.switch.lose(10)
    holder = lab.holder()
    lab.machines[holder].switch_off()
    await_recovery(lab, holder)
    return Played(fenced=(holder,), bound_ms=RECOVERY_MS + 4_000)


FAULTS = (
    Fault("cut-holder", Verdict.RECOVERS, _cut("holder"), sizes=(3, 5)),
    Fault("cut-dc", Verdict.RECOVERS, _cut("dc")),
    Fault("cut-other", Verdict.RECOVERS, _cut("other")),
    Fault("cut-and-back", Verdict.RECOVERS, cut_and_back),
    Fault("cable-flap", Verdict.RECOVERS, flap),
    Fault("cut-peers-holder", Verdict.RECOVERS, _cut_from_peers("holder"), sizes=(3, 5)),
    Fault("cut-peers-dc", Verdict.RECOVERS, _cut_from_peers("dc")),
    Fault("cut-pair-dc", Verdict.RECOVERS, one_pair_cut),
    Fault("cut-pair-one-way", Verdict.RECOVERS, one_pair_cut_one_way),
    Fault("cut-pair-other", Verdict.RECOVERS, one_pair_cut_beside_the_dc),
    Fault("cut-all", Verdict.HOLDS, all_cut, sizes=(3, 5)),
    Fault("deaf-holder", Verdict.RECOVERS, deaf, sizes=(3, 5)),
    Fault("deaf-dc", Verdict.RECOVERS, deaf_dc),
    Fault("mute-holder", Verdict.RECOVERS, mute),
    Fault("mute-dc", Verdict.RECOVERS, mute_dc),
    Fault("ring0-cut", Verdict.RECOVERS, _ring_cut(0)),
    Fault("ring1-cut", Verdict.RECOVERS, _ring_cut(1)),
    Fault("ring0-cut-dc", Verdict.RECOVERS, _ring_of_one_cut(0, "dc")),
    Fault("ring0-cut-holder", Verdict.RECOVERS, _ring_of_one_cut(0, "holder")),
    Fault("ring0-deaf-dc", Verdict.RECOVERS, _ring_one_way(0, "dc")),
    Fault("ring1-deaf-holder", Verdict.RECOVERS, _ring_one_way(1, "holder")),
    Fault("rings-crossed", Verdict.RECOVERS, crossed_rings),
    Fault("part-3-2", Verdict.RECOVERS, parted_in_two, sizes=(5,)),
    Fault("loss-5", Verdict.RECOVERS, _loss(5)),
    Fault("loss-15", Verdict.RECOVERS, _loss(15)),
    Fault("loss-30", Verdict.RECOVERS, _loss(30)),
    Fault("delay-50", Verdict.RECOVERS, _delay(50, 20)),
    Fault("delay-150", Verdict.RECOVERS, _delay(150, 50)),
    Fault("crash+loss-10", Verdict.RECOVERS, crash_under_loss),
)
