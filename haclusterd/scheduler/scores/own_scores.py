"""Phase: what resources think of nodes by themselves, before any of them has a place.

Here the phases stand in Pacemaker's order: tickets and locks, then constraints and health (the newest first), then
stickiness, then what forbids nodes whatever was said.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from haclusterd.model.cluster import Cib
from haclusterd.scheduler.model.entities import ColocationPair, Inventory, Node, Resource
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.scores.colocation import unpack_colocations
from haclusterd.scheduler.scores.failure_bans import ban_after_failures
from haclusterd.scheduler.scores.location import (
    apply_exclusive_discovery,
    apply_locations,
    apply_stickiness,
    ban_by_kind,
    unpack_health,
)
from haclusterd.scheduler.scores.location_constraints import unpack_locations
from haclusterd.scheduler.scores.shutdown_locks import apply_shutdown_locks
from haclusterd.scheduler.scores.tickets import apply_tickets
from haclusterd.scheduler.unpack.failures import Failures


@dataclass(frozen=True, slots=True)
class ScoresFound:
    """What was found on the way."""

    colocations: list[ColocationPair]
    void_locks: list[tuple[Resource, Node]]
    """Shutdown locks that no longer hold: the resource's record on that node is to be deleted."""


def apply_own_scores(cib: Cib, inventory: Inventory, failures: Failures, settings: Settings) -> ScoresFound:
    """Give every resource its own scores for nodes, and hang the colocations on the resources."""
    configuration = cib.configuration
    begin_scores(inventory.tops)
    compatible = settings.options.is_pacemaker_compatible
    colocations = unpack_colocations(inventory, configuration, binds_to_itself=compatible)
    locks = apply_shutdown_locks(inventory, settings)
    apply_tickets(inventory, configuration, cib.status.tickets, settings)
    health = unpack_health(inventory, settings.properties)
    apply_locations([*health, *unpack_locations(inventory, configuration, settings), *locks.preferences])
    apply_stickiness(inventory, settings)
    ban_after_failures(inventory, failures)
    apply_exclusive_discovery(inventory)
    ban_by_kind(inventory)
    return ScoresFound(colocations, locks.void)


def begin_scores(resources: Iterable[Resource]) -> None:
    """Begin with what the nodes are worth, and what was found says against them or for them."""
    for resource in resources:
        base, scores = resource.base_scores, resource.scores
        scores.begin(base)
        scores.discovery = dict(base.discovery)
        for name, value, source in resource.found.scores:
            if name is None:
                scores.ban_everywhere(source)
            else:
                scores.add(name, value, source)
        begin_scores(resource.children)
