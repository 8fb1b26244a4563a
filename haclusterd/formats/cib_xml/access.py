"""Access control lists in CIB XML (acls-3.8.rng; what acls-1.2.rng had is read as Pacemaker upgrades it).

An `acl_user` of old becomes an `acl_target`; its own permissions become the role `auto-USER`, as `cibadmin --upgrade`
names it.
"""

from collections.abc import Iterator
from typing import TypeVar

from haclusterd.formats.cib_xml.elements import element
from haclusterd.formats.cib_xml.notes import Notes
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.formats.generated_ids import own_role_of
from haclusterd.model.access import AclGroup, AclPermission, AclRole, AclTarget, Right
from haclusterd.reports.codes import Code

_OLD_RIGHTS = tuple(map(str, Right))
_OLD_NAMES = {"ref": "reference", "tag": "object-type"}
_PERMISSION = ("id", "kind", "xpath", "reference", "object-type", "attribute", "description")
_Object = TypeVar("_Object", AclRole, AclTarget, AclGroup)


class AccessReader:
    """Reads the section `acls`."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self.roles: dict[str, AclRole] = {}
        self.targets: dict[str, AclTarget] = {}
        self.groups: dict[str, AclGroup] = {}

    def read(self, section: Element) -> None:
        """Read one section; what cannot be read is in the notes."""
        notes = self._notes
        notes.expect_only(section, (), ("acl_role", "acl_target", "acl_group", "acl_user"))
        for child in section.all("acl_role"):
            notes.expect_only(child, ("id", "description"), ("acl_permission", *_OLD_RIGHTS))
            identifier = notes.required(child, "id")
            if identifier is not None:
                made = AclRole(identifier, tuple(self._permissions(child)), child.get("description") or "")
                self._add(child, self.roles, made)
        for child in section.all("acl_target"):
            identifier, roles = self._roles(child, "role")
            if identifier is not None:
                self._add(child, self.targets, AclTarget(identifier, roles, child.get("name") or ""))
        for child in section.all("acl_group"):
            identifier, roles = self._roles(child, "role")
            if identifier is not None:
                self._add(child, self.groups, AclGroup(identifier, roles, child.get("name") or ""))
        for child in section.all("acl_user"):
            self._user(child)

    def _add(self, element_: Element, objects: dict[str, _Object], made: _Object) -> None:
        if made.id in objects:
            self._notes.note(Code.DUPLICATE_ID, element_, id=made.id)
        else:
            objects[made.id] = made

    def _roles(self, owner: Element, tag: str) -> tuple[str | None, tuple[str, ...]]:
        self._notes.expect_only(owner, ("id", "name"), (tag,))
        found = [self._notes.required(child, "id") for child in owner.all(tag)]
        for child in owner.all(tag):
            self._notes.expect_only(child, ("id",))
        return self._notes.required(owner, "id"), tuple(dict.fromkeys(each for each in found if each is not None))

    def _user(self, user: Element) -> None:
        self._notes.expect_only(user, ("id",), ("role_ref", *_OLD_RIGHTS))
        identifier = self._notes.required(user, "id")
        if identifier is None:
            return
        found = [self._notes.required(child, "id") for child in user.all("role_ref")]
        roles = [each for each in found if each is not None]
        own = tuple(self._permissions(user))
        if own:
            role = own_role_of(identifier)
            self._add(user, self.roles, AclRole(role, own))
            roles.append(role)
        self._add(user, self.targets, AclTarget(identifier, tuple(dict.fromkeys(roles))))

    def _permissions(self, owner: Element) -> Iterator[AclPermission]:
        for child in owner.children:
            if child.tag == "acl_permission":
                self._notes.expect_only(child, _PERMISSION)
                yield from self._permission(child, child.attributes)
            elif child.tag in _OLD_RIGHTS:
                self._notes.expect_only(child, ("id", "xpath", "ref", "tag", "attribute"))
                now = {_OLD_NAMES.get(name, name): value for name, value in child.attributes.items()}
                if "reference" in now:  # As the upgrade of Pacemaker does.
                    now.pop("object-type", None)
                    now.pop("attribute", None)
                yield from self._permission(child, {**now, "kind": child.tag})

    def _permission(self, at: Element, attributes: dict[str, str]) -> Iterator[AclPermission]:
        identifier, kind = self._notes.required(at, "id"), attributes.get("kind", "")
        if kind not in set(Right):
            problem = f"{kind!r} is not one of: {', '.join(Right)}"
            self._notes.note(Code.BAD_VALUE, at, name=f"<{at.tag} kind>", problem=problem)
        elif identifier is not None:
            yield AclPermission(
                identifier,
                Right(kind),
                attributes.get("xpath", ""),
                attributes.get("reference", ""),
                attributes.get("object-type", ""),
                attributes.get("attribute", ""),
                attributes.get("description", ""),
            )


def role_lines(role: AclRole) -> Iterator[str]:
    """Yield the lines of a role."""
    inside = (line for each in role.permissions for line in _permission_lines(each))
    return element("acl_role", {"id": role.id, "description": role.description or None}, inside)


def _permission_lines(permission: AclPermission) -> Iterator[str]:
    attributes = {
        "id": permission.id,
        "kind": str(permission.right),
        "xpath": permission.xpath or None,
        "reference": permission.reference or None,
        "object-type": permission.object_type or None,
        "attribute": permission.attribute or None,
        "description": permission.description or None,
    }
    return element("acl_permission", attributes)


def holder_lines(holder: AclTarget | AclGroup) -> Iterator[str]:
    """Yield the lines of a user or group with their roles."""
    tag = "acl_target" if isinstance(holder, AclTarget) else "acl_group"
    inside = (line for role in holder.roles for line in element("role", {"id": role}))
    return element(tag, {"id": holder.id, "name": holder.name or None}, inside)
