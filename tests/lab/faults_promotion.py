"""A promotion that takes its time, and in each of its phases daemons killed: of the new primary, the old one, the DC.

The primary is moved, or lost with its machine. Whatever is killed, the agents come to their end, and what they did is
found by probes (docs/design/safety.md §1): nobody is fenced for it.
"""

import random
import signal
import time
from collections.abc import Callable

from tests.lab.databases import DatabaseLab
from tests.lab.faults import RECOVERY_MS, Cluster, Fault, Played, Verdict
from tests.lab.faults_processes import BRAIN, PACER
from tests.lab.lab import Lab
from tests.lab.witnesses import overlaps

PHASES = {
    "demoting": ("demote", "begins", 0.5),
    "promoting": ("promote", "begins", 2.5),
    "promoted": ("promote", "ends", 0.06),
}
"""Which note of the agents begins each phase, and how many seconds it lasts."""
PROGRAMS = {"brain": BRAIN, "pacer": PACER, "both": "haclusterd.entry_points"}
MOVE_MS = 3_500
"""A demotion and a promotion."""
RESTART_MS = 6_000
"""A daemon's start, its Join, an election where the DC was killed, and the probes."""
DOUBLE_S = 1.0


def _strike(lab: DatabaseLab, phase: str, program: str, name: str, since: int, chance: random.Random) -> None:
    action, edge, span_s = PHASES[phase]
    lab.ledger.await_note(since, action, edge, 40)
    time.sleep(chance.uniform(0, span_s))
    lab.machines[name].signal(PROGRAMS[program], signal.SIGKILL)


def _promote(phase: str, program: str, kind: str) -> Callable[[Lab, random.Random], Played]:
    """The primary is wanted on another node."""

    def play(lab: Lab, chance: random.Random) -> Played:
        assert isinstance(lab, DatabaseLab)
        old, new = lab.ends(lab.dc(), kind, chance)
        name = {"old": old, "new": new, "dc": lab.dc()}[kind]
        since = time.monotonic_ns()
        lab.send_home(new)
        _strike(lab, phase, program, name, since, chance)
        lab.until("all to be well, and the primary at its new place", lab.is_whole, 90)
        return Played(interruption_ms=MOVE_MS + RESTART_MS)

    return play


def _promote_after_crash(phase: str, program: str, kind: str) -> Callable[[Lab, random.Random], Played]:
    """The primary's machine is lost; when it is back, the primary is wanted there again."""

    def play(lab: Lab, chance: random.Random) -> Played:
        assert isinstance(lab, DatabaseLab)
        dc = lab.dc()
        if lab.home == dc:
            lab.bring_to(chance.choice(lab.others(dc)))
        old = lab.home
        is_holder = old == lab.holder()
        since = time.monotonic_ns()
        lab.machines[old].switch_off()
        name = dc if kind == "dc" else lab.ledger.await_note(since, "promote", "begins", 40)
        _strike(lab, phase, program, name, since, chance)
        lab.until("all to be well, and the primary at its old place", lab.is_whole, 90)
        return Played(
            fenced=(old,), bound_ms=RECOVERY_MS if is_holder else 500, explains=("node-lost", "node-fenced"),
            interruption_ms=RECOVERY_MS + MOVE_MS + RESTART_MS,
        )  # fmt: skip

    return play


def two_primaries(lab: Lab, chance: random.Random) -> Played:
    """The positive control: a standby that is promoted by hand, which both witnesses must see."""
    assert isinstance(lab, DatabaseLab)
    namespaces = lab.machines[lab.others(lab.home)[0]].namespaces
    assert namespaces is not None
    inside = namespaces.run
    inside("/usr/local/sbin/lab-database", "ask", "promote", "0")
    time.sleep(DOUBLE_S)
    spans = [span for _, _, span in overlaps(lab.primary_beats.held(), lab.began, on_one_node=False)]
    inside("/usr/local/sbin/lab-database", "ask", "demote", is_checked=False)
    assert max(spans, default=0) >= DOUBLE_S * 250, f"the witness of the beats is blind: {spans}"
    assert lab.lost(lab.began), "the ledger is blind"
    return Played(bound_ms=60_000)


FAULTS = (
    *(
        Fault(f"promote-{phase}-{program}-{kind}", Verdict.RECOVERS, _promote(phase, program, kind), sizes=(3, 5),
              cluster=Cluster.DATABASE)
        for phase in PHASES
        for program in PROGRAMS
        for kind in ("old", "new", "dc")
    ),
    *(
        Fault(f"promote-crash-{phase}-{program}-{kind}", Verdict.RECOVERS,
              _promote_after_crash(phase, program, kind), sizes=(3, 5), cluster=Cluster.DATABASE)
        for phase, program, kind in (("promoting", "brain", "new"), ("promoting", "both", "dc"),
                                     ("promoted", "brain", "new"), ("promoted", "both", "dc"))
    ),
    Fault("promote-control", Verdict.DETECTED, two_primaries, cluster=Cluster.DATABASE),
)  # fmt: skip
