"""All timers that follow from the two numbers an administrator sets (safety.md §2, §3, §7).

Invariant: every timer derives from node-timeout and brain-timeout, so that no two of them can contradict each other.
"""

from haclusterd.model.records import dataclass

DEFAULT_NODE_TIMEOUT_MS = 2000
DEFAULT_BRAIN_TIMEOUT_MS = 10_000

CLOCK_RATE_PERCENT = 1
"""How far the rates of two nodes' clocks may differ (safety.md §2)."""
WATCHDOG_RESERVE_MS = 1000
"""Between a watchdog's expiry and the silence of the machine: pretimeout, panic path (safety.md §2)."""

FENCE_AGENT_GRACE_MS = 3000
"""How long after its timeout a fence agent is killed that its daemon could not kill."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Derived timers, in milliseconds."""

    node_timeout_ms: int
    """A host that was not heard for this long is lost."""
    brain_timeout_ms: int
    """A heard host whose daemon was away for this long is lost."""
    heartbeat_ms: int
    """Between two heartbeats of a pacer."""
    lease_ms: int
    """How long after the sending of an echoed heartbeat a node may continue."""
    stamp_ms: int
    """Between two signs of life of a daemon to its pacer, at the latest; two within what makes a hang (brain-timeout /
    4), and one within what makes a leader hand over."""
    stall_ms: int
    """After an own standstill longer than this, silence is counted from zero."""
    election_min_ms: int
    election_max_ms: int
    append_ms: int
    """Between two Raft heartbeats of a leader."""
    tick_ms: int
    """Resolution of the Raft timers."""
    fallback_ms: int
    """A leader that a majority did not answer for this long steps down."""
    one_way_ms: int
    """A node that others hear and the DC does not is decided upon after this long."""
    unseen_wait_ms: int
    """A member that was not seen for this long after the cluster formed is fenced."""


def derive(node_timeout_ms: int, brain_timeout_ms: int = DEFAULT_BRAIN_TIMEOUT_MS) -> Timing:
    """Derive all timers.

    An election begins 3/8 to 3/4 of node-timeout after the leader's last heartbeat: it is over when that node is lost.
    The fallback stays below election minimum - 2 ticks - round trip; a tenth of the minimum is left for the round trip.
    A leader's heartbeats come as rarely as that permits: two of them fit into the fallback, three into the minimum.
    """
    minimum = min(750, max(150, 3 * node_timeout_ms // 8))
    tick = minimum // 25
    return Timing(
        node_timeout_ms=node_timeout_ms,
        brain_timeout_ms=brain_timeout_ms,
        heartbeat_ms=max(50, node_timeout_ms // 10),
        lease_ms=node_timeout_ms,
        stamp_ms=max(1, min(4 * minimum // 3, brain_timeout_ms // 10)),
        stall_ms=node_timeout_ms // 4,
        election_min_ms=minimum,
        election_max_ms=2 * minimum,
        append_ms=(minimum - tick) // 3,
        tick_ms=tick,
        fallback_ms=minimum - 2 * tick - minimum // 10 - 1,
        one_way_ms=3 * node_timeout_ms,
        unseen_wait_ms=max(10_000, 5 * node_timeout_ms),
    )


def watchdog_wait_ms(lease_ms: int, watchdog_timeout_ms: int) -> int:
    """Return W: how long survivors wait, after a loss is committed, before a watchdog counts as having done its work.

    W = (L + 2·T_wd)·(1 + 2ρ) + R (safety.md §2): the lease ends, a feed held back by a stopped feeder comes up to T_wd
    later, and the device resets T_wd after it.
    """
    return _slowest(lease_ms + 2 * watchdog_timeout_ms) + WATCHDOG_RESERVE_MS


def naive_watchdog_wait_ms(lease_ms: int, watchdog_timeout_ms: int) -> int:
    """Return what W would be if no feed could be held back; the simulator shows with it that this is too short."""
    return _slowest(lease_ms + watchdog_timeout_ms) + WATCHDOG_RESERVE_MS


def abandoned_fencing_ms(lease_ms: int, call_ms: int) -> int:
    """Return how long the fence agent of a lost executor may be at work after the loss was committed (safety.md §5).

    A call is begun under the lease, and ends after its timeout by SIGKILL at the latest.
    """
    return _slowest(lease_ms + call_ms + FENCE_AGENT_GRACE_MS) + WATCHDOG_RESERVE_MS


def _slowest(span_ms: int) -> int:
    return span_ms + -(-span_ms * 2 * CLOCK_RATE_PERCENT // 100)


def longest_round_trip_ms(timing: Timing) -> int:
    """Return the longest round trip between voters at which the lease holds: L >= 3h + RTT (safety.md §2)."""
    return timing.lease_ms - 3 * timing.heartbeat_ms
