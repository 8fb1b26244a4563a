"""Answers about nodes: how each is, its attributes, who belongs to the cluster."""

from collections.abc import Mapping
from typing import ClassVar

from haclusterd.model.records import dataclass
from haclusterd.verbs.answers.answer import Answer, absent


@dataclass(frozen=True, slots=True)
class GpusOfNode:
    """The GPUs of a node that resources can claim, and MIG instances instead of those that are divided."""

    usable: int
    """Something new may start on them, or has them: they are in order or degraded, and nobody drains them."""
    total: int
    held: int
    """By resources, with those whose end is not proven yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """How a node is, as the CIB and the answering daemon have it."""

    name: str
    is_member: bool
    state: str
    """`unseen`, `online`, `lost` and the like."""
    since: int
    """When it became so; epoch ms."""
    detail: str
    is_local: bool
    """Whether it is the one that answers."""
    is_dc: bool
    is_voter: bool
    is_witness: bool
    is_standby: bool
    is_maintenance: bool
    is_leaving: bool
    is_being_fenced: bool
    held_join: str
    """Why it is not let in yet; empty: it is, or does not ask."""
    heard_age_ms: int | None
    """How long ago it was heard by the answering node; null: never."""
    brain: str | None
    """What its heartbeats say of its daemon."""
    brain_since_ms: int | None
    unverified: int
    """How many resources may run there of which no probe has answered yet."""
    unhealthy: tuple[str, ...]
    """Health attributes that are yellow or red."""
    gpus: GpusOfNode | None = absent()
    """Absent: it has never reported any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownNode(Node):
    """A node with its attributes and resources."""

    addresses: tuple[str, ...]
    """HOST:PORT."""
    attributes: Mapping[str, str]
    """For ever."""
    utilization: Mapping[str, str]
    transient_attributes: Mapping[str, str]
    """Until its next boot."""
    incarnation: str | None
    resources: tuple[str, ...]
    """What runs or may run there."""


@dataclass(frozen=True, slots=True)
class Nodes(Answer):
    """Nodes with their attributes and resources."""

    SCHEMA: ClassVar[str] = "haclusterd.nodes/1"
    now: int
    """Of the answer; epoch ms."""
    nodes: tuple[ShownNode, ...]


@dataclass(frozen=True, slots=True)
class NodeAttributes:
    """The attributes of one node, by lifetime."""

    name: str
    reboot: Mapping[str, str] | None = absent()
    """Until its next boot; what waits to be written included."""
    forever: Mapping[str, str] | None = absent()
    private: Mapping[str, str] | None = absent()
    """For agents alone."""


@dataclass(frozen=True, slots=True)
class AttributesOfNodes(Answer):
    """Attributes of nodes, by lifetime."""

    SCHEMA: ClassVar[str] = "haclusterd.node-attributes/1"
    nodes: tuple[NodeAttributes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMember(Node):
    """A member of the cluster, and how it is heard."""

    addresses: tuple[str, ...]
    """HOST:PORT."""
    wants_vote: bool
    is_connected: bool | None
    """Whether the leader's log reaches it; null: not known here."""
    round_trip_ms: int | None


@dataclass(frozen=True, slots=True)
class Members(Answer):
    """Who belongs to the cluster and who is heard."""

    SCHEMA: ClassVar[str] = "haclusterd.members/1"
    now: int
    """Of the answer; epoch ms."""
    cluster: str
    """Its name."""
    uuid: str
    answered_by: str | None
    leader: str | None
    lease_remaining_ms: int | None
    members: tuple[ClusterMember, ...]


@dataclass(frozen=True, slots=True)
class Fence(Answer):
    """A node is to be fenced, or was."""

    SCHEMA: ClassVar[str] = "haclusterd.fence/1"
    node: str
    device: str | None
    """With which device; null: none is needed, or none is known yet."""


@dataclass(frozen=True, slots=True)
class Leader(Answer):
    """Who led, and who is to lead."""

    SCHEMA: ClassVar[str] = "haclusterd.leader/1"
    from_: str | None
    to: str


@dataclass(frozen=True, slots=True)
class Membership(Answer):
    """A change of the members."""

    SCHEMA: ClassVar[str] = "haclusterd.membership/1"
    node: str | None
    what: str
    """`removed`, `changed`, `renewed`, `revoked`."""
    version: int
    """Of the list of members; 0: it does not change."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A member's certificate."""

    node: str
    fingerprint: str
    """SHA-256, in hexadecimal digits; empty: not known here."""
    not_after: int | None
    """Epoch ms."""
    standing: str
    """How long it is good, in words."""
    is_revoked: bool


@dataclass(frozen=True, slots=True)
class Certificates(Answer):
    """Whose certificate is good for how long, and which are not accepted."""

    SCHEMA: ClassVar[str] = "haclusterd.certificates/1"
    now: int
    """Of the answer; epoch ms."""
    certificates: tuple[Certificate, ...]
    revoked: tuple[str, ...]
    """Fingerprints."""
