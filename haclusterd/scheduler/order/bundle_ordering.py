"""Phase: the order of a bundle's parts: address, container, connection, and what runs inside; launchers in general.

Source: Pacemaker Explained, "Bundles". What is launched comes after its launcher and goes before it.
"""

from collections.abc import Iterator

from haclusterd.scheduler.actions.clone_actions import bundled_clone
from haclusterd.scheduler.actions.ordering import OrderingTemplate
from haclusterd.scheduler.model.entities import Replica, Resource
from haclusterd.scheduler.model.relation_flags import (
    FIRST_IMPLIES_THEN,
    FIRST_IMPLIES_THEN_GRAPHED,
    GUEST_ALLOWED,
    ORDERED,
    THEN_IMPLIES_FIRST,
    THEN_IMPLIES_FIRST_GRAPHED,
    UNRUNNABLE_FIRST_BLOCKS,
)
from haclusterd.scheduler.model.tasks import DEMOTE, DEMOTED, MONITOR, PROMOTE, PROMOTED, RUNNING, START, STOP, STOPPED
from haclusterd.scheduler.order.clone_ordering import promotion_templates

_DOWN = THEN_IMPLIES_FIRST_GRAPHED
_UP = FIRST_IMPLIES_THEN_GRAPHED


def bundle_templates(bundle: Resource) -> Iterator[OrderingTemplate]:
    """Yield the orderings of one bundle."""
    inside = bundled_clone(bundle)
    if inside is not None:
        yield OrderingTemplate(bundle, START, inside, START, _DOWN)
        yield OrderingTemplate(bundle, STOP, inside, STOP, _DOWN)
        yield OrderingTemplate(inside, RUNNING, bundle, RUNNING, _UP)
        yield OrderingTemplate(inside, STOPPED, bundle, STOPPED, _UP)
        if inside.definition.is_promotable:
            yield OrderingTemplate(bundle, DEMOTE, inside, DEMOTE, _DOWN)
            yield OrderingTemplate(inside, DEMOTED, bundle, DEMOTED, _UP)
            yield OrderingTemplate(bundle, PROMOTE, inside, PROMOTE, _DOWN)
            yield OrderingTemplate(inside, PROMOTED, bundle, PROMOTED, _UP)
    for replica in bundle.replicas:
        yield from _replica_templates(bundle, replica)
    if inside is not None and inside.definition.is_promotable:
        yield from promotion_templates(bundle, ())


def _replica_templates(bundle: Resource, replica: Replica) -> Iterator[OrderingTemplate]:
    container = replica.container
    yield OrderingTemplate(bundle, START, container, START, UNRUNNABLE_FIRST_BLOCKS | _DOWN)
    if replica.child is not None:
        yield OrderingTemplate(bundle, STOP, replica.child, STOP, _DOWN)
    yield OrderingTemplate(bundle, STOP, container, STOP, _DOWN)
    yield OrderingTemplate(container, START, bundle, RUNNING, _UP)
    yield OrderingTemplate(container, STOP, bundle, STOPPED, _UP)
    if replica.ip is not None:
        yield OrderingTemplate(replica.ip, START, container, START, UNRUNNABLE_FIRST_BLOCKS | GUEST_ALLOWED)
        yield OrderingTemplate(container, STOP, replica.ip, STOP, THEN_IMPLIES_FIRST | GUEST_ALLOWED)


def launcher_templates(resource: Resource, launcher: Resource) -> Iterator[OrderingTemplate]:
    """Yield how a resource goes with what launches it."""
    if resource.definition.is_remote_connection:
        yield OrderingTemplate(launcher, MONITOR, resource, STOP, ORDERED)
    launches_guest = any(each.definition.is_remote_connection for each in launcher.launched)
    if launcher.definition.is_remote_connection or (launches_guest and not resource.definition.is_remote_connection):
        return
    yield OrderingTemplate(launcher, START, resource, START, FIRST_IMPLIES_THEN | UNRUNNABLE_FIRST_BLOCKS)
    yield OrderingTemplate(resource, STOP, launcher, STOP, THEN_IMPLIES_FIRST)
