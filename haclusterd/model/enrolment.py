"""What a new node and the daemon that invited it tell each other; how it travels is `protocol.enrolment`."""

from typing import TypeAlias

from haclusterd.model.cluster import Member
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass, field


@dataclass(frozen=True, slots=True)
class InvitationTerms:
    """Whom an administrator lets in, and as what."""

    node: NodeName | None = None
    """Whose name it must be; None: any that is free."""
    is_witness: bool = False
    is_learner: bool = False
    """It gets no vote, also later."""
    valid_ms: int = 3_600_000
    port: int | None = None
    """Where to listen; None: one above the port of Raft."""
    authority: str = ""
    """The directory of the authority's key; empty: beside this node's certificate."""


@dataclass(frozen=True, slots=True)
class Hello:
    """Who listens; unproven until the pin and the session's certificate were compared."""

    cluster: str
    """Its uuid."""
    name: str
    authority: str
    """Its certificate, PEM."""
    nonce: bytes
    now: WallTime
    feature_level: int


@dataclass(frozen=True, slots=True)
class Apply:
    """Who wants to join."""

    invitation: str
    node: NodeName
    addresses: tuple[tuple[str, int], ...]
    request: str
    """PKCS #10, PEM."""
    nonce: bytes
    now: WallTime
    feature_level: int
    proof: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class News:
    """It continues; this is waited for."""

    text: str


@dataclass(frozen=True, slots=True)
class Admitted:
    """The applicant is a member from now on."""

    certificate: str
    cluster: str
    name: str
    members: tuple[Member, ...]
    node_timeout_ms: int


@dataclass(frozen=True, slots=True)
class Denied:
    """The applicant is no member."""

    code: str
    """Of a report."""
    problem: str
    remedy: str
    exit_status: int


Message: TypeAlias = Hello | Apply | News | Admitted | Denied
