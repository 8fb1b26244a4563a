"""Whether a fenced node is silent: what the DC, and the voters that it hears, have heard of it since (safety.md §5).

A target that is alive sends once per heartbeat period. So silence is proven only by nodes that have listened for a
whole period after the fence agent's success and have been able to report it: the DC by a report of its pacer made that
late, another voter by a heartbeat received that late. A fixed wait instead could end before the evidence arrives.

A heartbeat that arrives after the success may have been sent before it, because the network delays. A target that has
seen a heartbeat sent after the success is alive; so is one that is still heard a node-timeout later. Until then, each
heartbeat of the target restarts the listening period.
"""

from haclusterd.model.cluster import Cib
from haclusterd.model.fencing import FenceOrder
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant, after
from haclusterd.model.pacer import HeardNode, PacerReport
from haclusterd.model.records import dataclass
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
    """Return the evidence in a report of this node's pacer; `since` is when `node`, the DC, saw the agent's success."""
    if report is None:
        return Evidence()
    heard = {item.name: item for item in report.nodes}
    target = heard.get(order.target)
    if target is not None and _is_same_boot(target, order) and is_alive_since(target, since, timing):
        return Evidence(listener=node)
    live = [known for voter in cib.voters() if voter != order.target and (known := heard.get(voter)) is not None
            and _is_live(known, timing)]  # fmt: skip
    signs = {node: target.heard_at if target is not None and _is_same_boot(target, order) else None}
    signs |= {voter.name: _heard_by(voter, target, order) for voter in live}
    for voter, sign in signs.items():
        if sign is not None and sign > after(since, timing.node_timeout_ms):
            return Evidence(listener=voter)
    newest = max((since, *(sign for sign in signs.values() if sign is not None)))
    listened_until = after(newest, timing.heartbeat_ms + timing.heartbeat_ms // 4)
    reports = [report.reported_at, *(voter.heard_at for voter in live)]
    return Evidence(is_complete=all(at is not None and at >= listened_until for at in reports))


def is_alive_since(heard: HeardNode, since: Instant, timing: Timing) -> bool:
    """Return whether what was heard of a node proves that it was alive after `since`, however late it arrived."""
    if heard.answered_at is not None and heard.answered_at > since:
        return True
    return heard.heard_at is not None and heard.heard_at > after(since, timing.node_timeout_ms)


def _is_live(voter: HeardNode, timing: Timing) -> bool:
    return voter.age_ms is not None and voter.age_ms < timing.node_timeout_ms


def _is_same_boot(target: HeardNode, order: FenceOrder) -> bool:
    """Return whether what is heard is in the boot that was to end; a daemon that restarted in it is proof too."""
    wanted, found = order.target_incarnation, target.incarnation
    return wanted is not None and found is not None and wanted.boot_id == found.boot_id


def _heard_by(voter: HeardNode, target: HeardNode | None, order: FenceOrder) -> Instant | None:
    """Return when a voter last heard the boot that was to end; None: never, or it heard another boot."""
    age_ms = voter.hears.get(order.target)
    if age_ms is None or voter.heard_at is None:
        return None
    heard_at = Instant(voter.heard_at - age_ms)
    token = voter.hears_token.get(order.target)
    if order.target_incarnation is not None and token == order.target_incarnation.token:
        return heard_at
    is_same = target is not None and target.incarnation is not None and (
        token == target.incarnation.token and _is_same_boot(target, order)
    )
    return heard_at if is_same else None
