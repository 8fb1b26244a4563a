"""What is in what: members of groups, what clones copy, what runs inside bundles (Pacemaker Explained, "Resources")."""

from collections import Counter

from haclusterd.commands.verify.judgement import Judgement
from haclusterd.model.configuration import Bundle, Clone, Group, Primitive, Resource, contained
from haclusterd.model.ids import ResourceId
from haclusterd.reports.codes import Code


def check_containment(judgement: Judgement) -> None:
    """Judge that whatever is contained exists, fits its container, and is in no other one."""
    parents: dict[ResourceId, Resource] = {}
    for resource in judgement.configuration.resources.values():
        if isinstance(resource, Group):
            _check_group(judgement, resource)
        elif isinstance(resource, Bundle):
            _check_bundle(judgement, resource)
        for child in dict.fromkeys(contained(resource)):
            _check_child(judgement, resource, child)
            first = parents.setdefault(child, resource)
            if first is not resource:
                _note_second(judgement, first, resource, child)


def _note_second(judgement: Judgement, first: Resource, second: Resource, child: ResourceId) -> None:
    path = judgement.written(("resource", second.id, "member", child), ("resource", first.id, "member", child))
    if isinstance(first, Group) and isinstance(second, Group):
        judgement.note(Code.MEMBER_OF_TWO_GROUPS, path, id=child, first=first.id, second=second.id)
    else:
        judgement.note(
            Code.CHILD_OF_TWO, path, id=child,
            first=f"{kind_of(first)} {first.id}", second=f"{kind_of(second)} {second.id}",
        )  # fmt: skip


def kind_of(resource: Resource) -> str:
    """Say what a resource is."""
    match resource:
        case Primitive():
            return "fence device" if resource.agent.standard == "stonith" else "primitive"
        case Group():
            return "group"
        case Clone():
            return "clone"
        case Bundle():
            return "bundle"


def _check_child(judgement: Judgement, parent: Resource, child: ResourceId) -> None:
    path = judgement.written(("resource", parent.id, "member", child), ("resource", child))
    found = judgement.configuration.resources.get(child)
    if found is None:
        guess = judgement.nearest(child, judgement.configuration.resources)
        remedy = f"did you mean {guess}?" if guess else None
        where = f"{kind_of(parent)} {parent.id}"
        judgement.note(Code.UNKNOWN_RESOURCE, path, remedy=remedy, where=where, id=child)
        return
    match parent:
        case Group() if not isinstance(found, Primitive):
            judgement.note(Code.MEMBER_NOT_A_PRIMITIVE, path, group=parent.id, id=child)
        case Group() if isinstance(found, Primitive) and found.agent.standard == "stonith":
            judgement.note(Code.FENCE_DEVICE_IN_GROUP, path, id=child, group=parent.id)
        case Clone() if not isinstance(found, Primitive | Group):
            remedy = "a clone copies a primitive or a group"
            judgement.note(Code.BAD_CHILD, path, remedy=remedy, parent=f"clone {parent.id}", id=child,
                           kind=kind_of(found))  # fmt: skip
        case Bundle() if not isinstance(found, Primitive):
            remedy = "a bundle runs a primitive, or nothing"
            judgement.note(Code.BAD_CHILD, path, remedy=remedy, parent=f"bundle {parent.id}", id=child,
                           kind=kind_of(found))  # fmt: skip


def _check_group(judgement: Judgement, group: Group) -> None:
    if not group.members:
        judgement.note(Code.GROUP_EMPTY, ("resource", group.id), group=group.id)
    for member, count in Counter(group.members).items():
        if count > 1:
            judgement.note(Code.MEMBER_TWICE, ("resource", group.id, "member", member), group=group.id, id=member)


def _check_bundle(judgement: Judgement, bundle: Bundle) -> None:
    """A primitive inside is reached over the bundle's network; promotion needs replicas to promote."""
    path, network = ("resource", bundle.id), bundle.network
    is_reachable = network is not None and (network.ip_range_start or network.control_port)
    if bundle.primitive is not None and not is_reachable:
        problem = f"{bundle.primitive} inside it cannot be reached"
        remedy = "give it a network with ip-range-start or control-port"
        judgement.note(Code.BAD_VALUE, path, remedy=remedy, name=f"bundle {bundle.id}", problem=problem)
    if bundle.replicas == 0 or bundle.replicas_per_host == 0:
        problem = "replicas and replicas-per-host must be at least 1"
        judgement.note(Code.BAD_VALUE, path, name=f"bundle {bundle.id}", problem=problem)
    shares_host = bundle.replicas_per_host not in (None, 1) and network is not None
    if shares_host and network is not None and network.ports and not network.ip_range_start:
        problem = "several replicas on a host cannot share its ports"
        remedy = "give it an ip-range-start, or replicas-per-host=1"
        judgement.note(Code.BAD_VALUE, path, remedy=remedy, name=f"bundle {bundle.id}", problem=problem)
