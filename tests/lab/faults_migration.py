"""A live migration, and in each of its phases a daemon killed, or a machine lost: source, target, or DC.

Where only a daemon is killed, the virtual machine keeps its memory: its agent comes to its end, and what has moved runs
on (docs/design/safety.md §1).
"""

import random
import signal
import time
from collections.abc import Callable

from tests.lab.faults import RECOVERY_MS, Cluster, Fault, Played, Verdict
from tests.lab.faults_processes import BRAIN
from tests.lab.guests import HYPERVISOR, GuestLab
from tests.lab.lab import Lab
from tests.lab.site import NotAsExpectedError
from tests.lab.witnesses import overlaps

PHASES = {
    "sending": ("migrate_to", "begins", 1.5),
    "sent": ("migrate_to", "ends", 0.06),
    "receiving": ("migrate_from", "begins", 1.0),
    "stopping": ("stop", "begins", 0.5),
}
"""Which note of the agents begins each phase, and how many seconds it lasts."""
SWITCH_OVER_MS = 500
"""For which the machine may pause while it moves: one answer of the other host, on a host that has other work."""
DOUBLE_S = 1.0
RESTART_MS = 3_000
"""What is found on a target whose source was lost is stopped before it is started: half a second each, and orders."""


def _migrate(phase: str, is_power: bool, kind: str) -> Callable[[Lab, random.Random], Played]:
    def play(lab: Lab, chance: random.Random) -> Played:
        assert isinstance(lab, GuestLab)
        source, target = lab.ends(lab.dc(), kind, chance)
        name = {"source": source, "target": target, "dc": lab.dc()}[kind]
        since = time.monotonic_ns()
        lab.send_home(target)
        action, edge, span_s = PHASES[phase]
        lab.storage.await_note(since, action, edge, 30)
        time.sleep(chance.uniform(0, span_s))
        is_holder = name == lab.client.holder()
        if is_power:
            lab.machines[name].switch_off()
            lab.until(f"{name} to be fenced", lambda: name in lab.fenced(lab.began), 30)
        else:
            lab.machines[name].signal(BRAIN, signal.SIGKILL)
        lab.until("all to be well, and the virtual machine at its target", lab.is_whole, 90)
        if not is_power and lab.storage.boots(since) > 1:
            raise NotAsExpectedError("the virtual machine was started again though only a daemon had been killed")
        return Played(
            fenced=(name,) if is_power else (),
            bound_ms=RECOVERY_MS if is_power and is_holder else 500,
            interruption_ms=RECOVERY_MS + RESTART_MS if is_power else SWITCH_OVER_MS,
        )

    return play


def two_machines(lab: Lab, chance: random.Random) -> Played:
    """The positive control: a second copy, started by hand, that both witnesses must see."""
    assert isinstance(lab, GuestLab)
    namespaces = lab.machines[lab.others(lab.home)[0]].namespaces
    assert namespaces is not None
    namespaces.run(HYPERVISOR, "ask", "start")
    time.sleep(DOUBLE_S)
    namespaces.run(HYPERVISOR, "ask", "stop")
    spans = [span for _, _, span in overlaps(lab.guest_beats.held(), lab.began, on_one_node=False)]
    assert max(spans, default=0) >= DOUBLE_S * 500, f"the witness of the beats is blind: {spans}"
    assert lab.lost(lab.began), "the storage is blind"
    return Played()


FAULTS = (
    Fault("migration-control", Verdict.DETECTED, two_machines, cluster=Cluster.GUEST),
    *(
        Fault(f"migration-{phase}-{word}-{kind}", Verdict.RECOVERS, _migrate(phase, word == "power", kind),
              sizes=(3, 5), cluster=Cluster.GUEST)
        for phase in PHASES
        for word in ("kill", "power")
        for kind in ("source", "target", "dc")
    ),
)  # fmt: skip
