"""Access control lists: what principals may read and write of the CIB (Pacemaker Explained, "Access Control Lists").

A permission names elements of the CIB as XML shows it: by XPath, by id, or by the kind of element. For an element the
permissions of the nearest element count, itself or one around it, that any permission names; where several name that
one, deny comes before write, and write before read. What none names is denied.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from haclusterd.model.records import dataclass

ENABLED: Final = "enable-acl"
"""The cluster property without which access control lists mean nothing for users of a node's machine."""
SUPERUSER: Final = "hacluster"
"""The user who, beside root and the one who runs the daemon, is never restricted: Pacemaker's own."""
PERMISSIONS_MAX: Final = 1000
"""In all roles together."""
ACCOUNT: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@$+-]{0,254}\Z")
"""Names of users and groups."""


class Right(StrEnum):
    """What a permission says of the elements that it names."""

    READ = "read"
    WRITE = "write"
    DENY = "deny"


class SimpleRole(StrEnum):
    """Roles that exist without being configured, unless a role of that name is."""

    VIEWER = "viewer"
    """Look, but not at secrets."""
    OPERATOR = "operator"
    """Also start, stop, move, clean up, standby."""
    ADMIN = "admin"
    """Everything."""


@dataclass(frozen=True, slots=True)
class AclPermission:
    """One rule of a role; exactly one of `xpath`, `reference` and `object_type` is written."""

    id: str
    right: Right
    xpath: str = ""
    reference: str = ""
    """The id of an element."""
    object_type: str = ""
    """The name of elements: `nvpair`, `primitive`."""
    attribute: str = ""
    """With `object_type`: only elements that have this attribute."""
    description: str = ""


@dataclass(frozen=True, slots=True)
class AclRole:
    """Permissions under one name."""

    id: str
    permissions: tuple[AclPermission, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class AclTarget:
    """A user with their roles."""

    id: str
    roles: tuple[str, ...] = ()
    name: str = ""
    """The user's name; empty: the id."""

    @property
    def account(self) -> str:
        """Whom it is about."""
        return self.name or self.id


@dataclass(frozen=True, slots=True)
class AclGroup:
    """A group of users with its roles."""

    id: str
    roles: tuple[str, ...] = ()
    name: str = ""
    """The group's name; empty: the id."""

    @property
    def account(self) -> str:
        """Whom it is about."""
        return self.name or self.id


AclObject = AclRole | AclTarget | AclGroup


def kind_of(made: AclObject) -> str:
    """Return the word by which texts and edits call such an object."""
    match made:
        case AclRole():
            return "acl_role"
        case AclTarget():
            return "acl_target"
        case AclGroup():
            return "acl_group"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: a user of a node's machine with their groups, or the bearer of a token."""

    user: str = ""
    groups: tuple[str, ...] = ()
    """Of the user; by name."""
    token: str = ""
    """The name of the token that was shown; empty: none was, and the user counts."""
    token_role: str = ""
    """A `SimpleRole`, or the name of a configured role."""
    is_superuser: bool = False
    """Root, who runs the daemon, or `SUPERUSER`: never restricted."""

    def __str__(self) -> str:
        return f"token {self.token}" if self.token else f"user {self.user}"


def described(permission: AclPermission) -> str:
    """Return what a permission says, in the words of crm: `deny xpath:"//nvpair[@name='password']"`."""
    return " ".join((str(permission.right), *specification(permission)))


def specification(permission: AclPermission) -> Iterator[str]:
    """Yield the words that name the elements."""
    if permission.xpath:
        yield f'xpath:"{permission.xpath}"'
    elif permission.reference:
        yield f"ref:{permission.reference}"
    else:
        yield f"type:{permission.object_type}"
        if permission.attribute:
            yield f"attribute:{permission.attribute}"
