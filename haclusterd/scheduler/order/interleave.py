"""Which instance of one clone another clone's instance goes with: the one on the same node.

Source: Pacemaker Explained, "Clone Options": with `interleave` an instance waits for the other clone's instance on its
own node only, else for all of them.
"""

from haclusterd.scheduler.actions.collective_flags import BEGUN, action_of, instances_of
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Action, Node, Resource
from haclusterd.scheduler.model.tasks import DEMOTE, DEMOTED, STOP, STOPPED

NOTIFIED = "confirmed-post_notify_"
"""With what a clone's instances have done behind it: all of them are notified of that."""
_ENDING = frozenset({STOP, STOPPED, DEMOTE, DEMOTED})
_ENDED = frozenset({STOPPED, DEMOTED})


def is_interleaved(first: Action, then: Action) -> bool:
    """Tell whether an order between two clones or bundles holds between their instances on the same node only."""
    before, after = first.resource, then.resource
    if before is None or after is None or before is after:
        return False
    if before.variant < Variant.CLONE or after.variant < Variant.CLONE:
        return False
    return (before if then.task in _ENDING else after).definition.is_interleaved


def is_about_present(first: Action) -> bool:
    """Tell whether instances are matched by where they are, not by where they will be."""
    return first.task.removeprefix(NOTIFIED) in _ENDED


def instance_list(collective: Resource) -> list[Resource]:
    """Return what of a clone or bundle has a node of its own."""
    return instances_of(collective, STOP)


def place_of(resource: Resource, *, is_present: bool) -> Node | None:
    """Return where an instance is, or will be; a group's place is that of its first member that has one."""
    while resource.variant is not Variant.PRIMITIVE:
        if not resource.children:
            return None
        placed = (each for each in resource.children if (each.found.active_nodes if is_present else each.place()))
        resource = next(placed, resource.children[0])
    return resource.current_node() if is_present else resource.assignment.node


def matching_instance(of: Resource, collective: Resource, *, is_present: bool) -> Resource | None:
    """Return the instance of a collective that is (or will be) on the same node as another one's."""
    node = place_of(of, is_present=is_present)
    if node is None:
        return None
    for instance in instance_list(collective):
        if place_of(instance, is_present=is_present) is node and not _is_blocked(instance):
            return instance
    return None


def action_of_instance(action: Action, instance: Resource, *, is_first: bool) -> Action | None:
    """Return an instance's part in its collective's action; a container's is that of what runs inside, where it
    matters: of what comes before all but the stop, of what comes after the change of role.

    An instance does not wait until all instances of the other clone are notified: what stands for that is its own part.
    """
    owner = instance
    task = action.task.removeprefix(NOTIFIED)
    if instance.definition.is_replica_container:
        is_inside = task not in (STOP, STOPPED) if is_first else BEGUN.get(task, task) in ("promote", "demote")
        owner = (_inside(instance, action) if is_inside else None) or instance
    if owner.variant is Variant.PRIMITIVE:
        task = BEGUN.get(task, task)
    return action_of(owner, task, None)


def _inside(container: Resource, action: Action) -> Resource | None:
    bundle = action.resource
    assert bundle is not None
    return next((replica.child for replica in bundle.replicas if replica.container is container), None)


def _is_blocked(resource: Resource) -> bool:
    return any(leaf.is_blocked for leaf in resource.leaves())
