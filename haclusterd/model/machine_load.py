"""What the load of a machine's processors leaves of the work that a cluster gives it (`load-threshold`)."""

from haclusterd.model.records import dataclass

ACTIONS_PER_PROCESSOR = 2
"""How many actions at once a node does usually where node-action-limit says nothing (Pacemaker Explained, "Cluster
Options": node-action-limit)."""
_SHARES = ((160, 0), (120, 4), (100, 2))
"""From which part of the threshold on, in percent, a node does its usual number divided by what; 0: one action."""


@dataclass(frozen=True, slots=True)
class MachineLoad:
    """The load of one moment."""

    processors: int
    percent: int
    """Runnable threads by processor, on average over the last minute; it may be more than 100."""


def actions_left(load: MachineLoad, threshold_percent: int, limit: int) -> int:
    """Return how many actions a node may do at once at a load; 0: no limit follows from it.

    `limit` is node-action-limit.
    """
    usual = limit if limit > 0 else ACTIONS_PER_PROCESSOR * max(1, load.processors)
    for percent, share in _SHARES:
        if load.percent * 100 >= threshold_percent * percent:
            return max(1, usual // share) if share else 1
    return 0
