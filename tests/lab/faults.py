"""What a fault is, what must come of it, and whom it hits.

A fault is played on a whole cluster and waits for what its verdict promises; the round that plays it undoes it, waits
until the cluster is whole again, and audits. The verdicts are those of docs/design/safety.md §9:

    recovers   the service answers again within the fault's bound
    holds      nothing starts while the fault lasts, the first screen of status names the cause; afterwards it recovers
    detected   a lying device without a watchdog: an overlap may be, and is seen
"""

import random
from collections.abc import Callable
from enum import StrEnum

from haclusterd.model.records import dataclass
from tests.lab.lab import Lab

NODE_TIMEOUT_S = 2.0


class Verdict(StrEnum):
    """What must come of a fault."""

    RECOVERS = "recovers"
    HOLDS = "holds"
    DETECTED = "detected"


class Cluster(StrEnum):
    """What kind of machines a fault is played on, in words."""

    PLAIN = "nodes"
    WATCHDOGS = "nodes with watchdogs"
    """And without a power switch."""
    GUEST = "nodes with a virtual machine"
    DATABASE = "nodes with a database"


BY_NAME = frozenset({Cluster.GUEST, Cluster.DATABASE})
"""Clusters whose faults are played only where somebody asks for them."""


@dataclass(slots=True)
class Played:
    """What a fault did, and what must therefore be found."""

    fenced: tuple[str, ...] = ()
    """Nodes that must have been shot, and nobody else."""
    may_be_fenced: tuple[str, ...] = ()
    bound_ms: int = 500
    """The longest outage that the client may have seen."""
    interruption_ms: int = 10**9
    """The longest interruption of what else runs on the cluster."""
    explains: tuple[str, ...] = ()
    """Kinds of events that the history must have."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One row of the matrix."""

    name: str
    verdict: Verdict
    play: Callable[[Lab, random.Random], Played]
    sizes: tuple[int, ...] = (3,)
    """Of clusters that it is played on."""
    cluster: Cluster = Cluster.PLAIN
    is_long: bool = False
    """Once is enough."""
    is_by_name: bool = False
    """It takes so long that it is played only where it is named in full, or hundreds are played."""


RECOVERY_MS = 9_000
"""Node-timeout, an election, fencing, two starts; the rest is for a machine that has other work."""


def victim(lab: Lab, kind: str) -> str:
    """Return the node that holds the service, the DC, or one that is neither."""
    holder, dc = lab.holder(), lab.dc()
    if kind == "holder":
        return holder
    if kind == "dc":
        return dc
    return next(name for name in lab.machines if name not in (holder, dc))


def await_recovery(lab: Lab, lost: str, wait_s_max: float = 30.0) -> None:
    """Wait until the client is served, and by somebody else than a node that was shot."""
    lab.until(f"{lost} to be fenced", lambda: lost in lab.fenced(lab.began), wait_s_max)
    lab.until("the service to answer", lab.client.is_served, wait_s_max)


def shot(*names: str, is_holder: bool) -> Played:
    bound_ms = RECOVERY_MS if is_holder else 500
    return Played(fenced=names, bound_ms=bound_ms, explains=("node-lost", "node-fenced"))
