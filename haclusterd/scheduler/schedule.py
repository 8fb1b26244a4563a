"""The scheduler: from the CIB to what must be done, in which order, and why.

One pure function; its body is the list of its phases, each a room of its own with one concern of Pacemaker's. It never
raises on any CIB: what makes no sense is ignored with a warning. The only exception it can end with is that of its own
last phase, which refuses an unsafe graph.
"""

from itertools import chain

from haclusterd.model.cluster import Cib
from haclusterd.model.graph import Plan
from haclusterd.model.instants import WallTime
from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.cleanup import (
    create_clearings,
    create_demanded_actions,
    create_lock_deletions,
    create_running_monitors,
    relate_demanded_actions,
)
from haclusterd.scheduler.actions.collective_flags import refresh_clones
from haclusterd.scheduler.actions.fencing import create_fencing, fencing_warnings, impossible_fencing, unseen_hold
from haclusterd.scheduler.actions.notifications import create_notifications
from haclusterd.scheduler.actions.ordering import apart_templates
from haclusterd.scheduler.actions.probes import create_probes
from haclusterd.scheduler.actions.recurring import order_cancellations
from haclusterd.scheduler.actions.remote_actions import remote_templates, set_routers
from haclusterd.scheduler.actions.resource_actions import create_resource_actions
from haclusterd.scheduler.actions.unfencing import create_unfencing, unfencing_templates
from haclusterd.scheduler.assign.assign import assign_all
from haclusterd.scheduler.graph.explain import place_all
from haclusterd.scheduler.graph.found_rows import FoundRow, found_rows
from haclusterd.scheduler.graph.graph import build_graph
from haclusterd.scheduler.graph.invariants import check_graph
from haclusterd.scheduler.graph.listing import listing_of
from haclusterd.scheduler.graph.selection import select_actions
from haclusterd.scheduler.graph.summary import changes_of
from haclusterd.scheduler.model.digests import ActionDigests
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.options import DEFAULT_OPTIONS, ScheduleOptions
from haclusterd.scheduler.model.plan_cache import PlanCache
from haclusterd.scheduler.model.settings import Settings, unpack_settings
from haclusterd.scheduler.order.former_names import former_name_templates
from haclusterd.scheduler.order.internal_ordering import internal_templates
from haclusterd.scheduler.order.migration_ordering import with_migrations
from haclusterd.scheduler.order.order_expansion import relate_templates
from haclusterd.scheduler.order.ordering_sets import user_templates
from haclusterd.scheduler.order.probe_ordering import order_others_after_probes, order_own_after_probes
from haclusterd.scheduler.order.propagate import Propagation
from haclusterd.scheduler.scores.colocation import unpack_colocations
from haclusterd.scheduler.scores.location import Preference
from haclusterd.scheduler.scores.location_constraints import unpack_locations
from haclusterd.scheduler.scores.own_scores import apply_own_scores
from haclusterd.scheduler.unpack.configuration_changes import find_configuration_changes, find_late_changes
from haclusterd.scheduler.unpack.failures import Failures, forget_removed
from haclusterd.scheduler.unpack.foreign_digests import with_foreign_digests
from haclusterd.scheduler.unpack.names_in_use import restart_instead_of_reloading
from haclusterd.scheduler.unpack.nodes import unpack_nodes
from haclusterd.scheduler.unpack.resources import unpack_resources
from haclusterd.scheduler.unpack.unfencing_in_vain import unfenced_in_vain
from haclusterd.scheduler.unpack.unpack_history import unpack_history


def schedule(
    cib: Cib, now: WallTime, *, options: ScheduleOptions = DEFAULT_OPTIONS, cache: PlanCache | None = None
) -> Plan:
    """Decide where every resource belongs and make the transition graph that leads there.

    `now` only decides which failures have expired and which rules are true. Equal arguments give equal plans, on every
    node; a `cache` that is handed from plan to plan makes them cheaper and changes none.
    """
    kept = cache.plan_for(cib, now, options) if cache is not None else None
    if kept is not None:
        return kept
    settings = unpack_settings(cib.configuration, now, options, cache)
    plan = _planned(cib, settings)
    settings.cache.keep(cib, options, plan, settings.looks, settings.time)
    return plan


