"""Assigns resources, each once, whatever they are made of, and before each what its place depends on."""

from haclusterd.scheduler.assign.assign_bundle import assign_bundle
from haclusterd.scheduler.assign.assign_clone import assign_clone
from haclusterd.scheduler.assign.assign_group import assign_group
from haclusterd.scheduler.assign.assign_primitive import PrimitiveAssignment
from haclusterd.scheduler.assign.colocation_effects import ColocationEffects
from haclusterd.scheduler.assign.placing import Placing
from haclusterd.scheduler.assign.steps import Steps, Wanted
from haclusterd.scheduler.model.entities import Inventory, Node, Resource, Variant
from haclusterd.scheduler.model.settings import Settings


class Assigner:
    """One plan's assignment."""

    def __init__(self, inventory: Inventory, settings: Settings, *, is_all_unmanaged: bool) -> None:
        self._placing = Placing(inventory, settings)
        self._effects = ColocationEffects(self._placing)
        self._primitives = PrimitiveAssignment(self._placing, self._effects, is_all_unmanaged=is_all_unmanaged)

    @property
    def placing(self) -> Placing:
        """The nodes."""
        return self._placing

    def assign(self, resource: Resource, prefer: Node | None = None) -> None:
        """Assign a resource, and before it whatever its place depends on."""
        waiting = [self._steps(Wanted(resource, prefer))]
        while waiting:
            needed = next(waiting[-1], None)
            if needed is None:
                waiting.pop()
            else:
                waiting.append(self._steps(needed))

    def _steps(self, wanted: Wanted) -> Steps:
        resource = wanted.resource
        parent = resource.parent
        if parent is not None and not (parent.assignment.is_assigning or parent.assignment.is_assigned):
            yield Wanted(parent, wanted.prefer, wanted.is_trial)
        if resource.assignment.is_assigned or resource.assignment.is_assigning:
            return
        match resource.variant:
            case Variant.PRIMITIVE:
                yield from self._primitives.steps(wanted)
            case Variant.GROUP:
                yield from assign_group(resource, wanted.prefer, is_trial=wanted.is_trial)
            case Variant.CLONE:
                yield from assign_clone(resource, self._placing, self._effects)
            case Variant.BUNDLE:
                yield from assign_bundle(resource, self._placing)
