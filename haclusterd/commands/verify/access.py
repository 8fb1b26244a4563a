"""Access control lists: roles that exist, permissions that name something and can be judged in bounded time."""

from haclusterd.commands.verify.judgement import Judgement
from haclusterd.formats.cib_xml.xpath import XPathError, parse_xpath
from haclusterd.model.access import ENABLED, PERMISSIONS_MAX, AclGroup, AclPermission, AclTarget, SimpleRole, kind_of
from haclusterd.model.properties import ClusterProperties
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.suggestions import did_you_mean

_UNDERSTOOD = "understood: /, //, *, |, [@name='text'], [child/@name], [1], and, or, not(), starts-with(), contains()"
_Path = tuple[str, ...]


def check_access(judgement: Judgement) -> None:
    """Judge every role, and whom it is given to."""
    configuration = judgement.configuration
    total = 0
    for role in configuration.acl_roles.values():
        for number, permission in enumerate(role.permissions):
            total += 1
            path = ("acl_role", role.id, "permission", str(number))
            _check_permission(judgement, role.id, permission, path)
            if total == PERMISSIONS_MAX + 1:
                problem = f"more than {PERMISSIONS_MAX} permissions in all roles"
                judgement.note(Code.BAD_VALUE, path, name=f"role {role.id}", problem=problem)
    for holder in configuration.acl_holders():
        _check_holder(judgement, holder, kind_of(holder))
    first = next(configuration.acl_holders(), None)
    if first is not None and not ClusterProperties(configuration).boolean(ENABLED):
        judgement.note(Code.ACL_OFF, (kind_of(first), first.id))


def _check_permission(judgement: Judgement, role: str, permission: AclPermission, path: _Path) -> None:
    name = f"role {role}: permission {permission.id}"
    given = [word for word in (permission.xpath, permission.reference, permission.object_type) if word]
    if len(given) != 1:
        problem = "it needs exactly one of xpath, reference, object-type"
        judgement.note(Code.BAD_VALUE, path, name=name, problem=problem)
    if permission.attribute and not permission.object_type:
        problem = "attribute is allowed with object-type only"
        judgement.note(Code.BAD_VALUE, path, name=name, problem=problem, remedy="write it into the XPath: [@NAME]")
    if permission.xpath:
        try:
            parse_xpath(permission.xpath)
        except XPathError as error:
            problem = f"{permission.xpath[:200]!r}: {error}"
            judgement.note(Code.BAD_VALUE, path, name=name, problem=problem, remedy=_UNDERSTOOD)


def _check_holder(judgement: Judgement, holder: AclTarget | AclGroup, kind: str) -> None:
    roles = judgement.configuration.acl_roles
    for role in holder.roles:
        if role not in roles and role not in set(SimpleRole):
            known = (*roles, *SimpleRole)
            remedy = did_you_mean(role, known, f"one of: {', '.join(known)}")
            judgement.note(Code.UNKNOWN_ROLE, (kind, holder.id, role), where=f"{kind} {holder.id}", role=role,
                           remedy=remedy)  # fmt: skip
    if not holder.roles:
        judgement.note(Code.BAD_VALUE, (kind, holder.id), severity=Severity.WARNING, name=f"{kind} {holder.id}",
                       problem="it has no role, and may do nothing")  # fmt: skip
