"""What a `node_state` says about its node: online, lost, or away, as Pacemaker's own scheduler would conclude.

Source: Pacemaker Explained, "Node Status"; the table of docs/design/0006-cib-xml.md. A node that Pacemaker would fence
is one that is lost here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from haclusterd.formats.cib_xml_tree import Element
from haclusterd.model.cluster import NodeState
from haclusterd.model.properties import read_boolean

NOT_SEEN = "peer has not been seen by the cluster"


@dataclass(frozen=True, slots=True)
class Membership:
    """The conclusion about one node."""

    state: NodeState
    detail: str = ""
    """Why it is lost."""
    is_leaving: bool = False


_AWAY = Membership(NodeState.LEFT)


def is_set(text: str | None) -> bool:
    """Tell whether an attribute is true, or a time."""
    if text is None:
        return False
    try:
        return read_boolean(text)
    except ValueError:
        return text.isdecimal() and int(text[:15]) > 0


def judge(element: Element, attributes: Mapping[str, str], *, is_fencing_enabled: bool) -> Membership:
    """Conclude from a `node_state` and the node's transient attributes."""
    is_member = is_set(element.get("in_ccm"))
    is_process = element.get("crmd") == "online" or is_set(element.get("crmd"))
    is_leaving = attributes.get("shutdown", "0") not in ("0", "")
    is_expected = element.get("expected") == "member"
    join = element.get("join")
    if not is_fencing_enabled:
        if is_member and is_process and join == "member":
            return Membership(NodeState.ONLINE, is_leaving=is_leaving)
        is_lost = is_member and not is_process and is_expected and not is_leaving
        return Membership(NodeState.LOST, "peer is unexpectedly down") if is_lost else _AWAY
    if is_leaving:
        return Membership(NodeState.ONLINE, is_leaving=True) if is_process else _AWAY
    if element.get("in_ccm") is None:
        return Membership(NodeState.LOST, NOT_SEEN)
    return _judge_with_fencing(join, attributes, is_member=is_member, is_process=is_process, is_expected=is_expected)


def _judge_with_fencing(
    join: str | None, attributes: Mapping[str, str], *, is_member: bool, is_process: bool, is_expected: bool
) -> Membership:
    is_gone = not is_member and not is_process and join == "down"
    if is_set(attributes.get("terminate")) and is_gone:
        return _AWAY
    reasons = (
        (join == "banned", "peer failed Pacemaker membership criteria"),
        (is_set(attributes.get("terminate")), "fencing was requested"),
        (is_expected and not is_member, "peer is no longer part of the cluster"),
        (is_expected and not is_process, "peer process is no longer available"),
        (is_expected and join not in ("member", "pending", "down"), "peer was in an unknown state"),
    )
    reason = next((text for holds, text in reasons if holds), "")
    if reason:
        return Membership(NodeState.LOST, reason)
    return Membership(NodeState.ONLINE) if is_expected and join == "member" else _AWAY