def _planned(cib: Cib, settings: Settings) -> Plan:
    """Go through the phases."""
    options = settings.options

    # what is configured, what is known
    nodes = unpack_nodes(cib, settings)
    inventory = unpack_resources(cib, nodes, settings)
    digests = ActionDigests(settings)
    failures = Failures(settings, digests)
    unpack_history(cib, inventory, failures, settings)

    # where everything belongs
    in_vain = unfenced_in_vain(cib, inventory.nodes, settings)
    scores = apply_own_scores(cib, inventory, failures, in_vain, settings)
    changes = find_configuration_changes(inventory, failures, digests, settings)
    if not options.is_pacemaker_compatible:
        restart_instead_of_reloading(inventory, settings)
    assign_all(inventory, settings)
    find_late_changes(inventory, changes, failures, digests, settings)

    # what may have to be done
    table = ActionTable(settings, unseen_hold(inventory))
    create_demanded_actions(inventory, changes, table)
    if options.is_pacemaker_compatible:
        create_running_monitors(inventory, table)
        forget_removed(inventory, failures, settings)
        create_clearings(failures.clearings, table)
    create_lock_deletions((*inventory.expired_locks, *scores.void_locks), table)
    probes = create_probes(inventory, table, settings)
    create_resource_actions(inventory, table, settings)
    create_unfencing(inventory, changes.unfencings, in_vain, table, settings)
    on_remote_nodes = remote_templates(table)
    create_fencing(inventory, table, settings)

    # in which order, and what that makes necessary or impossible
    users = user_templates(inventory, cib.configuration, table, settings.time)
    configured_templates = chain(users, apart_templates(scores.colocations))
    templates = list(with_migrations(chain(configured_templates, internal_templates(inventory, table, settings))))
    templates += [*probes.templates, *unfencing_templates(inventory, table, settings)]
    templates += with_migrations(on_remote_nodes)
    if not options.is_pacemaker_compatible:
        templates += former_name_templates(inventory, table, settings)
    relate_templates(templates, table)
    relate_demanded_actions(inventory, failures.clearings, table)
    order_cancellations(changes.cancellations, table)
    order_own_after_probes(probes, table)
    order_others_after_probes(probes, templates, table, settings)
    propagation = Propagation(table)
    propagation.run()
    propagation.hold_together(top for top in inventory.tops if top.definition.is_gang)
    refresh_clones(inventory.tops)
    create_notifications(inventory, table, options)
    set_routers(table)

    # the graph
    selected = select_actions(table, cib.status.fence_orders, options, in_vain.keys())
    graph = build_graph(selected, digests, settings)
    check_graph(graph, cib, settings)
    return Plan(
        graph=graph,
        placements=place_all(inventory),
        changes=changes_of(inventory),
        warnings=(*inventory.warnings, *table.warnings, *fencing_warnings(inventory, settings), *selected.warnings),
        recheck_at=settings.time.recheck_at,
        expired_failures=tuple(sorted(failures.forgotten)),
        impossible_fencing=impossible_fencing(table),
        held_back=selected.held_back,
        listing=listing_of(inventory, selected),
    )


def find_rows(cib: Cib, now: WallTime, options: ScheduleOptions, cache: PlanCache | None = None) -> list[FoundRow]:
    """Return what runs where, as Pacemaker's tools print it; nothing is decided."""
    return found_rows(find_state(cib, now, options, cache))


def find_state(cib: Cib, now: WallTime, options: ScheduleOptions, cache: PlanCache | None = None) -> Inventory:
    """Return the nodes and resources with what is known of them, for those who show it; nothing is decided."""
    settings = unpack_settings(cib.configuration, now, options, cache)
    inventory = unpack_resources(cib, unpack_nodes(cib, settings), settings)
    unpack_history(cib, inventory, Failures(settings, ActionDigests(settings)), settings)
    return inventory


def with_pacemakers_digests(cib: Cib, hidden: Cib, now: WallTime, options: ScheduleOptions) -> Cib:
    """Return the CIB with digests in its histories that Pacemaker expects beside `hidden`, where secrets are hidden."""
    inventory, digests = _found(cib, now, options)
    is_same = hidden.configuration == cib.configuration
    others = (inventory, digests) if is_same else _found(hidden, now, options)
    return with_foreign_digests(cib, inventory, digests, *others)


def _found(cib: Cib, now: WallTime, options: ScheduleOptions) -> tuple[Inventory, ActionDigests]:
    settings = unpack_settings(cib.configuration, now, options)
    inventory, digests = unpack_resources(cib, unpack_nodes(cib, settings), settings), ActionDigests(settings)
    unpack_history(cib, inventory, Failures(settings, digests), settings)
    return inventory, digests


def find_constraints(cib: Cib, now: WallTime, options: ScheduleOptions) -> tuple[Inventory, list[Preference]]:
    """Return the resources with their colocations, and what location constraints say of them; nothing is decided."""
    settings = unpack_settings(cib.configuration, now, options)
    inventory = unpack_resources(cib, unpack_nodes(cib, settings), settings)
    unpack_colocations(inventory, cib.configuration, settings.time)
    return inventory, list(unpack_locations(inventory, cib.configuration, settings))
