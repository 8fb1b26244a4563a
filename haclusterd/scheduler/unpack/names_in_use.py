"""Phase: which names are to run what may run under other names, which are configured to run something else.

What an open order may make active counts like what runs. `apply` judges by the same marks (`model.renaming`), and
refuses what should get past the plan. Which waits for which is settled later (`order.former_names`). Pacemaker knows
nothing of this, and plans for its CIBs do not either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from haclusterd.model.activity import HOLDING
from haclusterd.model.cluster import NodeState
from haclusterd.model.history import ReloadInDoubt, ResourceHistory
from haclusterd.model.ids import AgentReference, ResourceId, base_of
from haclusterd.model.orders import Order
from haclusterd.model.records import dataclass, field
from haclusterd.model.renaming import Service, has_been_started, is_same_agent, opening
from haclusterd.scheduler.model.definition import Definition, Variant
from haclusterd.scheduler.model.digests import digest_of
from haclusterd.scheduler.model.entities import Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.operation_settings import resource_parameters
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.model.tasks import MONITOR


def restart_instead_of_reloading(inventory: Inventory, settings: Settings) -> None:
    """Let nothing be reloaded into what another resource runs, which is configured otherwise.

    It stops, and starts when the other one has stopped: two that exchange what they run would wait for each other.
    """
    reloaded = [leaf for leaf in inventory.primitives() if leaf.found.reload_on]
    if not reloaded:
        return
    names = Names.of(inventory, settings)
    taken_over = {id(each) for other in (*names.leaves, *names.former) for each in names.successors(other)}
    for leaf in reloaded:
        if id(leaf) in taken_over:
            leaf.found.reload_on = []
            leaf.found.definition_changed = True


_Way = tuple[AgentReference, Order | ResourceHistory | ReloadInDoubt]
"""One way in which a resource may run, and what says so."""


@dataclass(slots=True)
class Names:
    """Which resources there are, and how they run or may be about to."""

    leaves: list[Resource]
    """What is configured."""
    former: list[Resource]
    """What is configured no more, and may run."""
    orders: Mapping[ResourceId, list[Order]]
    """Open orders that may make something run as it did not before, by the primitive's name."""
    settings: Settings
    _services: dict[int, tuple[Definition, tuple[Service, ...]]] = field(default_factory=dict)
    _inventory: Inventory | None = None
    _by_definition: dict[str, list[Resource]] | None = None

    @staticmethod
    def of(inventory: Inventory, settings: Settings) -> Names:
        """Collect them."""
        states = HOLDING if settings.is_fencing_enabled else (NodeState.ONLINE,)
        orders: dict[ResourceId, list[Order]] = {}
        for node in inventory.nodes:
            for order in opening(node.status.orders.values()) if node.status.state in states else ():
                orders.setdefault(base_of(order.resource), []).append(order)
        leaves = [leaf for top in inventory.tops if not top.found.is_removed for leaf in top.leaves()]
        former = [top for top in inventory.tops if _is_former(top)]
        return Names(leaves, former, orders, settings, _inventory=inventory)

    def successors(self, leaf: Resource) -> list[Resource]:
        """Return what is to run what a resource runs, or may, and is not configured to run; `apply` judges by the same
        marks."""
        if not (leaf.found.is_removed or self._may_be_left(leaf)):
            return []
        ways = self._left_ways(leaf)
        if not ways:
            return []
        known = self._known()
        found: dict[int, Resource] = {}
        for way in ways:
            definition = way[1].definition
            for other in known.get(definition, ()) if definition else self.leaves:
                if other.base_id != leaf.base_id and self._is_taken_over(way, other):
                    found[id(other)] = other
        return list(found.values())

    def _is_taken_over(self, way: _Way, other: Resource) -> bool:
        """Tell whether a resource is to run what runs in some way, and does not run it already, as another service."""
        found = self._run_by(other, way)
        return bool(found) and not any(has_been_started(self._histories(other.base_id), each) for each in found)

    def _known(self) -> Mapping[str, list[Resource]]:
        """Return what is configured by the digests of its parameters: few plans need it."""
        if self._by_definition is None:
            self._by_definition = {}
            for leaf in self.leaves:
                if leaf.definition.agent is not None:
                    for service in self._configured(leaf):
                        self._by_definition.setdefault(service.definition, []).append(leaf)
        return self._by_definition

    def is_undecided(self, leaf: Resource) -> bool:
        """Tell whether no stop in this plan can end all that may run otherwise than configured.

        An order is open, of which nobody knows what it does before it ends; or nobody can be asked what runs.
        """
        asked = {probe.node.name for probe in leaf.actions.get((MONITOR, 0), ()) if probe.node and probe.is_runnable}
        is_ordered = any(isinstance(kept, Order) for _, kept in self._left_ways(leaf))
        return is_ordered or bool(leaf.found.unverified_on - asked)

    def _may_be_left(self, leaf: Resource) -> bool:
        """Tell whether a resource may run otherwise than configured; all that runs as configured is passed over.

        What runs on a node that does not answer was not compared yet, nor what has failed or has to be asked again.
        """
        found = leaf.found
        return (
            found.definition_changed
            or bool(found.reload_on)
            or bool(found.unverified_on)
            or leaf.base_id in self.orders
            or any(not node.is_online for node in found.active_nodes)
            or self._is_started_otherwise(leaf)
        )

    def _is_started_otherwise(self, leaf: Resource) -> bool:
        """Tell whether a history names other parameters, also where a failure says nothing of what has changed."""
        if leaf.definition.parameter_sets:
            return True
        histories = leaf.found.histories.values()
        now = self.settings.cache.digests.get((leaf.id, "", 0)) if histories else None
        now = now or (digest_of(leaf.definition.parameters) if histories else "")
        return any(history.definition != now or history.agent != leaf.definition.agent for history in histories)

    def _left_ways(self, leaf: Resource) -> list[_Way]:
        """Return the ways in which a resource may run, and is not configured to."""
        ways: list[_Way] = [(order.agent, order) for order in self.orders.get(leaf.base_id, ())]
        for history in leaf.found.histories.values():
            ways.append((history.agent, history))
            ways += [(history.agent, reload) for reload in history.reloads]
        return ways if leaf.found.is_removed else [way for way in ways if not any(self._run_by(leaf, way))]

    def _run_by(self, leaf: Resource, way: _Way) -> list[Service]:
        """Return which services a resource is configured to run are run in one way."""
        agent, kept = way
        if leaf.definition.agent is None or not is_same_agent(leaf.definition.agent, agent):
            return []
        return [service for service in self._configured(leaf) if service.is_run_by(agent, kept)]

    def _configured(self, leaf: Resource) -> tuple[Service, ...]:
        """Return what a resource is configured to run: on each node the same, but for rules."""
        definition = leaf.definition
        known = self._services.get(id(definition))
        if known is None:
            nodes = self._inventory.nodes if self._inventory is not None and definition.parameter_sets else [None]
            found = [resource_parameters(leaf, node, self.settings) for node in nodes]
            assert definition.agent is not None
            services = (Service(definition.agent, each, digest_of(each)) for each in found)
            distinct = tuple(each for each in services if each.is_recognisable)
            known = self._services[id(definition)] = definition, distinct
        return known[1]

    def _histories(self, base: ResourceId) -> Iterable[ResourceHistory]:
        return (history for leaf in self.leaves if leaf.base_id == base for history in leaf.found.histories.values())


def _is_former(top: Resource) -> bool:
    found = top.found
    return top.variant is Variant.PRIMITIVE and found.is_removed and bool(found.active_nodes or found.unverified_on)
