"""What is really the case on the hosts, whatever any daemon believes: services that run, agents at work.

A service is a fact of a host's boot. It survives the daemon that started it and ends with the boot. An agent that
starts or promotes, and has begun and not ended, counts as a possible holder, since nobody can tell from outside how far
it has come.

A live migration makes no second copy. The one copy is on the source until an instant, the hand-over, and on the target
from then on. What has arrived on the target before the hand-over runs nothing, but a monitor there may take it for the
service; it stays behind when the migration ends in the middle.
"""

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from haclusterd.model.ids import AgentReference, NodeName, ResourceId
from haclusterd.model.records import dataclass
from haclusterd.ports.agents import AgentCall
from haclusterd.simulator.hosts.databases import Databases
from haclusterd.simulator.hosts.devices import DeviceTruth
from haclusterd.simulator.hosts.world import World


@dataclass(frozen=True, slots=True)
class Holding:
    """One copy of a resource that is, or may be, active."""

    resource: ResourceId
    node: NodeName


@dataclass(frozen=True, slots=True)
class Maker:
    """How something is started: only the same agent with the same pidfile finds it and can end it."""

    agent: AgentReference
    pidfile: str = ""


def maker(call: AgentCall) -> Maker:
    """Return what a call goes by."""
    return Maker(call.agent, call.parameters.get(PIDFILE, ""))


class Witness(Protocol):
    """Somebody who looks on; every call comes at the moment itself."""

    def holders_changed(self, begun: Holding, others: tuple[Holding, ...], *, has_moved: bool) -> None:
        """A node comes to hold, or may hold, a resource, in the same role as `others` do under this name or another.

        `has_moved`: by a live migration, so that there are as many copies as before. Where another copy is on the node
        under the same name, `begun` is one of `others`.
        """
        ...

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """An agent is being executed."""
        ...


PROMOTED_MARK = "^promoted"
PIDFILE = "pidfile"
"""The parameter by which simulated agents find what runs."""
CALLED = "service"
"""The parameter that says which service it is, whatever the resource is called: that of what people rename."""
UNIQUE = "number"
"""A primitive of which each instance is a service of its own: that of a unique clone with several instances."""


def promoted(resource: ResourceId) -> ResourceId:
    """Name the promoted role of a resource, which is held like a service of its own."""
    return ResourceId(f"{resource}{PROMOTED_MARK}")


def is_promoted(resource: ResourceId) -> bool:
    """Tell whether that is a promoted role."""
    return resource.endswith(PROMOTED_MARK)


def base_of(resource: ResourceId) -> ResourceId:
    """Return the primitive's name: `db` of `db`, `db:0`, and the promoted role of either."""
    return ResourceId(resource.removesuffix(PROMOTED_MARK).partition(":")[0])


def number_of(resource: ResourceId) -> int | None:
    """Return which instance of a unique clone it is; None: it is none."""
    number = resource.removesuffix(PROMOTED_MARK).partition(":")[2]
    return int(number) if number else None


def data_of(resource: ResourceId) -> ResourceId:
    """Return whose data an instance uses: each instance of a unique clone has its own."""
    return ResourceId(resource.removesuffix(PROMOTED_MARK))


