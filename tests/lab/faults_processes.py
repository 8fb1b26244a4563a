"""Faults of single processes: the service, the daemon, the pacer; and what an administrator does to them on purpose."""

import random
import signal
import time
from collections.abc import Callable

from tests.lab.faults import NODE_TIMEOUT_S, Fault, Played, Verdict, shot, victim
from tests.lab.lab import Lab
from tests.lab.machine import Machine

BRAIN = "entry_points.haclusterd"
PACER = "entry_points.pacer"
SERVICE = "lab-service"


def kill_service(lab: Lab, wait_s_max: float = 30.0) -> None:
    """Kill it where it runs, and wait until it answers again."""
    holder = lab.holder()
    since = time.monotonic_ns()
    lab.machines[holder].signal(SERVICE, signal.SIGKILL)
    lab.until("the service to answer again", lambda: lab.client.served_since(since + 500_000_000), wait_s_max)


def service_killed(lab: Lab, chance: random.Random) -> Played:
    lab.machines[lab.holder()].signal(SERVICE, signal.SIGKILL)
    lab.until("the client to notice", lambda: not lab.client.is_served(), 5)
    lab.until("the service to answer", lab.client.is_served, 20)
    return Played(bound_ms=4_000, explains=("operation-failed",))


def _brain(kind: str, number: int) -> Callable[[Lab, random.Random], Played]:
    def play(lab: Lab, chance: random.Random) -> Played:
        name = victim(lab, kind)
        machine = lab.machines[name]
        before = machine.find(SERVICE)
        machine.signal(BRAIN, number)
        lab.hold("the service runs on", lambda: machine.find(SERVICE) == before, 3)
        return Played()

    return play


def _brain_hung(kind: str) -> Callable[[Lab, random.Random], Played]:
    def play(lab: Lab, chance: random.Random) -> Played:
        name = victim(lab, kind)
        is_holder = name == lab.holder()
        machine = lab.machines[name]
        machine.signal(BRAIN, signal.SIGSTOP)
        machine.is_stopped = True
        lab.until(f"{name} to be fenced", lambda: name in lab.fenced(lab.began), 40)
        lab.until("the service to answer", lab.client.is_served, 30)
        return shot(name, is_holder=is_holder)

    return play


def _brain_stopped(kind: str) -> Callable[[Lab, random.Random], Played]:
    """For half of brain-timeout."""

    def play(lab: Lab, chance: random.Random) -> Played:
        machine = lab.machines[victim(lab, kind)]
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


def rolling_pacers(lab: Lab, chance: random.Random) -> Played:
    """One pacer after the other is killed, each as soon as the last one's node is well."""
    for machine in lab.machines.values():
        machine.signal(PACER, signal.SIGKILL)
        lab.hold("the client is served", lab.client.is_served, NODE_TIMEOUT_S)
        lab.until(f"{machine.name} to be back", lab.is_whole, 60)
    return Played()


def rolling_power(lab: Lab, chance: random.Random) -> Played:
    """One machine after the other is emptied, switched off with its daemon gone in peace, and switched on again."""
    for machine in lab.machines.values():
        lab.answer("node.standby", node=machine.name)
        lab.until(f"{machine.name} to be empty", lambda m=machine: not m.find(SERVICE) and lab.is_whole(), 30)
        assert machine.namespaces is not None
        machine.namespaces.keep_ended()
        machine.signal(BRAIN, signal.SIGTERM)
        lab.until(f"{machine.name}'s daemon to end", lambda m=machine: not m.find(BRAIN), 60)
        machine.switch_off()
        machine.switch_on()
        lab.until(f"{machine.name} to be back", lab.has_formed, 60)
        lab.answer("node.online", node=machine.name)
        lab.until(f"{machine.name} to be back", lab.is_whole, 60)
    return Played(bound_ms=4_000)


def _images(machine: Machine) -> int:
    """Return how many images of the daemon have begun on a machine: one that is renewed keeps its process."""
    return (machine.logs / "brain.log").read_text(errors="replace").count(" daemon.start ")


def _rolling(number: int) -> Callable[[Lab, random.Random], Played]:
    def play(lab: Lab, chance: random.Random) -> Played:
        for machine in lab.machines.values():
            before = _images(machine)
            machine.signal(BRAIN, number)
            lab.until(f"another daemon on {machine.name}", lambda m=machine, b=before: _images(m) > b, 60)
            lab.until(f"{machine.name} to be back", lab.is_whole, 60)
        return Played(bound_ms=4_000)

    return play


FAULTS = (
    Fault("service-kill", Verdict.RECOVERS, service_killed, sizes=(3, 5)),
    Fault("brain-kill-holder", Verdict.RECOVERS, _brain("holder", signal.SIGKILL)),
    Fault("brain-kill-dc", Verdict.RECOVERS, _brain("dc", signal.SIGKILL)),
    Fault("brain-renew-holder", Verdict.RECOVERS, _brain("holder", signal.SIGHUP)),
    Fault("brain-renew-dc", Verdict.RECOVERS, _brain("dc", signal.SIGHUP)),
    Fault("brain-hang-holder", Verdict.RECOVERS, _brain_hung("holder")),
    Fault("brain-hang-dc", Verdict.RECOVERS, _brain_hung("dc")),
    Fault("brain-pause-dc", Verdict.RECOVERS, _brain_stopped("dc")),
    Fault("pacer-kill", Verdict.RECOVERS, pacer_killed),
    Fault("both-kill", Verdict.RECOVERS, both_killed),
    Fault("rolling-renew", Verdict.RECOVERS, _rolling(signal.SIGHUP), sizes=(3, 5)),
    Fault("rolling-restart", Verdict.RECOVERS, _rolling(signal.SIGTERM), sizes=(3, 5)),
    Fault("rolling-power", Verdict.RECOVERS, rolling_power),
    Fault("rolling-pacers", Verdict.RECOVERS, rolling_pacers),
)
