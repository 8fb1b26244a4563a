"""Phase: a copy does not start before what ran as another instance of the same primitive has stopped (safety.md §1).

A primitive `db` has the copies `db:0`, `db:1` while its clone is unique, and `db` otherwise. When that changes, what
runs is stopped under its old name, as no longer configured, and starts under the new one: without an order both could
be active at once. So it is with a resource that somebody has renamed, or deleted and configured again under another
name: agent and parameters are the same. And so it is with one that is configured to run what another runs, and will
run no more since it is configured otherwise: two have exchanged their names, or an address has moved from one to the
other. Pacemaker has no such order; plans for its CIBs have none either.
"""

from collections.abc import Iterator

from haclusterd.model.history import ResourceHistory
from haclusterd.model.ids import UNITS
from haclusterd.model.renaming import has_run_beside, is_run_by
from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.flags import need
from haclusterd.scheduler.actions.ordering import Template
from haclusterd.scheduler.model.digests import digest_of
from haclusterd.scheduler.model.entities import RELOAD_AGENT, START, STOP, Inventory, Resource, Variant
from haclusterd.scheduler.model.relation_flags import ORDERED, UNRUNNABLE_FIRST_BLOCKS
from haclusterd.scheduler.unpack.failures import bare_name

MARK = "former_names_stopped_"


def former_name_templates(inventory: Inventory, table: ActionTable) -> Iterator[Template]:
    """Yield how copies wait for what may run under a name that they no longer have."""
    leaves = [leaf for top in inventory.tops if not top.found.is_removed for leaf in top.leaves()]
    for leaf in leaves:
        if _may_be_left(leaf):
            successors = [other for other in leaves if other.base_id != leaf.base_id and _takes_over(leaf, other)]
            if successors:
                yield from _apart(leaf, successors, table)
    former = [top for top in inventory.tops if _is_former(top)]
    for removed in former:
        base = bare_name(removed.id)
        successors = [leaf for leaf in leaves if leaf.base_id == base or _is_renamed(removed, leaf)]
        if successors:
            yield from _apart(removed, successors, table)


def _is_renamed(removed: Resource, leaf: Resource) -> bool:
    """Tell whether a resource is to run what a removed one runs; `apply` judges by the same marks."""
    return any(_is_run(history, leaf) for history in removed.found.histories.values())


def _may_be_left(leaf: Resource) -> bool:
    """Tell whether a resource may run in another way than it is configured; all that runs as configured is passed over.

    What runs on a node that does not answer was not compared yet.
    """
    found = leaf.found
    return found.definition_changed or bool(found.reload_on) or any(node.is_unclean for node in found.active_nodes)


def _takes_over(leaf: Resource, other: Resource) -> bool:
    """Tell whether another resource is to run what this one runs, which is configured to run in another way."""
    definition = leaf.definition
    now = digest_of(definition.parameters)
    return any(
        not is_run_by(history, definition.agent, now) and _is_run(history, other)
        for history in leaf.found.histories.values()
    )


def _is_run(history: ResourceHistory, leaf: Resource) -> bool:
    definition = leaf.definition
    if not definition.parameters and (definition.agent is None or definition.agent.standard not in UNITS):
        return False
    own, now = tuple(leaf.found.histories.values()), digest_of(definition.parameters)
    return is_run_by(history, definition.agent, now) and not has_run_beside(own, history)


def _is_former(top: Resource) -> bool:
    found = top.found
    return top.variant is Variant.PRIMITIVE and found.is_removed and bool(found.active_nodes)


def _apart(removed: Resource, successors: list[Resource], table: ActionTable) -> Iterator[Template]:
    mark = table.make_mark(f"{MARK}{removed.id}")
    need(mark, f"{removed.id} has stopped")
    # A stop that may not run, such as of what is not managed, holds the start back for good.
    for task in (STOP, RELOAD_AGENT) if removed.found.reload_on else (STOP,):
        yield Template(removed, task, None, "", ORDERED | UNRUNNABLE_FIRST_BLOCKS, then_action=mark)
    for leaf in successors:
        yield Template(None, "", leaf, START, ORDERED | UNRUNNABLE_FIRST_BLOCKS, first_action=mark)
