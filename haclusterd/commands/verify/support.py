"""What a configuration can say but a running cluster does not do yet: refused by name, never ignored.

The scheduler plans all of it, for `simulate`; nothing on a node carries it out. When one of these is built, its
lines here go away.
"""

from haclusterd.commands.verify.judgement import Judgement
from haclusterd.model.configuration import Bundle, Primitive, effective
from haclusterd.model.ids import RUN_HERE, UNITS
from haclusterd.model.templates import expanded
from haclusterd.reports.codes import Code

_INSTEAD_OF_REMOTE = "make that machine a member, without a vote if need be: crm cluster invite"
_INSTEAD_OF_BUNDLE = "let an agent run the container, cloned if need be: ocf:heartbeat:podman, ocf:heartbeat:docker"
_INSTEAD_OF_CLASS = "use an agent of class ocf, systemd or lsb for it: crm ra list systemd"
_INSTEAD_OF_GUEST = "leave remote-node out: the machine runs as a resource, what is inside it is not managed"


def check_support(judgement: Judgement) -> None:
    """Judge what the executor cannot carry out."""
    for node in judgement.configuration.nodes.values():
        if node.is_remote:
            judgement.note(
                Code.NOT_YET, ("node", node.name), remedy=_INSTEAD_OF_REMOTE, construct="a Pacemaker Remote node"
            )
    for resource in judgement.configuration.resources.values():
        path = ("resource", resource.id)
        if isinstance(resource, Bundle):
            judgement.note(Code.NOT_YET, path, remedy=_INSTEAD_OF_BUNDLE, construct="a bundle")
        elif isinstance(resource, Primitive):
            _check_primitive(judgement, resource)
        _check_meta(judgement, resource.id, effective(resource.meta))


def _check_primitive(judgement: Judgement, primitive: Primitive) -> None:
    path, agent = ("resource", primitive.id), primitive.agent
    if agent.standard not in RUN_HERE:
        construct = f"an agent of class {agent.standard}"
        judgement.note(Code.NOT_YET, (*path, "agent"), remedy=_INSTEAD_OF_CLASS, construct=construct)
    if agent.standard in UNITS:
        for name in effective(expanded(primitive, judgement.configuration).parameters):
            place = (*path, "params", name)
            judgement.note(Code.TAKES_NO_PARAMETERS, place, where=primitive.id, standard=agent.standard, name=name)
    if (agent.standard, agent.type) == ("stonith", "fence_watchdog"):
        construct = f"{agent} in a level, a constraint, a tag or a group"
        remedy = "remove it, and set watchdog-fencing=true: a node's watchdog comes after its devices"
        judgement.note(Code.NOT_YET, (*path, "agent"), remedy=remedy, construct=construct)
    if (agent.standard, agent.provider, agent.type) == ("ocf", "pacemaker", "remote"):
        construct = "a connection to a Pacemaker Remote node"
        judgement.note(Code.NOT_YET, (*path, "agent"), remedy=_INSTEAD_OF_REMOTE, construct=construct)
    for index, operation in enumerate(primitive.operations):
        if operation.requires is not None:
            own = (*path, "operation", str(index), "requires")
            remedy = "write it as a meta-attribute of the resource: meta requires=VALUE"
            judgement.note(Code.NOT_YET, own, remedy=remedy, construct="requires of an operation")


def _check_meta(judgement: Judgement, resource: str, meta: dict[str, str]) -> None:
    path = ("resource", resource, "meta")
    if "remote-node" in meta:
        judgement.note(Code.NOT_YET, (*path, "remote-node"), remedy=_INSTEAD_OF_GUEST, construct="a guest node")
