"""A witness votes, runs nothing, and hands the leadership over as soon as it is elected (safety.md §5).

It is a small machine, perhaps far away: it should not be the DC while any other node can be. While it hears no other
voter it leads as any voter does, since a cluster without a DC recovers nothing. So it does while TCP is filtered
between the others: any of them that leads would declare a working node lost (safety.md §4).
"""

from collections.abc import Mapping

from haclusterd.model.cluster import Cib, Member, NodeState
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import BrainState, HeardNode, PacerReport
from haclusterd.model.timing import Timing

ATTEMPT_MS = 1000
"""How long one transfer target is tried before the next: only one that has the whole log can take over."""


class WitnessDuty:
    """What a witness does that is elected; made for each term that it leads."""

    def __init__(self, node: NodeName, since: Instant) -> None:
        self._node = node
        self._since = since

    def target(
        self, cib: Cib, members: tuple[Member, ...], report: PacerReport | None, timing: Timing, now: Instant
    ) -> NodeName | None:
        """Return who should lead instead; None when this node is no witness, or no other candidate is heard.

        `members` are those of the CIB, or those that a new cluster is to have.
        """
        own = next((member for member in members if member.name == self._node), None)
        if own is None or not own.is_witness or report is None:
            return None
        alive = {
            heard.name: heard
            for heard in report.nodes
            if heard.age_ms is not None and heard.age_ms < timing.node_timeout_ms and heard.brain is BrainState.ALIVE
        }
        candidates = sorted(
            member.name
            for member in members
            if member.is_voter
            and not member.is_witness
            and member.name in alive
            and not _is_given_up(cib, member.name)
            and not self._reaches_more_than(cib, alive, member.name)
        )
        return candidates[(now - self._since) // ATTEMPT_MS % len(candidates)] if candidates else None

    def _reaches_more_than(self, cib: Cib, alive: Mapping[NodeName, HeardNode], target: NodeName) -> bool:
        """Return whether this witness has a session with a node that takes part, and `target` has none with it.

        Both ends must say so: a node that has just started lacks sessions for a moment, and an older version reports
        none.
        """
        sessions = alive[target].linked
        return bool(sessions) and any(
            status.state is NodeState.ONLINE
            and name not in (target, self._node)
            and name in alive
            and self._node in alive[name].linked
            and target not in alive[name].linked
            and name not in sessions
            for name, status in cib.status.nodes.items()
        )

    def holds_back(self, timing: Timing, now: Instant) -> bool:
        """Return whether it is too early to take office, although another node should."""
        return now - self._since < timing.node_timeout_ms


def _is_given_up(cib: Cib, node: NodeName) -> bool:
    status = cib.status.nodes.get(node)
    return status is not None and (status.is_leaving or status.state in (NodeState.LOST, NodeState.FENCED))
