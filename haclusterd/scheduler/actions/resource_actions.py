"""Phase: all actions of all resources, what is contained before its container.

A group's own actions are executed by nobody: they stand for those of all its members.
"""

from collections.abc import Iterator

from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.clone_actions import bundled_clone, create_instance_marks, create_promotion_marks
from haclusterd.scheduler.actions.notifications import create_notification_marks
from haclusterd.scheduler.actions.primitive_actions import create_actions, finish_migration
from haclusterd.scheduler.actions.recurring import create_monitors
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.model.tasks import DEMOTE, DEMOTED, PROMOTE, PROMOTED, RUNNING, START, STOP, STOPPED


def create_resource_actions(inventory: Inventory, table: ActionTable, settings: Settings) -> None:
    """Create what each resource may have to do."""
    creation = _Creation(inventory, table, settings)
    for top in inventory.tops:
        creation.create(top)


class _Creation:
    """Goes down into collectives."""

    def __init__(self, inventory: Inventory, table: ActionTable, settings: Settings) -> None:
        self._inventory = inventory
        self._table = table
        self._settings = settings

    def create(self, resource: Resource) -> None:
        """Create the actions of one resource, of what it contains first; what runs in a bundle's containers follows
        the containers."""
        if resource.variant is Variant.PRIMITIVE:
            self._create_primitive(resource)
            return
        inside = bundled_clone(resource) if resource.variant is Variant.BUNDLE else None
        for child in _parts(resource) if resource.replicas else resource.children:
            self.create(child)
        if resource.variant is Variant.GROUP:
            create_group_actions(resource, self._table)
            return
        create_instance_marks(resource, self._table)
        if inside is not None:
            self.create(inside)
        self._create_other_marks(resource, inside or resource)

    def _create_primitive(self, leaf: Resource) -> None:
        course = create_actions(leaf, self._table, self._settings)
        create_monitors(leaf, self._inventory.nodes, self._table, self._settings)
        finish_migration(leaf, course, self._table)

    def _create_other_marks(self, collective: Resource, clone: Resource) -> None:
        if clone.definition.is_promotable:
            create_promotion_marks(collective, self._table)
        create_notification_marks(collective, self._table, is_promotable=clone.definition.is_promotable)


def _parts(bundle: Resource) -> Iterator[Resource]:
    """Yield what the replicas of a bundle consist of, in the order in which Pacemaker makes their actions.

    Propagation takes the newest first: why a container cannot start is looked for before its address is.
    """
    for replica in bundle.replicas:
        for part in (replica.ip, replica.container, replica.connection):
            if part is not None:
                yield part


def create_group_actions(group: Resource, table: ActionTable) -> None:
    """Create start, running, stop and stopped of a group; of one whose instances can be promoted the others too."""
    for task in (START, RUNNING, STOP, STOPPED):
        table.make_pseudo(group, task)
    if group.top.definition.is_promotable:
        for task in (DEMOTE, DEMOTED, PROMOTE, PROMOTED):
            table.make_pseudo(group, task)
