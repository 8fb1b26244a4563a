"""What a checker is: one rule of safety.md, judged by the facts of the hosts and by the log.

It never asks what the code under test believes of itself. A checker only looks; what it finds ends the run as a
`ViolationError`.
"""

from typing import Protocol

from haclusterd.cib.changes import Applied
from haclusterd.cib.commands import Command
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import Incarnation, NodeName, OrderKey, ResourceId
from haclusterd.model.instants import Instant
from haclusterd.model.orders import Order
from haclusterd.model.records import dataclass, field
from haclusterd.ports.agents import AgentCall
from haclusterd.simulator.checks.shapes import Shapes
from haclusterd.simulator.hosts.alert_agents import DeliveredAlert
from haclusterd.simulator.hosts.truth import Holding
from haclusterd.simulator.hosts.world import World


class ViolationError(Exception):
    """A rule was broken; `rule` is the checker's name."""

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(f"{rule}: {text}")
        self.rule = rule


class Scene(Protocol):
    """What checkers may ask of the simulated cluster."""

    world: World

    def incarnation_at(self, node: NodeName) -> Incarnation | None:
        """Return the incarnation of the daemon that runs there now."""
        ...

    def applied_at(self, node: NodeName) -> Cib | None:
        """Return the newest CIB that the main loop of the daemon there was shown."""
        ...

    def lease_left_ms(self, node: NodeName) -> int:
        """Return how long the lease there is still valid, by the page; negative when it is over."""
        ...

    def is_well(self, node: NodeName) -> bool:
        """Tell whether there is no reason to declare a node lost: it is well, and heard."""
        ...

    def is_at_work(self, node: NodeName) -> bool:
        """Tell whether the daemon there runs undisturbed."""
        ...

    def services_on(self, node: NodeName) -> tuple[ResourceId, ...]:
        """Return what really runs there."""
        ...

    def is_hidden_from(self, node: NodeName, call: AgentCall) -> bool:
        """Tell whether what really runs there was started by another agent, or so that this call does not find it."""
        ...

    def agents_at_work(self, node: NodeName, resource: ResourceId) -> tuple[AgentCall, ...]:
        """Return the agents that work on a resource there now."""
        ...

    def stood_us(self, node: NodeName, since_us: int) -> int:
        """Return for how long the clocks there stood still in pauses that ended after an instant."""
        ...

    def boot_runs(self, node: NodeName, boot_id: str) -> bool:
        """Tell whether that boot of that host has not ended."""
        ...


@dataclass(slots=True)
class Log:
    """The replicated log as seen from outside: what any replica applied first."""

    newest: Cib = field(default_factory=Cib)
    """The CIB with the highest index that was applied anywhere."""
    cibs: dict[int, Cib] = field(default_factory=dict)
    """What the first replica to apply an index made of it."""
    orders: dict[OrderKey, Order] = field(default_factory=dict)
    """Every order that was ever accepted."""
    lost_at_us: dict[tuple[NodeName, Incarnation], int] = field(default_factory=dict)
    fenced: set[tuple[NodeName, Incarnation | None]] = field(default_factory=set)
    shapes: Shapes = field(default_factory=Shapes)
    """How many copies were wanted of everything, and when."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A command that had its effect."""

    command: Command
    proposer: NodeName
    before: Cib
    after: Cib


class Checker:
    """One rule; the methods are called at the moment itself."""

    def __init__(self, scene: Scene, log: Log) -> None:
        self.scene = scene
        self.log = log

    def object_to(self, text: str) -> None:
        """End the run."""
        raise ViolationError(type(self).__name__, text)

    def holders_changed(self, begun: Holding, others: tuple[Holding, ...], *, has_moved: bool) -> None:
        """A node comes to hold, or may hold, a resource: see `Witness`."""

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """An agent is being executed."""

    def first_accepted(self, accepted: Accepted) -> None:
        """A command had its effect for the first time anywhere; `log` does not know it yet."""

    def first_applied(self, applied: Applied) -> None:
        """An entry was applied for the first time anywhere, whatever came of it."""

    def proposed(self, node: NodeName, command: Command) -> None:
        """A daemon asks its store for a command, for the first time."""

    def orders_received(self, node: NodeName, orders: tuple[Order, ...]) -> None:
        """A main loop was shown orders."""

    def looked_at(self, node: NodeName) -> None:
        """A moment at which a node is looked at, ten times in a second."""

    def applied(self, node: NodeName, cib: Cib) -> None:
        """A replica applied an entry, or was restored to one."""

    def lease_published(self, node: NodeName, incarnation: Incarnation, until: Instant, until_us: int) -> None:
        """A pacer published a lease that ends at `until_us` of virtual time."""

    def alert_begins(self, delivered: DeliveredAlert) -> None:
        """An agent of an alert is being executed."""

    def another_log_begins(self) -> None:
        """People make another cluster of what is left: what only the log of the one before said is over."""


def order_key(call: AgentCall, log: Log) -> OrderKey | None:
    """Return whose order a call executes; a recurring monitor's runs are numbered after a dot."""
    for key in (call.key, call.key.rpartition(".")[0]):
        if OrderKey(key) in log.orders:
            return OrderKey(key)
    return None
