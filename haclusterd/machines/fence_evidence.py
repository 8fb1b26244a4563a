"""Is a fenced node really silent: what the DC and the voters it hears have heard of it since (safety.md §5).

A target that lives sends once per heartbeat period. So silence is proven only by somebody who has listened for a whole
period after the fence agent's success, and has been able to say so: the DC by a report made that late, another voter by
a heartbeat that came that late. Waiting for a fixed time instead would believe before the news could arrive.
"""

from dataclasses import dataclass

from haclusterd.model.cluster import Cib
from haclusterd.model.fencing import FenceOrder
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant, after
from haclusterd.model.pacer import HeardNode, PacerReport
from haclusterd.model.timing import Timing


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a target since its fence agent succeeded."""

    listener: NodeName | None = None
    """A live voter that has heard it; None: nobody has."""
    is_complete: bool = False
    """Whether every live voter has listened for a whole heartbeat period."""


def evidence_since(
    cib: Cib, order: FenceOrder, node: NodeName, report: PacerReport | None, *, since: Instant, timing: Timing
) -> Evidence:
    """Weigh a report of this node's pacer; `since` is when `node`, the DC, saw the agent's success."""
    if report is None:
        return Evidence()
    heard = {item.name: item for item in report.nodes}
    target = heard.get(order.target)
    if target is not None and _is_same_boot(target, order) and target.heard_at is not None and target.heard_at > since:
        return Evidence(listener=node)
    listened_until = after(since, timing.heartbeat_ms + timing.heartbeat_ms // 4)
    is_complete = report.reported_at >= listened_until
    for voter in cib.voters():
        known = heard.get(voter)
        if voter == order.target or known is None or not _is_live(known, timing):
            continue
        if _has_heard(known, target, order, since):
            return Evidence(listener=voter)
        is_complete = is_complete and known.heard_at is not None and known.heard_at >= listened_until
    return Evidence(is_complete=is_complete)


def _is_live(voter: HeardNode, timing: Timing) -> bool:
    return voter.age_ms is not None and voter.age_ms < timing.node_timeout_ms


def _is_same_boot(target: HeardNode, order: FenceOrder) -> bool:
    """Tell whether what is heard lives in the boot that was to end; a daemon that restarted there proves it as well."""
    wanted, found = order.target_incarnation, target.incarnation
    return wanted is not None and found is not None and wanted.boot_id == found.boot_id


def _has_heard(voter: HeardNode, target: HeardNode | None, order: FenceOrder, since: Instant) -> bool:
    age_ms = voter.hears.get(order.target)
    if age_ms is None or voter.heard_at is None or voter.heard_at - age_ms <= since:
        return False
    token = voter.hears_token.get(order.target)
    if order.target_incarnation is not None and token == order.target_incarnation.token:
        return True
    return target is not None and target.incarnation is not None and (
        token == target.incarnation.token and _is_same_boot(target, order)
    )
