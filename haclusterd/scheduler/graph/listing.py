"""Phase: the order in which Pacemaker lists the actions of a transition graph, and so executes what waits for nothing.

Resource by resource, of each what was made last comes first; then what belongs to no resource or to a bundle as a
whole, the same way. A group comes before its members, a clone after its instances, what is inside a bundle before its
containers. Measured with crm_simulate 2.1.5 (`--save-graph`).
"""

from collections.abc import Iterator

from haclusterd.model.cluster import NodeState
from haclusterd.scheduler.actions.unfencing import UNFENCE
from haclusterd.scheduler.graph.selection import Selected
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Action, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.tasks import CLEAR_FAILCOUNT
from haclusterd.scheduler.unpack.failures import EXPIRED


def listing_of(inventory: Inventory, selected: Selected) -> dict[int, str]:
    """Return the numbers of the actions in that order, with the names of their resources.

    An instance has its number in its name where nothing is recorded under the name that all of them share.
    """
    places = {id(each): at for at, each in enumerate(each for top in inventory.tops for each in _in_order(top))}
    last = len(places)

    def key(numbered: tuple[int, Action]) -> tuple[int, int, int]:
        action = numbered[1]
        if action.resource is None or action.resource.variant is Variant.BUNDLE:
            return last, _stage(action), -action.id
        is_first = action.task == CLEAR_FAILCOUNT and action.reason == EXPIRED
        age = 1 if is_first else 0 if _is_known(action, action.resource) else -action.id
        return places.get(id(action.resource), last), 0, age

    in_order = sorted(enumerate(selected.actions, start=1), key=key)
    return {number: _name(action.resource, inventory) for number, action in in_order}


def _stage(action: Action) -> int:
    """Return how early what belongs to no primitive, group or clone is made, the latest first.

    Fencing of nodes is made when they are found: those that are lost before those where something failed.
    """
    if action.resource is not None:
        return 1
    if not action.is_fence or action.node is None or action.task == UNFENCE:
        return 2
    if action.is_pseudo:
        return 0
    status = action.node.status
    return 4 if status.state is NodeState.LOST or status.is_condemned else 3


def _is_known(action: Action, resource: Resource) -> bool:
    """Tell whether it is a monitor that has run where it is, which Pacemaker makes when it reads the history."""
    return action.node is not None and (action.node.name, action.interval_ms) in resource.found.registered


def _name(resource: Resource | None, inventory: Inventory) -> str:
    if resource is None:
        return ""
    if resource.variant is not Variant.PRIMITIVE or resource.definition.is_unique:
        return resource.id
    shared = resource.base_id if resource.base_id in inventory.by_history_id else resource.id
    return resource.found.history_id or shared


def _in_order(resource: Resource) -> Iterator[Resource]:
    if resource.variant is Variant.BUNDLE:
        yield from (part for clone in resource.children if clone.variant is Variant.CLONE for part in _in_order(clone))
        for replica in resource.replicas:
            yield from (part for part in (replica.ip, replica.container, replica.connection) if part is not None)
        return
    if resource.variant is not Variant.CLONE:
        yield resource
    for child in sorted(resource.children, key=lambda each: each.number or 0):
        yield from _in_order(child)
    if resource.variant is Variant.CLONE:
        yield resource
