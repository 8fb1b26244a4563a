"""What the handlers of `apply` share: the entry they judge by, and the answer they give."""

from collections.abc import Mapping

from haclusterd.cib.changes import NO_FACTS, Change, ChangeKind, Facts, Refusal, RefusalCode
from haclusterd.cib.staging import PutTogether, put_together
from haclusterd.model.cluster import Cib, NodeStatus, Status
from haclusterd.model.ids import NodeName, RequestId, ResourceId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass, replace
from haclusterd.model.rules_in_force import SafetyRules


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command stands in the log, and when its proposer made it."""

    at: WallTime
    proposer: NodeName
    index: int
    term: Term
    rules: SafetyRules
    is_in_force: bool = False
    """A change of members that Raft follows already."""
    request: RequestId = RequestId("")
    put_together: PutTogether = put_together
    """Reads a staged change; a node that has read these very parts before need not do so again."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The CIB after a command, what changed, or why nothing did."""

    cib: Cib
    changes: tuple[Change, ...] = ()
    refusal: Refusal | None = None


def refuse(cib: Cib, code: RefusalCode, text: str) -> Verdict:
    """Leave the CIB as it is, and say why."""
    return Verdict(cib, (), Refusal(code, text))


def accept(cib: Cib, *changes: Change) -> Verdict:
    """Answer with a new CIB."""
    return Verdict(cib, changes)


def change(
    kind: ChangeKind,
    text: str,
    *,
    node: NodeName | None = None,
    resource: ResourceId | None = None,
    facts: Facts = NO_FACTS,
) -> Change:
    """Say what happened."""
    return Change(kind, node, resource, text, facts)


def by(author: str, reason: str) -> str:
    """Say who wanted it and why, as the end of a text; empty when nobody did."""
    if not author:
        return ""
    return f" by {author}" + (f": {reason}" if reason else "")


def with_status(cib: Cib, status: Status) -> Cib:
    """Replace the status."""
    return replace(cib, status=status)


def with_node(cib: Cib, node: NodeStatus) -> Cib:
    """Replace one node's status."""
    return with_nodes(cib, {node.name: node})


def with_nodes(cib: Cib, nodes: Mapping[NodeName, NodeStatus]) -> Cib:
    """Replace several nodes' status."""
    return with_status(cib, replace(cib.status, nodes={**cib.status.nodes, **nodes}))
