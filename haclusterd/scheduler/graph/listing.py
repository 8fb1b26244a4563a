"""Phase: the order in which Pacemaker lists the actions of a transition graph, and so executes what waits for nothing.

Resource by resource, of each what was made last comes first; then what belongs to no resource. A group comes before its
members, a clone after its instances. Measured with crm_simulate 2.1.5 (`--save-graph`).
"""

from collections.abc import Iterator

from haclusterd.scheduler.graph.selection import Selected
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Action, Resource
from haclusterd.scheduler.model.inventory import Inventory


def listing_of(inventory: Inventory, selected: Selected) -> dict[int, str]:
    """Return the numbers of the actions in that order, with the names of their resources.

    An instance of which nothing is recorded has its number in its name.
    """
    places = {id(each): at for at, each in enumerate(each for top in inventory.tops for each in _in_order(top))}
    last = len(places)

    def key(numbered: tuple[int, Action]) -> tuple[int, int]:
        action = numbered[1]
        if action.resource is None:
            return last, action.id
        return places.get(id(action.resource), last), 0 if _is_known(action, action.resource) else -action.id

    in_order = sorted(enumerate(selected.actions, start=1), key=key)
    return {number: _name(action.resource) for number, action in in_order}


def _is_known(action: Action, resource: Resource) -> bool:
    """Tell whether it is a monitor that has run where it is, which Pacemaker makes when it reads the history."""
    return action.node is not None and (action.node.name, action.interval_ms) in resource.found.registered


def _name(resource: Resource | None) -> str:
    if resource is None:
        return ""
    is_recorded = resource.variant is Variant.PRIMITIVE and resource.found.history_id
    return resource.recorded_as if is_recorded else resource.id


def _in_order(resource: Resource) -> Iterator[Resource]:
    if resource.variant is not Variant.CLONE:
        yield resource
    for child in sorted(resource.children, key=lambda each: each.number or 0):
        yield from _in_order(child)
    if resource.variant is Variant.CLONE:
        yield resource
