"""Phase: a copy does not start before what ran as another instance of the same primitive has stopped (safety.md §1).

A primitive `db` has the copies `db:0`, `db:1` while its clone is unique, and `db` otherwise. When that changes, what
runs is stopped under its old name, as no longer configured, and starts under the new one: without an order both could
be active at once. So it is with a resource that somebody has renamed, or deleted and configured again under another
name: agent and parameters are the same. And so it is with one that is configured to run what another runs, and will
run no more since it is configured otherwise: two have exchanged their names, or an address has moved from one to the
other. What an open order may make active counts like what runs. `apply` refuses whatever should get past these orders.
Pacemaker has no such order; plans for its CIBs have none either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from haclusterd.model.activity import HOLDING
from haclusterd.model.cluster import NodeState
from haclusterd.model.history import ReloadInDoubt, ResourceHistory
from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.model.orders import Order
from haclusterd.model.renaming import Service, base_of, has_been_started, is_same_agent, opening
from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.flags import forbid, need
from haclusterd.scheduler.actions.ordering import Template
from haclusterd.scheduler.model.digests import digest_of
from haclusterd.scheduler.model.entities import (
    MONITOR,
    RELOAD_AGENT,
    START,
    STOP,
    Definition,
    Inventory,
    Resource,
    Variant,
)
from haclusterd.scheduler.model.operation_settings import resource_parameters
from haclusterd.scheduler.model.relation_flags import ORDERED, UNRUNNABLE_FIRST_BLOCKS
from haclusterd.scheduler.model.settings import Settings

MARK = "former_names_stopped_"


def restart_instead_of_reloading(inventory: Inventory, settings: Settings) -> None:
    """Let nothing be reloaded into what another resource runs, which is configured otherwise.

    It stops, and starts when the other one has stopped: two that exchange what they run would wait for each other.
    """
    names: _Names | None = None
    for leaf in inventory.primitives():
        if leaf.found.reload_on:
            names = names or _Names.of(inventory, settings)
            others = (other for other in (*names.leaves, *names.former) if other.base_id != leaf.base_id)
            if any(names.is_taken_over(other, leaf) for other in others):
                leaf.found.reload_on = []
                leaf.found.definition_changed = True


def former_name_templates(inventory: Inventory, table: ActionTable, settings: Settings) -> Iterator[Template]:
    """Yield how copies wait for what may run under a name that they no longer have."""
    names = _Names.of(inventory, settings)
    for leaf in names.leaves:
        successors = names.successors(leaf)
        if successors:
            yield from _apart(leaf, successors, table, is_known=not names.is_undecided(leaf))
    for removed in names.former:
        base = base_of(removed.id)
        successors = [leaf for leaf in names.leaves if leaf.base_id == base or names.is_taken_over(removed, leaf)]
        if successors:
            yield from _apart(removed, successors, table, is_known=True)


_Way = tuple[AgentReference, Order | ResourceHistory | ReloadInDoubt]
"""One way in which a resource may run, and what says so."""


@dataclass(slots=True)
class _Names:
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

    @staticmethod
    def of(inventory: Inventory, settings: Settings) -> _Names:
        """Collect them."""
        states = HOLDING if settings.is_fencing_enabled else (NodeState.ONLINE,)
        orders: dict[ResourceId, list[Order]] = {}
        for node in inventory.nodes:
            for order in opening(node.status.orders.values()) if node.status.state in states else ():
                orders.setdefault(base_of(order.resource), []).append(order)
        leaves = [leaf for top in inventory.tops if not top.found.is_removed for leaf in top.leaves()]
        former = [top for top in inventory.tops if _is_former(top)]
        return _Names(leaves, former, orders, settings, _inventory=inventory)

    def successors(self, leaf: Resource) -> list[Resource]:
        """Return what is to run what a configured resource runs, which is configured otherwise."""
        if not self._may_be_left(leaf) or not self._left_ways(leaf):
            return []
        return [other for other in self.leaves if other.base_id != leaf.base_id and self.is_taken_over(leaf, other)]

    def is_taken_over(self, leaf: Resource, other: Resource) -> bool:
        """Tell whether another resource is to run what this one runs, and is not configured to run; `apply` judges by
        the same marks."""
        if not leaf.found.is_removed and not self._may_be_left(leaf):
            return False
        found = [service for way in self._left_ways(leaf) for service in self._run_by(other, way)]
        return bool(found) and not any(has_been_started(self._histories(other.base_id), each) for each in found)

    def is_undecided(self, leaf: Resource) -> bool:
        """Tell whether no stop in this plan can end all that may run otherwise than configured.

        An order is open, of which nobody knows what it does before it ends; or nobody can be asked what runs.
        """
        asked = {probe.node.name for probe in leaf.actions.get((MONITOR, 0), ()) if probe.node and probe.is_runnable}
        is_ordered = any(isinstance(kept, Order) for _, kept in self._left_ways(leaf))
        return is_ordered or bool(leaf.found.unverified_on - asked)

    def _may_be_left(self, leaf: Resource) -> bool:
        """Tell whether a resource may run otherwise than configured; all that runs as configured is passed over.

        What runs on a node that does not answer was not compared yet, nor what has to be asked again.
        """
        found = leaf.found
        return (
            found.definition_changed
            or bool(found.reload_on)
            or bool(found.unverified_on)
            or leaf.base_id in self.orders
            or any(not node.is_online for node in found.active_nodes)
        )

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
            known = self._services[id(definition)] = definition, tuple(each for each in services if each.is_told_apart)
        return known[1]

    def _histories(self, base: ResourceId) -> Iterable[ResourceHistory]:
        return (history for leaf in self.leaves if leaf.base_id == base for history in leaf.found.histories.values())


def _is_former(top: Resource) -> bool:
    found = top.found
    return top.variant is Variant.PRIMITIVE and found.is_removed and bool(found.active_nodes or found.unverified_on)


def _apart(removed: Resource, successors: list[Resource], table: ActionTable, *, is_known: bool) -> Iterator[Template]:
    mark = table.make_mark(f"{MARK}{removed.id}")
    need(mark, f"{removed.id} has stopped")
    if not is_known:
        forbid(mark, mark)
    # A stop that may not run, such as of what is not managed, holds the start back for good.
    for task in (STOP, RELOAD_AGENT) if removed.found.reload_on else (STOP,):
        yield Template(removed, task, None, "", ORDERED | UNRUNNABLE_FIRST_BLOCKS, then_action=mark)
    for leaf in successors:
        yield Template(None, "", leaf, START, ORDERED | UNRUNNABLE_FIRST_BLOCKS, first_action=mark)
