"""Access control lists in policy YAML: read and written."""

from collections.abc import Iterable

from haclusterd.formats.generated_ids import allocate, permission_base
from haclusterd.formats.policy.dumper import Inline, InlineList, Tree, given, text
from haclusterd.formats.policy.fields import Fields, Findings, as_map, read_id
from haclusterd.formats.policy.resources import Kind
from haclusterd.formats.policy.rules import choice, read_words
from haclusterd.formats.policy.yaml_tree import Map
from haclusterd.formats.statements import Define
from haclusterd.model.access import ACCOUNT, AclGroup, AclPermission, AclRole, AclTarget, Right
from haclusterd.model.ids import NCNAME
from haclusterd.reports.codes import Code

ROLES, TARGETS, GROUPS = "acl-roles", "acl-targets", "acl-groups"
_PERMISSION_KEYS = ("id", "kind", "xpath", "reference", "object-type", "attribute", "description")


def _role(fields: Fields, id_: str) -> AclRole:
    items = [
        Fields(fields.findings, f"{fields.where}: permission", item, _PERMISSION_KEYS, ("kind",))
        for item in fields.items("permissions")
    ]
    ids = allocate([(each.value("id", read_id), permission_base(id_, number)) for number, each in enumerate(items)])
    permissions = []
    for number, (each, name) in enumerate(zip(items, ids, strict=True)):
        fields.findings.places["acl_role", id_, "permission", str(number)] = each.map.place
        permissions.append(
            AclPermission(
                name,
                Right(each.value("kind", choice(tuple(map(str, Right)))) or Right.DENY),
                each.text("xpath") or "",
                each.text("reference") or "",
                each.text("object-type") or "",
                each.text("attribute") or "",
                each.text("description") or "",
            )
        )
    return AclRole(id_, tuple(permissions), fields.text("description") or "")


ROLE_KINDS = {"role": Kind("acl_role", _role, ("description", "permissions"))}


def read_holders(findings: Findings, top: Fields, key: str) -> Iterable[Define]:
    """Read a mapping of users, or of groups, to their roles: a list, or a mapping with `roles` and `name`."""
    tree = top.tree(key)
    if tree is None:
        return
    kind, type_ = ("acl_target", AclTarget) if key == TARGETS else ("acl_group", AclGroup)
    holders = as_map(findings, tree, key)
    for account, entry in holders.entries.items():
        local, place = Findings(findings.reports), holders.key_places[account]
        local.places[kind, account] = place
        if not ACCOUNT.match(account):
            local.note(Code.BAD_ID, place, id=account, remedy="write the name of a user or group")
        fields = Fields(local, f"{key}: {account}", entry, ("name", "roles")) if isinstance(entry, Map) else None
        found = read_words(local, fields.tree("roles") if fields is not None else entry, f"{key}: {account}")
        for role, item in found:
            local.places[kind, account, role] = item.place
            if not NCNAME.match(role):
                local.note(Code.BAD_ID, item.place, id=role)
        roles = tuple(dict.fromkeys(role for role, _ in found))
        name = (fields.text("name") or "") if fields is not None else ""
        yield Define(type_(account, roles, name), place, local.places)


def write_role(role: AclRole) -> Tree:
    """Write one role."""
    with_ids = [each.id for each in role.permissions] != [
        permission_base(role.id, number) for number in range(len(role.permissions))
    ]
    permissions: list[Tree] = [_permission(each, with_id=with_ids) for each in role.permissions]
    return given(
        {"role": role.id, "description": text(role.description or None), "permissions": permissions or None}
    )


def _permission(permission: AclPermission, *, with_id: bool) -> Tree:
    return Inline(
        given(
            {
                "id": permission.id if with_id else None,
                "kind": str(permission.right),
                "xpath": text(permission.xpath or None),
                "reference": text(permission.reference or None),
                "object-type": text(permission.object_type or None),
                "attribute": text(permission.attribute or None),
                "description": text(permission.description or None),
            }
        )
    )


def write_holders(holders: Iterable[AclTarget | AclGroup]) -> Tree:
    """Write users or groups with their roles."""
    return {
        each.id: {"name": text(each.name), "roles": InlineList(each.roles)} if each.name else InlineList(each.roles)
        for each in holders
    }
