"""Answers about what the cluster would do: plans, and whether the configuration of a Pacemaker cluster may come in."""

from collections.abc import Mapping
from typing import ClassVar

from haclusterd.model.records import dataclass
from haclusterd.verbs.answers.answer import Answer, absent


@dataclass(frozen=True, slots=True)
class SimulatedResource:
    """A resource, or an instance of one, on one node."""

    resource: str
    role: str
    node: str | None = absent()
    """Absent: it runs nowhere, or `nodes` says where."""
    nodes: tuple[str, ...] | None = absent()
    """In the place of `node`, of a row that only informs."""
    flags: tuple[str, ...] | None = absent()
    """`failed`, `unmanaged`; in `status` also `target-role` and `left-out`."""


@dataclass(frozen=True, slots=True)
class SimulatedState:
    """The nodes, and what runs on them."""

    nodes: Mapping[str, str]
    """Each node's state in a word: `online`, `offline`, `unclean`, `standby`, `maintenance`, `leaving`."""
    resources: tuple[SimulatedResource, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedChange:
    """What an administrator would call one change: a node is fenced, or a resource moves."""

    action: str
    """`fence`, or what becomes of the resource: `start`, `stop`, `move`, `restart`, `recover`, `promote`, ..."""
    node: str | None = absent()
    """Which is fenced."""
    op: str | None = absent()
    """How it is fenced: `reboot`, `off`."""
    resource: str | None = absent()
    from_: str | None = absent()
    """The node that it leaves, or stays on; absent: it ran nowhere."""
    to: str | None = absent()
    """The node that it comes to, or stays on; absent: it will run nowhere."""
    from_role: str | None = absent()
    to_role: str | None = absent()
    reason: str | None = absent()
    impossible: bool | None = absent()
    """It should be done and cannot be."""
    blocked: bool | None = absent()
    """It is impossible because something else cannot be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAction:
    """One action of the transition graph."""

    id: int
    kind: str
    """`resource`, `fence`, `pseudo` (only puts others in order), `cluster` (done without an order to a node)."""
    task: str
    resource: str | None = absent()
    node: str | None = absent()
    interval: int | None = absent()
    """Of a recurring monitor, in ms."""
    notify: str | None = absent()
    """Of a notification: its occasion, as `pre-stop`."""
    timeout: int | None = absent()
    """In ms, of what an agent is called for."""
    params: Mapping[str, str] | None = absent()
    """Of what an agent is called for."""
    reason: str | None = absent()
    """Empty: there is none but the configuration."""
    after: tuple[int, ...]
    """The actions that must have ended first, by `id`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation(Answer):
    """What the cluster would do, and how it would be afterwards."""

    SCHEMA: ClassVar[str] = "haclusterd.simulate/1"
    format: str
    """`simulate/1`: the format in which schedulers are compared."""
    date: str
    """For which it is planned; ISO 8601, UTC."""
    before: SimulatedState
    after: SimulatedState
    status: SimulatedState
    """As `after`; of a CIB of Pacemaker, the resources as crm_simulate shows them."""
    summary: tuple[PlannedChange, ...]
    actions: tuple[PlannedAction, ...]
    warnings: tuple[str, ...]
    source: str | None = absent()
    """The file, as `crm simulate` was given it; empty: none was."""


@dataclass(frozen=True, slots=True)
class Simulations(Answer):
    """What clusters would do, by the CIBs of several files; each document has its own `reports`."""

    SCHEMA: ClassVar[str] = "haclusterd.simulations/1"
    HAS_REPORTS: ClassVar[bool] = False
    simulations: tuple[Simulation, ...]


@dataclass(frozen=True, slots=True)
class SizeOfCib:
    """How much is configured."""

    nodes: int
    resources: int
    constraints: int


@dataclass(frozen=True, slots=True)
class MigrationFinding:
    """What loading a part of a CIB says."""

    code: str
    place: str
    """`FILE:LINE:COLUMN`, as far as it is known."""
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class MissingAgent:
    """An agent that is not installed on this machine."""

    agent: str
    resources: tuple[str, ...]
    """Which need it."""


@dataclass(frozen=True, slots=True)
class PlacedOtherwise:
    """A resource that would run on another node, or in another role, than with Pacemaker."""

    resource: str
    here: str
    """Roles and nodes, in words."""
    pacemaker: str
    reason: str
    """What loading changed, or which documented decision differs."""


@dataclass(frozen=True, slots=True)
class FirstPlan:
    """What the cluster would do first with what the CIB says is running."""

    is_known: bool
    """Whether the CIB says what runs where."""
    problem: str
    """Why no plan can be made; empty: one can."""
    interrupted: tuple[str, ...] = ()
    """What would be stopped, moved or fenced, in words."""
    by_pacemaker_too: tuple[str, ...] = ()
    """Which of that Pacemaker would do at the same moment."""
    changes: tuple[PlannedChange, ...] = ()
    otherwise: tuple[str, ...] = ()
    """What would run somewhere else, or in another role, than with Pacemaker, in words."""
    differences: tuple[PlacedOtherwise, ...] = ()
    """The same, each with its reason."""


@dataclass(frozen=True, slots=True)
class MigrationCheck(Answer):
    """Whether the configuration of a Pacemaker cluster may come in as it is."""

    SCHEMA: ClassVar[str] = "haclusterd.migration_check/1"
    source: str
    """The file, or what was asked."""
    pacemaker: str
    """Its version; empty: not known."""
    cluster: str
    """Its name; empty: it has none."""
    size: SizeOfCib
    may_come_in: bool
    objections: tuple[str, ...]
    """Why not, each as a clause."""
    refused: tuple[MigrationFinding, ...]
    """What cannot be loaded."""
    changed: tuple[MigrationFinding, ...]
    """What loads and does not mean, or not do, what it does with Pacemaker."""
    missing_agents: tuple[MissingAgent, ...]
    is_judged: bool
    """Whether it could be judged as a whole; if not, it is not known whom the devices cover."""
    unfenced: tuple[MigrationFinding, ...]
    """What is wrong with the fencing."""
    plan: FirstPlan
    reservations: tuple[str, ...] = ()
    """What does not keep it out and is to be known before, each as a clause."""
    advice: tuple[MigrationFinding, ...] = ()
    """What means the same in Pacemaker, and is worth a look."""
    notes: tuple[MigrationFinding, ...] = ()
    """What is spelled otherwise, left out as bookkeeping, or kept for others."""
