"""Filters that let one protocol pass and not the other, floods, and outages that people have announced."""

import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.faults import NODE_TIMEOUT_S, RECOVERY_MS, Fault, Played, Verdict, await_recovery, shot, victim
from tests.lab.faults_processes import BRAIN, PACER, kill_service
from tests.lab.lab import RAFT_PORT, Lab
from tests.lab.switch import address

FLOODER = Path(__file__).parents[1] / "flooder.py"
BRAIN_TIMEOUT_S = 10.0
NO_PART_MS = int(BRAIN_TIMEOUT_S * 1000) + RECOVERY_MS
"""A node that is heard and takes no part is lost after brain-timeout (safety.md §4)."""
HAND_OVER_MS = int(2 * NODE_TIMEOUT_S * 1000)
"""A DC without a lease waits for node-timeout before it hands over, and the next one before it judges."""
FLOOD_S = 5 * NODE_TIMEOUT_S
FLOOD_A_SECOND = 100_000
OUTAGE_S = 4 * NODE_TIMEOUT_S
DEVICE_AWAY_S = 600.0


def _tcp_cut(kind: str) -> Callable[[Lab, random.Random], Played]:
    """Raft's sessions end, heartbeats pass: the node is lost when brain-timeout is over, and what it ran recovered."""

    def play(lab: Lab, chance: random.Random) -> Played:
        name = victim(lab, kind)
        is_holder = name == lab.holder()
        lab.switch.filter(lab.machines[name].index, "tcp")
        await_recovery(lab, name, BRAIN_TIMEOUT_S + 30)
        return shot(name, is_holder=is_holder)

    return play


def _tcp_cut_and_restart(kind: str) -> Callable[[Lab, random.Random], Played]:
    """The same, and its daemon is started again: a service that dies on another node meanwhile is started again."""

    def play(lab: Lab, chance: random.Random) -> Played:
        name = victim(lab, kind)
        is_holder = name == lab.holder()
        machine = lab.machines[name]
        lab.switch.filter(machine.index, "tcp")
        machine.signal(BRAIN, 9)
        if not is_holder:
            kill_service(lab, NO_PART_MS / 1000)
        await_recovery(lab, name, BRAIN_TIMEOUT_S + 30)
        return Played(fenced=(name,), bound_ms=NO_PART_MS, explains=("node-lost", "node-fenced"))

    return play


def _udp_cut(kind: str) -> Callable[[Lab, random.Random], Played]:
    """No heartbeat passes, Raft's sessions do: silence decides. A DC first gives the leadership away."""

    def play(lab: Lab, chance: random.Random) -> Played:
        name = victim(lab, kind)
        is_holder, is_dc = name == lab.holder(), name == lab.dc()
        lab.switch.filter(lab.machines[name].index, "udp")
        await_recovery(lab, name)
        played = shot(name, is_holder=is_holder)
        if is_holder and is_dc:
            played.bound_ms += HAND_OVER_MS
        return played

    return play


def maintenance_and_outage(lab: Lab, chance: random.Random) -> Played:
    """The switch between all machines is exchanged in maintenance mode: everything runs on, where it was."""
    holder = lab.holder()
    lab.script("property maintenance-mode=true")
    try:
        for one in lab.machines.values():
            for other in lab.others(one.name):
                lab.switch.drop(one.index, lab.machines[other].index)
        lab.hold("the service runs on", lambda: lab.client.is_served() and lab.holder() == holder, OUTAGE_S)
        lab.switch.heal([each.index for each in lab.machines.values()])
        lab.until("all to be back", lambda: lab.online() == set(lab.machines), 60)
        lab.hold("the service runs on", lambda: lab.client.is_served() and lab.holder() == holder, NODE_TIMEOUT_S)
    finally:
        lab.heal()
        lab.until("the end of the maintenance", lambda: lab.takes("property maintenance-mode=false"), 60)
    return Played()


