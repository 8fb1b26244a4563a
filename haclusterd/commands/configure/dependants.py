"""Who names whom in a configuration: what must be reported, renamed or taken out when something goes or is renamed."""

from collections.abc import Collection, Iterator
from typing import Any

from haclusterd.model.access import AclRole
from haclusterd.model.configuration import (
    Alert,
    AttributeSet,
    Bundle,
    Clone,
    Colocation,
    Configuration,
    Constraint,
    FencingLevel,
    Group,
    Location,
    Operation,
    Ordering,
    Primitive,
    Resource,
    ResourceSet,
    Tag,
    TicketConstraint,
    contained,
)
from haclusterd.model.ids import ConstraintId, ResourceId
from haclusterd.model.records import replace
from haclusterd.model.rules import Rule

TOPOLOGY = "fencing_topology"


def named_by(constraint: Constraint) -> tuple[ResourceId, ...]:
    """Return what a constraint names: resources, templates, tags."""
    in_sets = tuple(member for each in constraint.sets for member in each.members)
    match constraint:
        case Location(resource=resource) | TicketConstraint(resource=resource):
            own: tuple[ResourceId, ...] = (resource,)
        case Colocation(dependent=dependent, primary=primary):
            own = (dependent, primary)
        case _:
            own = (constraint.first, constraint.then)
    return tuple(name for name in (*own, *in_sets) if name)


def dependants(configuration: Configuration, name: str) -> Iterator[str]:
    """Yield what names an object: containers, what is made from a template, tags, constraints, fencing levels."""
    for resource in configuration.resources.values():
        is_made_from = isinstance(resource, Primitive) and resource.template == name
        if name in contained(resource) or is_made_from:
            yield resource.id
    yield from (tag.id for tag in configuration.tags.values() if name in tag.references)
    yield from (id_ for id_, each in configuration.constraints.items() if name in named_by(each))
    if any(name in level.devices for level in configuration.fencing_levels):
        yield TOPOLOGY


def renamed(configuration: Configuration, old: str, new: str) -> Configuration:
    """Return the configuration with one object under another id, and with what names it naming that.

    Ids that were made from the old one are made from the new one.
    """
    swap = _Swap(old, new)
    return replace(
        configuration,
        resources={swap.resource_id(key): swap.resource(each) for key, each in configuration.resources.items()},
        templates={
            swap.resource_id(key): replace(each, id=swap.resource_id(key), **swap.parts(each.id, each))
            for key, each in configuration.templates.items()
        },
        constraints={
            ConstraintId(swap.name(key)): swap.constraint(each) for key, each in configuration.constraints.items()
        },
        tags={
            swap.name(key): Tag(swap.name(key), tuple(map(swap.name, each.references)))
            for key, each in configuration.tags.items()
        },
        fencing_levels=tuple(swap.level(level) for level in configuration.fencing_levels),
        alerts={swap.name(key): swap.alert(each) for key, each in configuration.alerts.items()},
        acl_roles={swap.name(key): swap.role(each) for key, each in configuration.acl_roles.items()},
        acl_targets={
            key: replace(each, roles=tuple(map(swap.name, each.roles)))
            for key, each in configuration.acl_targets.items()
        },
        acl_groups={
            key: replace(each, roles=tuple(map(swap.name, each.roles)))
            for key, each in configuration.acl_groups.items()
        },
    )


def retargeted(configuration: Configuration, old: str, new: str, only: Collection[str]) -> Configuration:
    """Return the configuration with some constraints, those in `only`, naming another object."""
    swap = _Swap(old, new)
    constraints = configuration.constraints
    changed = {key: swap.constraint(each) if key in only else each for key, each in constraints.items()}
    return replace(configuration, constraints=changed)


def in_new_containers(base: Configuration, new: Configuration) -> Configuration:
    """Let constraints that were there already name the group or clone that a resource is in now, as crmsh does it."""
    for container in new.resources.values():
        if container.id in base.resources or not isinstance(container, Group | Clone):
            continue
        for child in contained(container):
            known = {key for key, each in base.constraints.items() if child in named_by(each)}
            new = retargeted(new, child, container.id, known & new.constraints.keys())
    return new


def as_own(primitive: Primitive, template: ResourceId) -> Primitive:
    """Return a primitive whose parts that came from a template have ids of its own."""
    taken = {block.id for block in primitive.parameters + primitive.meta + primitive.utilization}
    taken |= {operation.id for operation in primitive.operations}
    made = replace(primitive, **_Swap(template, primitive.id).parts(template, primitive))
    ids = [block.id for block in made.parameters + made.meta + made.utilization]
    ids += [operation.id for operation in made.operations]
    has_doubles = len(set(ids)) < len(ids) or len(set(ids)) < len(taken)
    return primitive if has_doubles else made


