"""What is really the case on the hosts, whatever any daemon believes: services that run, agents at work.

A service is a fact of a host's boot. It survives the daemon that started it and ends with the boot. An activating agent
that has begun and not ended counts as a possible holder, since nobody can tell from outside how far it has come.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.ports.agents import AgentCall
from haclusterd.simulator.world import World


@dataclass(frozen=True, slots=True)
class Holding:
    """One copy of a resource that is, or may be, active."""

    resource: ResourceId
    node: NodeName


class Witness(Protocol):
    """Somebody who looks on; every call comes at the moment itself."""

    def holders_changed(self, resource: ResourceId, holders: tuple[NodeName, ...]) -> None:
        """Other nodes than before hold, or may hold, a resource."""
        ...

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """An agent is being executed."""
        ...


PROMOTED_MARK = "^promoted"


def promoted(resource: ResourceId) -> ResourceId:
    """Name the promoted role of a resource, which is held like a service of its own."""
    return ResourceId(f"{resource}{PROMOTED_MARK}")


class Truth:
    """The facts of all hosts."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._services: set[Holding] = set()
        self._starting: Counter[Holding] = Counter()
        self._witnesses: list[Witness] = []
        self.when_service_ends: list[Callable[[Holding], None]] = []

    def show_to(self, witness: Witness) -> None:
        """Let somebody look on."""
        self._witnesses.append(witness)

    def is_active(self, node: NodeName, resource: ResourceId) -> bool:
        """Tell whether the service runs there."""
        return Holding(resource, node) in self._services

    def active_nodes(self, resource: ResourceId) -> tuple[NodeName, ...]:
        """Return where the service runs."""
        return tuple(sorted(holding.node for holding in self._services if holding.resource == resource))

    def holders(self, resource: ResourceId) -> tuple[NodeName, ...]:
        """Return where it runs or may be about to run."""
        held = {holding.node for holding in self._services if holding.resource == resource}
        held |= {holding.node for holding, count in self._starting.items() if holding.resource == resource and count}
        return tuple(sorted(held))

    def services_on(self, node: NodeName) -> tuple[ResourceId, ...]:
        """Return what runs on a node."""
        return tuple(sorted(holding.resource for holding in self._services if holding.node == node))

    def service_begins(self, node: NodeName, resource: ResourceId) -> None:
        """A service runs from now on."""
        holding = Holding(resource, node)
        if holding not in self._services:
            self._services.add(holding)
            self._world.record(f"{node} service {resource} runs")
            self._tell(resource)

    def service_ends(self, node: NodeName, resource: ResourceId) -> None:
        """A service runs no more."""
        holding = Holding(resource, node)
        if holding in self._services:
            self._services.remove(holding)
            self._world.record(f"{node} service {resource} ended")
            for call in self.when_service_ends:
                call(holding)
            self._tell(resource)

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """An agent is executed."""
        line = f"{node} agent {call.resource} {call.action} begins ({call.key})"
        (self._world.mark if call.action == "monitor" else self._world.record)(line)
        for witness in self._witnesses:
            witness.agent_begins(node, call)

    def start_begins(self, node: NodeName, resource: ResourceId) -> None:
        """An agent that may make a resource active is at work."""
        self._starting[Holding(resource, node)] += 1
        self._tell(resource)

    def start_ends(self, node: NodeName, resource: ResourceId) -> None:
        """That agent has ended."""
        self._starting[Holding(resource, node)] -= 1

    def host_dies(self, node: NodeName) -> None:
        """Everything on a host ends at once."""
        for holding in sorted(self._services, key=lambda holding: holding.resource):
            if holding.node == node:
                self._services.discard(holding)
                self._world.record(f"{node} service {holding.resource} died with its host")
        for holding in list(self._starting):
            if holding.node == node:
                del self._starting[holding]

    def _tell(self, resource: ResourceId) -> None:
        holders = self.holders(resource)
        for witness in self._witnesses:
            witness.holders_changed(resource, holders)
