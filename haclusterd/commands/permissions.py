"""What somebody may who asks: the verbs, and what of the CIB; the one answer for sockets, tokens and tools alike.

Who is neither a superuser nor restricted by access control lists has a permission for verbs alone. For the others each
verb decides over what they may read, and what it would change is judged (`commands.access`).
"""

from collections.abc import Iterator, Mapping

from haclusterd.model.access import ENABLED, AclRole, Principal, Right, SimpleRole
from haclusterd.model.configuration import Configuration
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.records import dataclass
from haclusterd.verbs.verb import Permission

PERMISSION_OF: Mapping[str, Permission] = {
    SimpleRole.VIEWER: Permission.READ,
    SimpleRole.OPERATOR: Permission.OPERATE,
    SimpleRole.ADMIN: Permission.ADMINISTER,
}
ROLE_FOR: Mapping[Permission, SimpleRole] = {
    permission: SimpleRole(role) for role, permission in PERMISSION_OF.items()
}
_PROPERTY = "control-group-permission"


@dataclass(frozen=True, slots=True)
class Rules:
    """Permissions by which everything that is read or written is judged."""

    roles: tuple[AclRole, ...] = ()
    base: Permission | None = None
    """What a simple role gives for the whole CIB; None: what no permission names is denied."""

    @property
    def may_write(self) -> bool:
        """Whether anything at all may be written."""
        return any(each.right is Right.WRITE for role in self.roles for each in role.permissions)


@dataclass(frozen=True, slots=True)
class Access:
    """What a principal may."""

    permission: Permission
    """The most that a verb may need to be asked at all."""
    why: str
    """What gave it."""
    roles: tuple[str, ...] = ()
    """The names that count."""
    rules: Rules | None = None
    """None: no access control list restricts it."""


FULL = Access(Permission.ADMINISTER, "who may read the file may read all of it")
"""Without a cluster: on a state file."""
NOTHING = Access(Permission.READ, "nothing gives it any right", rules=Rules())


def access_of(configuration: Configuration, principal: Principal, *, is_in_force: bool = False) -> Access:
    """Judge a principal by a configuration (as it is in force); `is_in_force`: as if access control lists were."""
    if principal.is_superuser:
        return Access(Permission.ADMINISTER, f"{principal} is never restricted")
    if principal.token:
        # What a simple role gave a token when it was made is not changed by a role that is configured later.
        given = {} if principal.token_role in PERMISSION_OF else configuration.acl_roles
        return _of_roles(given, (principal.token_role,), f"token {principal.token}")
    properties = ClusterProperties(configuration)
    if not (is_in_force or properties.boolean(ENABLED)):
        permission = properties.text(_PROPERTY)
        return Access(Permission(permission), f"{_PROPERTY}={permission}, and {ENABLED} is not true")
    roles = tuple(dict.fromkeys(_roles_of(configuration, principal)))
    if not roles:
        why = f"no acl_target or acl_group names user {principal.user}"
        return Access(Permission.READ, why, rules=Rules())
    return _of_roles(configuration.acl_roles, roles, f"user {principal.user}")


def _roles_of(configuration: Configuration, principal: Principal) -> Iterator[str]:
    for target in configuration.acl_targets.values():
        if target.account == principal.user:
            yield from target.roles
    for group in configuration.acl_groups.values():
        if group.account in principal.groups:
            yield from group.roles


def _of_roles(known: Mapping[str, AclRole], names: tuple[str, ...], who: str) -> Access:
    """Add up what roles give; a configured one comes before a simple one of its name, an unknown one gives nothing."""
    configured = tuple(known[name] for name in names if name in known)
    simple = [PERMISSION_OF[name] for name in names if name in PERMISSION_OF and name not in known]
    base = max(simple, key=lambda each: each.rank, default=None)
    why = f"{who} has {'role' if len(names) == 1 else 'roles'} {', '.join(names)}"
    if base is not None and not configured:
        return Access(base, why, names)
    rules = Rules(configured, base)
    most = Permission.ADMINISTER if rules.may_write else base or Permission.READ
    return Access(most, why, names, rules)
