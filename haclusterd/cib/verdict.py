"""What the handlers of `apply` share: information on the entry, and the answer."""

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
    """A command's place in the log, and its circumstances."""

    at: WallTime
    proposer: NodeName
    index: int
    term: Term
    rules: SafetyRules
    is_in_force: bool = False
    """Whether it is a change of members that Raft follows already."""
    request: RequestId = RequestId("")
    put_together: PutTogether = put_together
    """Reads a staged change; a node that has prepared these very parts need not do so again."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The CIB after a command, and either the changes or the refusal."""

    cib: Cib
    changes: tuple[Change, ...] = ()
    refusal: Refusal | None = None


def refuse(cib: Cib, code: RefusalCode, text: str) -> Verdict:
    """Return a verdict that leaves the CIB as it is, with the reason."""
    return Verdict(cib, (), Refusal(code, text))


def accept(cib: Cib, *changes: Change) -> Verdict:
    """Return a verdict with a new CIB."""
    return Verdict(cib, changes)


def change(
    kind: ChangeKind,
    text: str,
    *,
    node: NodeName | None = None,
    resource: ResourceId | None = None,
    facts: Facts = NO_FACTS,
) -> Change:
    """Return a change, as text and data."""
    return Change(kind, node, resource, text, facts)


def by(author: str, reason: str) -> str:
    """Return the author and the reason as the end of a text; empty when there are none."""
    if not author:
        return ""
    return f" by {author}" + (f": {reason}" if reason else "")


def with_status(cib: Cib, status: Status) -> Cib:
    """Return the CIB with another status."""
    return replace(cib, status=status)


def with_node(cib: Cib, node: NodeStatus) -> Cib:
    """Return the CIB with another status of one node."""
    return with_nodes(cib, {node.name: node})


def with_nodes(cib: Cib, nodes: Mapping[NodeName, NodeStatus]) -> Cib:
    """Return the CIB with another status of several nodes."""
    return with_status(cib, replace(cib.status, nodes={**cib.status.nodes, **nodes}))
