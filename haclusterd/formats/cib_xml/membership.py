"""What a `node_state` says about its node: online, joining, lost, or away, as Pacemaker's own scheduler would conclude.

Source: Pacemaker Explained, "Node Status"; the table of docs/design/0006-cib-xml.md. A node that Pacemaker would fence
is one that is lost here, or condemned when something else than its absence is held against it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from haclusterd.formats.cib_xml.tree import Element
from haclusterd.model.cluster import NodeState
from haclusterd.model.instants import WallTime
from haclusterd.model.properties import read_boolean

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
class _Said:
    """What the attributes say."""

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
    said = _Said(
        is_member=is_set(element.get("in_ccm")),
        is_process=element.get("crmd") == "online" or is_set(element.get("crmd")),
        is_expected=element.get("expected") == "member",
        join=element.get("join"),
        member_since=_time(element.get("in_ccm")),
    )
    is_leaving = attributes.get("shutdown", "0") not in ("0", "")
    if not is_fencing_enabled:
        if said.is_member and said.is_process and said.join == "member":
            return Membership(NodeState.ONLINE, is_leaving=is_leaving)
        is_lost = said.is_member and not said.is_process and said.is_expected and not is_leaving
        return Membership(NodeState.LOST, "peer is unexpectedly down") if is_lost else _AWAY
    if is_leaving:
        return Membership(NodeState.ONLINE, is_leaving=True) if said.is_process else _AWAY
    if element.get("in_ccm") is None:
        return said.condemned(NOT_SEEN, is_online=False)
    if said.join == "banned":
        return said.condemned("peer failed Pacemaker membership criteria", is_online=said.is_member)
    if is_set(attributes.get("terminate")):
        is_gone = not said.is_member and not said.is_process and said.join == "down"
        return _AWAY if is_gone else said.condemned("fencing was requested", is_online=said.is_member)
    return _judge_expected(said) if said.is_expected else _judge_unexpected(said)


def _judge_expected(said: _Said) -> Membership:
    if not said.is_member:
        return Membership(NodeState.LOST, "peer is no longer part of the cluster")
    if not said.is_process:
        return said.condemned("peer process is no longer available", is_online=True)
    if said.join == "member":
        return Membership(NodeState.ONLINE)
    if said.join in ("pending", "down"):
        return Membership(NodeState.ONLINE, is_joining=True)
    return said.condemned("peer was in an unknown state", is_online=True)


def _judge_unexpected(said: _Said) -> Membership:
    """Judge a node that nobody waits for: it is on its way in, or away."""
    if said.is_member:
        since = WallTime(0) if said.is_process else said.member_since
        return Membership(NodeState.ONLINE, is_joining=True, since=since)
    return Membership(NodeState.LEFT, is_joining=True) if said.is_process else _AWAY