class _Swap:
    """One id for another."""

    def __init__(self, old: str, new: str) -> None:
        self._old = old
        self._new = new

    def name(self, name: str) -> str:
        return self._new if name == self._old else name

    def resource_id(self, name: str) -> ResourceId:
        return ResourceId(self.name(name))

    def _made(self, owner: str, id_: str) -> str:
        """Return the id of a part of the renamed object, made from the object's new id if it was from the old one."""
        is_made = owner == self._old and id_.startswith(f"{self._old}-")
        return self._new + id_[len(self._old) :] if is_made else id_

    def _blocks(self, owner: str, blocks: tuple[AttributeSet, ...]) -> tuple[AttributeSet, ...]:
        return tuple(
            replace(
                block,
                id=self._made(owner, block.id),
                rule=None if block.rule is None else replace(block.rule, id=self._made(owner, block.rule.id)),
            )
            for block in blocks
        )

    def _operation(self, owner: str, operation: Operation) -> Operation:
        return replace(
            operation,
            id=self._made(owner, operation.id),
            parameters=self._blocks(owner, operation.parameters),
            meta=self._blocks(owner, operation.meta),
        )

    def parts(self, owner: str, resource: object) -> dict[str, Any]:
        """Return the fields of blocks and operations of a resource or template."""
        found: dict[str, Any] = {}
        for field in ("parameters", "meta", "utilization"):
            blocks = getattr(resource, field, None)
            if blocks is not None:
                found[field] = self._blocks(owner, blocks)
        operations = getattr(resource, "operations", None)
        if operations is not None:
            found["operations"] = tuple(self._operation(owner, each) for each in operations)
            found["operations_id"] = self._made(owner, getattr(resource, "operations_id", ""))
        return found

    def alert(self, alert: Alert) -> Alert:
        recipients = tuple(
            replace(each, id=self._made(alert.id, each.id), parameters=self._blocks(alert.id, each.parameters),
                    meta=self._blocks(alert.id, each.meta))
            for each in alert.recipients
        )  # fmt: skip
        return replace(alert, id=self.name(alert.id), recipients=recipients, **self.parts(alert.id, alert))

    def role(self, role: AclRole) -> AclRole:
        permissions = tuple(
            replace(each, id=self._made(role.id, each.id), reference=self.name(each.reference))
            for each in role.permissions
        )
        return replace(role, id=self.name(role.id), permissions=permissions)

    def resource(self, resource: Resource) -> Resource:
        made = replace(resource, id=self.resource_id(resource.id), **self.parts(resource.id, resource))
        match made:
            case Primitive(template=template):
                return replace(made, template=None if template is None else self.resource_id(template))
            case Group(members=members):
                return replace(made, members=tuple(map(self.resource_id, members)))
            case Clone(child=child):
                return replace(made, child=self.resource_id(child))
            case Bundle(primitive=primitive):
                return replace(made, primitive=None if primitive is None else self.resource_id(primitive))

    def _sets(self, owner: str, sets: tuple[ResourceSet, ...]) -> tuple[ResourceSet, ...]:
        return tuple(
            replace(each, id=self._made(owner, each.id), members=tuple(map(self.resource_id, each.members)))
            for each in sets
        )

    def _rules(self, owner: str, rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
        return tuple(replace(rule, id=self._made(owner, rule.id)) for rule in rules)

    def constraint(self, constraint: Constraint) -> Constraint:
        id_, sets = ConstraintId(self.name(constraint.id)), self._sets(constraint.id, constraint.sets)
        match constraint:
            case Location():
                rules = self._rules(constraint.id, constraint.rules)
                resource = self.resource_id(constraint.resource)
                return replace(constraint, id=id_, sets=sets, resource=resource, rules=rules)
            case TicketConstraint():
                return replace(constraint, id=id_, sets=sets, resource=self.resource_id(constraint.resource))
            case Colocation():
                dependent, primary = self.resource_id(constraint.dependent), self.resource_id(constraint.primary)
                lifetime = self._rules(constraint.id, constraint.lifetime)
                return replace(constraint, id=id_, sets=sets, dependent=dependent, primary=primary, lifetime=lifetime)
            case Ordering():
                first, then = self.resource_id(constraint.first), self.resource_id(constraint.then)
                lifetime = self._rules(constraint.id, constraint.lifetime)
                return replace(constraint, id=id_, sets=sets, first=first, then=then, lifetime=lifetime)

    def level(self, level: FencingLevel) -> FencingLevel:
        return replace(level, devices=tuple(map(self.resource_id, level.devices)))
