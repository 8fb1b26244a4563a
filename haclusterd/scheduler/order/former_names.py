"""Phase: a copy does not start before what ran as another instance of the same primitive has stopped (safety.md §1).

A primitive `db` has the copies `db:0`, `db:1` while its clone is unique, and `db` otherwise. When that changes, what
runs is stopped under its old name, as no longer configured, and starts under the new one: without an order both could
be active at once. So it is with a resource that somebody has renamed, or deleted and configured again under another
name: agent and parameters are the same. And so it is with one that is configured to run what another runs, and will
run no more since it is configured otherwise: two have exchanged their names, or an address has moved from one to the
other. What an open order may make active counts like what runs. `apply` refuses whatever should get past these orders.
Pacemaker has no such order; plans for its CIBs have none either.
"""

from collections.abc import Iterator

from haclusterd.model.ids import base_of
from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.flags import forbid, need
from haclusterd.scheduler.actions.ordering import OrderingTemplate
from haclusterd.scheduler.model.entities import Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.relation_flags import ORDERED, UNRUNNABLE_FIRST_BLOCKS
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.model.tasks import RELOAD_AGENT, START, STOP
from haclusterd.scheduler.unpack.names_in_use import Names

MARK = "former_names_stopped_"


def former_name_templates(inventory: Inventory, table: ActionTable, settings: Settings) -> Iterator[OrderingTemplate]:
    """Yield how copies wait for what may run under a name that they no longer have."""
    names = Names.of(inventory, settings)
    for leaf in names.leaves:
        successors = names.successors(leaf)
        if successors:
            yield from _apart(leaf, successors, table, is_known=not names.is_undecided(leaf))
    for removed in names.former:
        base = base_of(removed.id)
        successors = [leaf for leaf in names.leaves if leaf.base_id == base] + names.successors(removed)
        if successors:
            yield from _apart(removed, successors, table, is_known=True)


def _apart(
    removed: Resource, successors: list[Resource], table: ActionTable, *, is_known: bool
) -> Iterator[OrderingTemplate]:
    mark = table.make_mark(f"{MARK}{removed.id}")
    need(mark, f"{removed.id} has stopped")
    if not is_known:
        forbid(mark, mark)
    # A stop that may not run, such as of what is not managed, holds the start back for good.
    for task in (STOP, RELOAD_AGENT) if removed.found.reload_on else (STOP,):
        yield OrderingTemplate(removed, task, None, "", ORDERED | UNRUNNABLE_FIRST_BLOCKS, then_action=mark)
    for leaf in successors:
        yield OrderingTemplate(None, "", leaf, START, ORDERED | UNRUNNABLE_FIRST_BLOCKS, first_action=mark)
