"""Roles, and who can have them: what only promotable clones, or agents of class ocf, can do.

(Pacemaker Explained, "Promotable clones", "Clone Options", "Multi-Site Clusters and Tickets".)
"""

from collections.abc import Iterator

from haclusterd.commands.verify.judgement import Judgement
from haclusterd.model.configuration import (
    Bundle,
    Clone,
    Colocation,
    Constraint,
    Group,
    Location,
    Ordering,
    Primitive,
    TicketConstraint,
)
from haclusterd.model.ids import ResourceId
from haclusterd.model.properties import ClusterProperties, collective_flag
from haclusterd.reports.codes import Code

OF_PROMOTABLES = frozenset({"Promoted", "Unpromoted", "promote", "demote"})
_UNIQUE = ("ocf", "stonith")
"""Classes whose agents learn which instance they are."""
NEEDED_ACTIONS = ("promote", "demote")


def check_roles(judgement: Judgement) -> None:
    """Judge clones by their agents, and roles by what can have them."""
    for resource in judgement.configuration.resources.values():
        if isinstance(resource, Clone):
            _check_clone(judgement, resource)
    roles = _Roles(judgement)
    for constraint in judgement.configuration.constraints.values():
        for id_, word, part in _words(constraint):
            roles.check(constraint, id_, word, part)
        if isinstance(constraint, TicketConstraint):
            roles.check_ticket(constraint)
    for primitive in judgement.configuration.primitives():
        roles.check_primitive(primitive)


def _check_clone(judgement: Judgement, clone: Clone) -> None:
    is_promotable = collective_flag(judgement.configuration, clone, "promotable")
    is_unique = collective_flag(judgement.configuration, clone, "globally-unique")
    for primitive in _primitives_in(judgement, clone.id):
        path = ("resource", clone.id, "meta", "promotable" if is_promotable else "globally-unique")
        if primitive.agent.standard not in (("ocf",) if is_promotable else _UNIQUE) and (is_promotable or is_unique):
            what = "promotable" if is_promotable else "globally unique"
            judgement.note(Code.NEEDS_OCF, path, clone=clone.id, what=what, id=primitive.id, agent=primitive.agent)
        elif is_promotable and judgement.agents is not None:
            facts = judgement.agents.get(str(primitive.agent))
            missing = [name for name in NEEDED_ACTIONS if facts is not None and name not in facts.action_timeouts_ms]
            if missing and facts is not None and facts.action_timeouts_ms:
                judgement.note(
                    Code.CANNOT_PROMOTE, path, clone=clone.id, agent=primitive.agent, actions=", ".join(missing)
                )


def _primitives_in(judgement: Judgement, id_: ResourceId) -> Iterator[Primitive]:
    resources = judgement.configuration.resources
    found = resources.get(id_)
    match found:
        case Primitive():
            yield found
        case Group():
            members = (resources.get(member) for member in found.members)
            yield from (each for each in members if isinstance(each, Primitive))
        case Clone() if not isinstance(resources.get(found.child), Clone | Bundle):
            yield from _primitives_in(judgement, found.child)


_Word = tuple[ResourceId, str | None, str]
"""A resource, its role or action, and which part of the constraint it is."""


def _words(constraint: Constraint) -> Iterator[_Word]:
    for each in constraint.sets:
        for member in each.members:
            yield member, each.role, "resource"
            yield member, each.action, "resource"
    match constraint:
        case Location():
            yield constraint.resource, constraint.role, "resource"
            yield from ((constraint.resource, rule.role, "resource") for rule in constraint.rules)
        case Colocation():
            yield constraint.dependent, constraint.dependent_role, "dependent"
            yield constraint.primary, constraint.primary_role, "primary"
        case Ordering():
            yield constraint.first, constraint.first_action, "first"
            yield constraint.then, constraint.then_action, "then"
        case TicketConstraint():
            yield constraint.resource, constraint.role, "resource"


class _Roles:
    """Knows which resources can be promoted."""

    def __init__(self, judgement: Judgement) -> None:
        self._judgement = judgement
        self._parents = judgement.configuration.parents()

    def check(self, constraint: Constraint, resource: ResourceId, word: str | None, part: str) -> None:
        """Report a role or action that the resource cannot have; what is no resource is not known well enough."""
        if word in OF_PROMOTABLES and resource in self._judgement.configuration.resources:
            self._report(resource, word or "", ("constraint", constraint.id, part), f"constraint {constraint.id}")

    def check_primitive(self, primitive: Primitive) -> None:
        """Warn of operations for roles that the resource cannot have: they never run, unless it is cloned later."""
        for index, operation in enumerate(primitive.operations):
            if operation.role == "Promoted":
                path = ("resource", primitive.id, "operation", str(index), "role")
                where = f"{primitive.id}: {operation.name}"
                self._report(primitive.id, operation.role, path, where)

    def check_ticket(self, constraint: TicketConstraint) -> None:
        """Report loss policies that nothing follows from."""
        path = ("constraint", constraint.id, "ticket")
        if constraint.loss_policy == "demote" and constraint.resource and not self._can(constraint.resource):
            self._report(constraint.resource, "loss-policy=demote", path, f"constraint {constraint.id}")
        is_fencing = ClusterProperties(self._judgement.configuration).boolean("fencing-enabled")
        if constraint.loss_policy == "fence" and not is_fencing:
            where = f"constraint {constraint.id}"
            self._judgement.note(Code.POLICY_NEEDS_FENCING, path, where=where)

    def _can(self, resource: ResourceId) -> bool:
        """Tell whether a resource is, contains or is in something promotable."""
        configuration = self._judgement.configuration
        resources, seen = configuration.resources, set[ResourceId]()
        step: ResourceId | None = resource
        while step is not None and step not in seen:
            seen.add(step)
            found = resources.get(step)
            if found is None or (isinstance(found, Clone) and collective_flag(configuration, found, "promotable")):
                return True
            if isinstance(found, Bundle) and found.promoted_max:
                return True
            step = self._parents.get(step)
        return False

    def _report(self, resource: ResourceId, word: str, path: tuple[str, ...], where: str) -> None:
        if not self._can(resource):
            self._judgement.note(Code.NOT_PROMOTABLE, path, where=where, id=resource, word=word)