class Truth:
    """The facts of all hosts."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.devices = DeviceTruth(world)
        self.databases = Databases()
        self._services: set[Holding] = set()
        self._starting: Counter[Holding] = Counter()
        self._makers: dict[Holding, Maker] = {}
        """How what runs was started: nothing else finds or ends it."""
        self._called: dict[Holding, str] = {}
        """Which service runs under that name, or did last, where its parameters say so."""
        self._witnesses: list[Witness] = []
        self._arriving: dict[Holding, bool] = {}
        """What a live migration has brought so far, and whether a monitor takes it for the service."""
        self._boots: Counter[NodeName] = Counter()
        self._powered: set[NodeName] = set()
        self.when_service_ends: list[Callable[[Holding], None]] = []
        self.when_host_dies: list[Callable[[NodeName, frozenset[ResourceId]], None]] = []
        """Called with what ran there, or may have, right before it ends."""

    def show_to(self, witness: Witness) -> None:
        """Let somebody look on."""
        self._witnesses.append(witness)

    def is_active(self, node: NodeName, resource: ResourceId) -> bool:
        """Tell whether the service runs there."""
        return Holding(resource, node) in self._services

    def active_nodes(self, resource: ResourceId) -> tuple[NodeName, ...]:
        """Return where the service runs."""
        return tuple(sorted(holding.node for holding in self._services if holding.resource == resource))

    def copies_of(self, primitive: ResourceId) -> tuple[NodeName, ...]:
        """Return where a service runs, under its own name or as an instance of a unique clone."""
        return _nodes_of(primitive, self._services)

    def holders(self, resource: ResourceId) -> tuple[NodeName, ...]:
        """Return where it runs or may be about to run."""
        held = {holding.node for holding in self._services if holding.resource == resource}
        held |= {holding.node for holding, count in self._starting.items() if holding.resource == resource and count}
        return tuple(sorted(held))

    def seems_active(self, node: NodeName, resource: ResourceId) -> bool:
        """Tell what a monitor sees there: the service, or something that looks like it."""
        holding = Holding(resource, node)
        return holding in self._services or self._arriving.get(holding, False)

    def is_known_to(self, asked: Maker, node: NodeName, resource: ResourceId) -> bool:
        """Tell whether an agent would find what runs there: not what was started in another way."""
        return self._makers.get(Holding(resource, node), asked) == asked

    def boot_of(self, node: NodeName) -> int | None:
        """Return the present boot of a host; None when it has no power."""
        return self._boots[node] if node in self._powered else None

    def starting_on(self, node: NodeName) -> frozenset[ResourceId]:
        """Return what agents that have not ended may have made active there."""
        held = [holding for holding, count in self._starting.items() if count]
        return frozenset(holding.resource for holding in held if holding.node == node)

    def may_run_on(self, node: NodeName) -> frozenset[ResourceId]:
        """Return what runs on a node, or may."""
        return frozenset(self.services_on(node)) | self.starting_on(node)

    def services_on(self, node: NodeName) -> tuple[ResourceId, ...]:
        """Return what runs on a node."""
        return tuple(sorted(holding.resource for holding in self._services if holding.node == node))

    def service_begins(self, node: NodeName, resource: ResourceId, made: Maker | None = None) -> None:
        """A service runs from now on, started in some way."""
        holding = Holding(resource, node)
        self._arriving.pop(holding, None)
        if is_promoted(resource):
            self.databases.takes_writes(node, data_of(resource))
        if holding not in self._services:
            if made is not None:
                self._makers[holding] = made
            is_new = not self._starting[holding]
            self._services.add(holding)
            self._world.record(f"{node} service {resource} runs")
            if is_new:
                self._tell(holding)

    def service_is_reloaded(self, node: NodeName, resource: ResourceId, made: Maker) -> None:
        """What runs goes by other parameters from now on: only by those it is found and ended."""
        holding = Holding(resource, node)
        if holding in self._services:
            self._makers[holding] = made
            self._world.record(f"{node} service {resource} goes by {made.pidfile or 'its first pidfile'} now")

    def service_ends(self, node: NodeName, resource: ResourceId) -> None:
        """A service runs no more, and what was promoted with it is not."""
        if not resource.endswith(PROMOTED_MARK):
            self.service_ends(node, promoted(resource))
        holding = Holding(resource, node)
        self._arriving.pop(holding, None)
        if holding in self._services:
            self._services.remove(holding)
            self._makers.pop(holding, None)
            self._world.record(f"{node} service {resource} ended")
            self.devices.service_ends(node, resource)
            for call in self.when_service_ends:
                call(holding)

    def arrival_begins(self, node: NodeName, resource: ResourceId, *, is_seen: bool) -> None:
        """A live migration to a node begins; `is_seen`: a monitor there takes what arrives for the service."""
        self._arriving[Holding(resource, node)] = is_seen

    def arrival_ends(self, node: NodeName, resource: ResourceId) -> None:
        """What had arrived is taken away."""
        self._arriving.pop(Holding(resource, node), None)

    def service_moves(self, source: NodeName, target: NodeName, resource: ResourceId) -> None:
        """The hand-over of a live migration: one copy, in another place from this instant."""
        left, come = Holding(resource, source), Holding(resource, target)
        is_second = come in self._services or self._starting[come] > 0
        self._services.remove(left)
        self._services.add(come)
        if left in self._makers:
            self._makers[Holding(resource, target)] = self._makers.pop(left)
        self._called[Holding(resource, target)] = self._called.get(left, "")
        self._arriving.pop(Holding(resource, target), None)
        self._world.record(f"{source} service {resource} moves to {target}")
        for call in self.when_service_ends:
            call(left)
        self._tell(come, has_moved=True, is_second=is_second)

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """An agent is executed."""
        line = f"{node} agent {call.resource} {call.action} begins ({call.key})"
        (self._world.mark if call.action == "monitor" else self._world.record)(line)
        for witness in self._witnesses:
            witness.agent_begins(node, call)

    def start_begins(self, node: NodeName, resource: ResourceId, called: str = "") -> None:
        """An agent that may make a resource active is at work; `called`: which service that is."""
        holding = Holding(resource, node)
        is_new = holding not in self._services and not self._starting[holding]
        self._called[holding] = called
        self._starting[holding] += 1
        if is_new:
            self._tell(holding)

    def start_ends(self, node: NodeName, resource: ResourceId) -> None:
        """That agent has ended."""
        self._starting[Holding(resource, node)] -= 1

    def host_boots(self, node: NodeName) -> None:
        """A host gets power: nothing runs on it yet."""
        self._boots[node] += 1
        self._powered.add(node)

    def host_dies(self, node: NodeName) -> None:
        """Everything on a host ends at once."""
        held = self.may_run_on(node)
        for call in self.when_host_dies:
            call(node, held)
        self._powered.discard(node)
        self.devices.host_dies(node)
        for holding in sorted(self._services, key=lambda holding: holding.resource):
            if holding.node == node:
                self._services.discard(holding)
                self._makers.pop(holding, None)
                self._world.record(f"{node} service {holding.resource} died with its host")
        for holding in list(self._starting):
            if holding.node == node:
                del self._starting[holding]
        for holding in list(self._arriving):
            if holding.node == node:
                del self._arriving[holding]

    def _tell(self, begun: Holding, *, has_moved: bool = False, is_second: bool = False) -> None:
        """Show what begins; `is_second`: where another copy of the same name is already."""
        held = self._services | {holding for holding, count in self._starting.items() if count}
        called = self._called.get(begun)
        others = [begun] if is_second else []
        others += [each for each in held if each != begun and self._is_one_service(each, begun, called)]
        shown = tuple(sorted(others, key=lambda each: (each.node, each.resource)))
        for witness in self._witnesses:
            witness.holders_changed(begun, shown, has_moved=has_moved)

    def _is_one_service(self, one: Holding, other: Holding, called: str | None) -> bool:
        """Tell whether two holdings in the same role are of one primitive, or what is `called` by another name."""
        if is_promoted(one.resource) != is_promoted(other.resource):
            return False
        return base_of(one.resource) == base_of(other.resource) or bool(called and self._called.get(one) == called)


def _nodes_of(base: str, holdings: set[Holding]) -> tuple[NodeName, ...]:
    """Return the nodes of a primitive's copies, whatever their numbers: one node twice, if it has two."""
    found = [each for each in holdings if base_of(each.resource) == base and not is_promoted(each.resource)]
    return tuple(sorted(each.node for each in found))
