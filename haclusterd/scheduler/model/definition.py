"""What is configured of a resource, with the defaults, as the plan's stages read it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum

from haclusterd.model.configuration import AttributeSet, Operation
from haclusterd.model.ids import AgentReference
from haclusterd.model.ocf import Role
from haclusterd.model.records import dataclass, field
from haclusterd.model.scores import INFINITY


class Variant(IntEnum):
    """What kind of thing it is; larger ones contain smaller ones."""

    PRIMITIVE = 0
    GROUP = 1
    CLONE = 2
    BUNDLE = 3


class Discovery(IntEnum):
    """Where a resource is probed; of several the greatest counts."""

    ALWAYS = 0
    NEVER = 1
    EXCLUSIVE = 2


class Needs(Enum):
    """What must be before a resource may start."""

    NOTHING = "nothing"
    QUORUM = "quorum"
    FENCING = "fencing"


class MultipleActive(Enum):
    """What to do when it is found active on several nodes."""

    STOP_START = "stop_start"
    STOP_ONLY = "stop_only"
    BLOCK = "block"
    STOP_UNEXPECTED = "stop_unexpected"


@dataclass(frozen=True, slots=True)
class Definition:
    """What is configured of a resource, with the defaults: made once, and shared by what is defined alike."""

    meta: Mapping[str, str] = field(default_factory=dict)
    """All meta-attributes, resolved."""
    own_meta: Mapping[str, str] = field(default_factory=dict)
    """Those of them that are the administrator's own."""
    agent: AgentReference | None = None
    operations: tuple[Operation, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Instance parameters whatever the node: with blocks that have rules, those that are true without one."""
    parameter_sets: tuple[AttributeSet, ...] = ()
    """Own blocks and then the parents', when one of them has a rule that may depend on the node; else empty."""
    utilization: Mapping[str, int] = field(default_factory=dict)
    is_fence_device: bool = False
    priority: int = 0
    stickiness: int = 0
    migration_threshold: int = INFINITY
    failure_timeout_ms: int = 0
    multiple_active: MultipleActive = MultipleActive.STOP_START
    needs: Needs = Needs.FENCING
    needs_unfencing: bool = False
    is_critical: bool = True
    is_managed: bool = True
    is_maintenance: bool = False
    target_role: Role = Role.UNKNOWN
    is_migratable: bool = False
    allows_unhealthy_nodes: bool = False
    uses_host_attributes: bool = False
    """`container-attribute-target=host`."""
    # groups and clones
    is_ordered: bool = True
    is_collocated: bool = True
    is_unique: bool = False
    is_promotable: bool = False
    is_interleaved: bool = False
    notifies: bool = False
    clone_max: int = 1
    clone_node_max: int = 1
    clone_min: int = 0
    promoted_max: int = 1
    promoted_node_max: int = 1
    is_gang: bool = False
    """All instances run or none (`gpu-gang=all`)."""
    # bundles, remote and guest nodes
    is_replica_container: bool = False
    is_remote_connection: bool = False
    is_nesting_allowed: bool = False
    """The connection of a bundle's container: it may run apart from the container, and on remote nodes not."""
    reconnect_interval_ms: int = 0
