"""Answers about fencing: who can be fenced with what, what was fenced, what would happen."""

from typing import ClassVar

from haclusterd.model.records import dataclass
from haclusterd.verbs.answers.answer import Answer


@dataclass(frozen=True, slots=True)
class DeviceProof:
    """How far it is proven that a device can fence a node."""

    device: str
    proof: str
    """`tested`, `untested`, `failing`, `lied`."""
    at: int | None
    """Since when; epoch ms."""
    detail: str


@dataclass(frozen=True, slots=True)
class Cover:
    """What can fence one node."""

    node: str
    is_covered: bool
    levels: tuple[tuple[DeviceProof, ...], ...]
    """Tried in this order; all devices of a level are needed."""
    unfencing: tuple[DeviceProof, ...]
    """Devices that must let it in before it runs anything."""
    is_unfenced: bool


@dataclass(frozen=True, slots=True)
class Fencing(Answer):
    """What can fence each node, and how far that is proven."""

    SCHEMA: ClassVar[str] = "haclusterd.fencing/1"
    is_enabled: bool
    nodes: tuple[Cover, ...]
    now: int
    """Of the answer; epoch ms."""


@dataclass(frozen=True, slots=True)
class EndedFencing:
    """One fencing that has ended."""

    target: str
    action: str
    devices: tuple[str, ...]
    executor: str | None
    outcome: str
    detail: str
    reason: str
    began: int
    """Epoch ms."""
    ended: int
    """Epoch ms."""


@dataclass(frozen=True, slots=True)
class OpenFencing:
    """One fencing under way."""

    target: str
    action: str
    devices: tuple[str, ...]
    executor: str | None
    state: str
    since: int
    """Epoch ms."""
    reason: str
    attempt: int


@dataclass(frozen=True, slots=True)
class FencingHistory(Answer):
    """The remembered fencings, newest last, and those under way."""

    SCHEMA: ClassVar[str] = "haclusterd.fencing_history/1"
    now: int
    """Of the answer; epoch ms."""
    records: tuple[EndedFencing, ...]
    under_way: tuple[OpenFencing, ...]


@dataclass(frozen=True, slots=True)
class ConfiguredLevel:
    """One level as it is configured."""

    target: str
    """A node, a pattern, or ATTRIBUTE=VALUE."""
    index: int
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeLevels:
    """The levels of one node, in the order in which they are tried."""

    node: str
    levels: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class FencingTopology(Answer):
    """The configured levels, and what they make for each node."""

    SCHEMA: ClassVar[str] = "haclusterd.fencing_topology/1"
    configured: tuple[ConfiguredLevel, ...]
    nodes: tuple[NodeLevels, ...]


@dataclass(frozen=True, slots=True)
class DelayedDevice(DeviceProof):
    """A device of a plan, with how long it waits first."""

    delay_min_ms: int
    delay_max_ms: int


@dataclass(frozen=True, slots=True)
class FencingStep:
    """One level of a plan."""

    level: int
    devices: tuple[DelayedDevice, ...]
    action: str
    executors: tuple[str, ...]
    """Who may do it; the first would."""


@dataclass(frozen=True, slots=True)
class FencingPlan(Answer):
    """What would happen if a node died now."""

    SCHEMA: ClassVar[str] = "haclusterd.fencing_plan/1"
    node: str
    has_quorum: bool
    """Whether the others would have one."""
    steps: tuple[FencingStep, ...]
    actions: tuple[str, ...]
    """What the cluster would do, in words."""
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FencingConfirmed(Answer):
    """A node counts as fenced because a person said so."""

    SCHEMA: ClassVar[str] = "haclusterd.fencing_confirmed/1"
    node: str
