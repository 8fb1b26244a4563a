"""What a `node_state` says about its node: online, joining, lost, or away, as Pacemaker's own scheduler would conclude.

Source: Pacemaker Explained, "Node Status"; the table of docs/design/0006-cib-xml.md. A node that Pacemaker would fence
is one that is lost here, or condemned when something else than its absence is held against it.
"""

from collections.abc import Mapping

from haclusterd.formats.cib_xml.tree import Element
from haclusterd.model.cluster import NodeState
from haclusterd.model.instants import WallTime
from haclusterd.model.properties import read_boolean
from haclusterd.model.records import dataclass

NOT_SEEN = "peer has not been seen by the cluster"


@dataclass(frozen=True, slots=True)
class Membership:
    """The conclusion about one node."""

    state: NodeState
    detail: str = ""
    """Why it is to be fenced."""
    is_leaving: bool = False
    is_joining: bool = False
    is_condemned: bool = False
    since: WallTime = WallTime(0)
    """Of a node that is a member and whose controller has not answered yet: since when, if that is recorded."""


_AWAY = Membership(NodeState.LEFT)


@dataclass(frozen=True, slots=True)
class _Recorded:
    """What the attributes of one node state record."""

    is_member: bool
    is_process: bool
    is_expected: bool
    join: str | None
    member_since: WallTime

    def condemned(self, reason: str, *, is_online: bool) -> Membership:
        state = NodeState.ONLINE if is_online else NodeState.LOST
        return Membership(state, reason, is_condemned=True)


def is_set(text: str | None) -> bool:
    """Tell whether an attribute is true, or a time."""
    if text is None:
        return False
    try:
        return read_boolean(text)
    except ValueError:
        return _time(text) > 0


def _time(text: str | None) -> WallTime:
    """Read a time in seconds; since feature set 3.18 memberships are given by when they began. 1 is a word for true."""
    is_time = text is not None and text.isdecimal() and 1 < len(text) <= 12
    return WallTime(int(text) * 1000) if is_time and text is not None else WallTime(0)


def judge(element: Element, attributes: Mapping[str, str], *, is_fencing_enabled: bool) -> Membership:
    """Conclude from a `node_state` and the node's transient attributes."""
    recorded = _Recorded(
        is_member=is_set(element.get("in_ccm")),
        is_process=element.get("crmd") == "online" or is_set(element.get("crmd")),
        # Whatever it says, a node is expected unless it says "down" (seen with crm_simulate 2.1.5 and 3.0.0).
        is_expected=element.get("expected") not in (None, "down"),
        join=element.get("join"),
        member_since=_time(element.get("in_ccm")),
    )
    is_leaving = attributes.get("shutdown", "0") not in ("0", "")
    if not is_fencing_enabled:
        if recorded.is_member and recorded.is_process and recorded.join == "member":
            return Membership(NodeState.ONLINE, is_leaving=is_leaving)
        is_lost = recorded.is_member and not recorded.is_process and recorded.is_expected and not is_leaving
        return Membership(NodeState.LOST, "peer is unexpectedly down") if is_lost else _AWAY
    if is_leaving:
        return Membership(NodeState.ONLINE, is_leaving=True) if recorded.is_process else _AWAY
    if element.get("in_ccm") is None:
        return recorded.condemned(NOT_SEEN, is_online=False)
    if recorded.join == "banned":
        return recorded.condemned("peer failed Pacemaker membership criteria", is_online=recorded.is_member)
    if is_set(attributes.get("terminate")):
        is_gone = not recorded.is_member and not recorded.is_process and recorded.join == "down"
        return _AWAY if is_gone else recorded.condemned("fencing was requested", is_online=recorded.is_member)
    return _judge_expected(recorded) if recorded.is_expected else _judge_unexpected(recorded)


def _judge_expected(recorded: _Recorded) -> Membership:
    if not recorded.is_member:
        return Membership(NodeState.LOST, "peer is no longer part of the cluster")
    if not recorded.is_process:
        return recorded.condemned("peer process is no longer available", is_online=True)
    if recorded.join == "member":
        return Membership(NodeState.ONLINE)
    if recorded.join in ("pending", "down"):
        return Membership(NodeState.ONLINE, is_joining=True)
    return recorded.condemned("peer was in an unknown state", is_online=True)


def _judge_unexpected(recorded: _Recorded) -> Membership:
    """Judge a node that nobody waits for: it is on its way in, or away."""
    if recorded.is_member:
        since = WallTime(0) if recorded.is_process else recorded.member_since
        return Membership(NodeState.ONLINE, is_joining=True, since=since)
    return Membership(NodeState.LEFT, is_joining=True) if recorded.is_process else _AWAY
