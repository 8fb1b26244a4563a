"""How one primitive gets its node.

Source: Pacemaker Explained, "Constraints" and Pacemaker Development, "Scheduler": mandatory colocations first, then the
optional ones; then the best of what is left. What is not managed stays where it is.
"""

from haclusterd.model.ocf import Role
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.assign.colocation_effects import ColocationEffects
from haclusterd.scheduler.assign.neighbour_scores import add_scores_of_dependents
from haclusterd.scheduler.assign.placing import Placing, SavedAssignment
from haclusterd.scheduler.assign.steps import Steps, Wanted, remember_scores
from haclusterd.scheduler.model.entities import ColocationPair, Node, Resource
from haclusterd.scheduler.model.settings import NoQuorumPolicy
from haclusterd.scheduler.scores.colocation_lists import this_with, with_this
from haclusterd.scheduler.unpack.remote_status import expect


class PrimitiveAssignment:
    """Assigns primitives."""

    def __init__(self, placing: Placing, effects: ColocationEffects, *, is_all_unmanaged: bool) -> None:
        self._placing = placing
        self._effects = effects
        self._settings = placing.settings
        self._is_all_unmanaged = is_all_unmanaged

    def steps(self, wanted: Wanted) -> Steps:
        """Assign one primitive; yield what it has to run with first."""
        resource = wanted.resource
        resource.assignment.is_assigning = True
        self._placing.chains.changed(resource)
        primaries = this_with(resource)
        dependents = with_this(resource)
        for is_mandatory in (True, False):
            for colocation in primaries:
                if colocation.is_mandatory is is_mandatory:
                    yield from self._follow(resource, colocation)
            add_scores_of_dependents(
                resource, (item for item in dependents if item.is_mandatory is is_mandatory), self._placing
            )
        self._heed_roles(resource)
        remember_scores(resource)
        self._settle(resource, wanted)
        resource.assignment.is_assigned = True
        resource.assignment.is_assigning = False
        if resource.definition.is_remote_connection:
            self._connect(resource)

    def _follow(self, resource: Resource, colocation: ColocationPair) -> Steps:
        """Go with a primary; one that the resource would rather not be with cannot keep it from running at all."""
        before = None
        if colocation.dependent_role is Role.PROMOTED or -INFINITY < colocation.score < 0:
            before = SavedAssignment.begin(resource)
        yield Wanted(colocation.primary)
        self._effects.apply(resource, colocation.primary, colocation)
        if before is not None and not self._placing.any_usable(resource.assignment.allowed):
            before.undo()

    def _heed_roles(self, resource: Resource) -> None:
        """A resource that is to be stopped goes nowhere; without quorum a frozen one does not rise."""
        if resource.assignment.next_role is Role.STOPPED:
            resource.assignment.ban_everywhere(_stopped_words(resource), self._placing.nodes)
        elif resource.assignment.next_role.value > resource.found.original_role.value:
            is_frozen = self._settings.no_quorum_policy is NoQuorumPolicy.FREEZE
            if is_frozen and not self._settings.options.has_quorum:
                resource.assignment.next_role = resource.found.original_role

    def _settle(self, resource: Resource, wanted: Wanted) -> None:
        if self._is_all_unmanaged:
            resource.assignment.is_left_alone = True
        if not resource.is_managed:
            resource.assignment.next_role = resource.found.original_role
            self._force(resource, resource.current_node(), wanted)
        elif self._settings.stops_all:
            self._force(resource, None, wanted)
        else:
            node = self._placing.choose(resource, wanted.prefer)
            self._placing.take(resource, node, is_trial=wanted.is_trial)

    def _force(self, resource: Resource, node: Node | None, wanted: Wanted) -> None:
        if node is not None:
            self._placing.force(resource, node)
        elif resource.is_managed:
            self._placing.take_none(resource, is_trial=wanted.is_trial)

    def _connect(self, connection: Resource) -> None:
        """A remote node will be online where its connection will be; without one it shuts down.

        Where nothing is managed, a guest node stays as it is unless its launcher runs already: nobody starts that.
        """
        node, launcher = connection.remote_node, connection.launcher
        if node is None or (self._is_all_unmanaged and launcher is not None and not launcher.found.active_nodes):
            return
        assignment = connection.assignment
        expect(node, is_connected=assignment.node is not None and assignment.next_role is not Role.STOPPED)
        self._placing.node_changed(node)


def _stopped_words(resource: Resource) -> str:
    if resource.definition.target_role is Role.STOPPED:
        return "target-role=Stopped"
    return resource.failed_because or "it is to be stopped"