def maintenance_and_restart(lab: Lab, chance: random.Random) -> Played:
    """The holder's daemon is stopped and started in maintenance mode: the service does not notice."""
    holder = lab.holder()
    machine = lab.machines[holder]
    lab.script("property maintenance-mode=true")
    try:
        before = machine.find(BRAIN)
        machine.signal(BRAIN, 15)
        lab.until("another daemon", lambda: bool(machine.find(BRAIN)) and machine.find(BRAIN) != before, 60)
        lab.until("it to be back", lambda: lab.online() == set(lab.machines), 60)
    finally:
        lab.until("the end of the maintenance", lambda: lab.takes("property maintenance-mode=false"), 60)
    lab.hold("the service runs on", lambda: lab.client.is_served() and lab.holder() == holder, NODE_TIMEOUT_S)
    return Played()


@contextmanager
def _flood(lab: Lab, index: int, *source: str) -> Iterator[None]:
    """Flood a machine on the first network, from outside of all machines; say how many datagrams there were."""
    target = f"{address(index, 0)}:{RAFT_PORT}"
    words = ("--to", target, "--rate", str(FLOOD_A_SECOND), *source)
    flooding = lab.switch.popen(sys.executable, "-I", str(FLOODER), *words, stdout=-1)
    try:
        yield
    finally:
        flooding.terminate()
        printed = flooding.communicate()[0].decode().strip()
        print(f"       flood: {printed.removeprefix('RESULT ')}", flush=True)


def _udp_flood(is_forged: bool) -> Callable[[Lab, random.Random], Played]:
    """Datagrams at 100,000 a second, as far as this machine makes them: nobody is lost, a dead service is restarted."""

    def play(lab: Lab, chance: random.Random) -> Played:
        machine = lab.machines[lab.dc()]
        other = lab.machines[lab.others(machine.name)[0]].index
        forged = ("--forge", f"{address(other, 0)}:{RAFT_PORT}")
        (pacer,) = machine.find(PACER)
        began, spent = time.monotonic(), _processor_s(pacer)
        with _flood(lab, machine.index, *(forged if is_forged else ())):
            lab.hold("nobody is fenced", lambda: not lab.fenced(lab.began, "fence-asked"), FLOOD_S)
            share = (_processor_s(pacer) - spent) / (time.monotonic() - began)
            print(f"       pacer of {machine.name}: {100 * share:.0f} % of a processor", flush=True)
            kill_service(lab)
        return Played(bound_ms=4_000)

    return play


def _processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def device_away(lab: Lab, chance: random.Random) -> Played:
    """The holder crashes while the power switch is away for ten minutes: then it is fenced, and recovered."""
    holder = lab.holder()
    lab.power.is_dead = True
    lab.machines[holder].switch_off()
    lab.until("the client to notice", lambda: not lab.client.is_served(), 5)
    lab.hold("nothing is recovered", lambda: not lab.client.is_served(), DEVICE_AWAY_S)
    lab.power.restore()
    await_recovery(lab, holder, 90)
    return Played(fenced=(holder,), bound_ms=int((DEVICE_AWAY_S + 90) * 1000), explains=("node-lost", "node-fenced"))


FAULTS = (
    *(Fault(f"tcp-{kind}", Verdict.RECOVERS, _tcp_cut(kind), sizes=(3, 5)) for kind in ("holder", "dc", "other")),
    *(Fault(f"tcp-restart-{kind}", Verdict.RECOVERS, _tcp_cut_and_restart(kind), sizes=(3, 5))
      for kind in ("holder", "dc", "other")),
    *(Fault(f"udp-{kind}", Verdict.RECOVERS, _udp_cut(kind), sizes=(3, 5)) for kind in ("holder", "dc", "other")),
    Fault("maintenance-outage", Verdict.RECOVERS, maintenance_and_outage, sizes=(3, 5)),
    Fault("maintenance-restart", Verdict.RECOVERS, maintenance_and_restart, sizes=(3, 5)),
    Fault("udp-flood", Verdict.RECOVERS, _udp_flood(is_forged=False), sizes=(3, 5)),
    Fault("udp-flood-member", Verdict.RECOVERS, _udp_flood(is_forged=True), sizes=(3, 5)),
    Fault("fence-away", Verdict.HOLDS, device_away, sizes=(3, 5), is_by_name=True),
)  # fmt: skip
