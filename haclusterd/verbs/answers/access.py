"""What the verbs about access control answer."""

from typing import ClassVar

from haclusterd.model.records import dataclass
from haclusterd.verbs.answers.answer import Answer


@dataclass(frozen=True, slots=True)
class AclVerdict(Answer):
    """Whether a verb may be asked."""

    SCHEMA: ClassVar[str] = "haclusterd.acl_verdict/1"
    who: str
    verb: str
    object: str
    is_permitted: bool
    permission: str
    """The least that the verb needs."""
    why: str
    """What gave the right, or the rule that denies it."""
    is_in_force: bool
    """Whether access control lists are."""


@dataclass(frozen=True, slots=True)
class ElementRight:
    """What may be done with an element, and with what is in it unless another row says otherwise."""

    element: str
    right: str
    """read, write or deny."""
    rule: str


@dataclass(frozen=True, slots=True)
class AclRights(Answer):
    """What may be done with parts of the CIB."""

    SCHEMA: ClassVar[str] = "haclusterd.acl_rights/1"
    who: str
    why: str
    elements: tuple[ElementRight, ...]
    left_out: int
    """How many more rows there are."""
    is_in_force: bool


@dataclass(frozen=True, slots=True)
class AclRoleRow:
    """A role with its permissions, in the words of crm."""

    role: str
    description: str
    permissions: tuple[str, ...]
    is_simple: bool
    """It exists without being configured."""


@dataclass(frozen=True, slots=True)
class AclHolder:
    """Who has roles."""

    kind: str
    """user, group or token."""
    name: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AclListing(Answer):
    """Roles, and who has them."""

    SCHEMA: ClassVar[str] = "haclusterd.acl_list/1"
    is_in_force: bool
    control_group_permission: str
    """What members of haclient may where the lists are not in force."""
    roles: tuple[AclRoleRow, ...]
    holders: tuple[AclHolder, ...]
