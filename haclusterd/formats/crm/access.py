"""Access control lists in crm statements (crmsh 4.4, "configure role", "acl_target", "acl_group", "user").

`role ID [description=TEXT] {read|write|deny [PERMISSION:] SPECIFICATION...}`, where a specification is `xpath:PATH`, a
shortcut for one (`meta:RSC[:NAME]`, `cib`, ...), `ref:ID`, or `type:ELEMENT [attribute:NAME]`; `tag:` is another word
for `type:`. Each makes a permission. `user NAME` with `role:ROLE` words is `acl_target NAME ROLE...`; with permissions
of its own it has them in the role `auto-NAME`, as `cibadmin --upgrade` puts them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from haclusterd.formats.crm.cursor import Cursor
from haclusterd.formats.crm.tokens import Token, quote, quote_value, quoted
from haclusterd.formats.generated_ids import allocate, own_role_of, permission_base
from haclusterd.formats.statements import Define
from haclusterd.model.access import (
    ACCOUNT,
    AclGroup,
    AclObject,
    AclPermission,
    AclRole,
    AclTarget,
    Right,
)
from haclusterd.model.ids import NCNAME
from haclusterd.model.records import dataclass, replace
from haclusterd.reports.codes import Code
from haclusterd.reports.suggestions import did_you_mean

NEXT = " \\\n\t"
_DESCRIPTION = "description="
_ROLE = "role:"
_XPATH, _REFERENCE, _TYPES, _ATTRIBUTES = "xpath", "ref", ("type", "tag"), ("attribute", "attr")


@dataclass(frozen=True, slots=True)
class _Shortcut:
    """A word for an XPath."""

    paths: tuple[str, ...]
    """With no word after it, with one, with two; empty: that many words are too few."""


SHORTCUTS: Final[Mapping[str, _Shortcut]] = {
    "meta": _Shortcut(("", "//primitive[@id='{0}']/meta_attributes",
                       "//primitive[@id='{0}']/meta_attributes/nvpair[@name='{1}']")),
    "params": _Shortcut(("", "//primitive[@id='{0}']/instance_attributes",
                         "//primitive[@id='{0}']/instance_attributes/nvpair[@name='{1}']")),
    "utilization": _Shortcut(("", "//primitive[@id='{0}']/utilization")),
    "location": _Shortcut(("", "//rsc_location[@id='cli-prefer-{0}' and @rsc='{0}']")),
    "property": _Shortcut(("//crm_config/cluster_property_set",
                           "//crm_config/cluster_property_set/nvpair[@name='{0}']")),
    "node": _Shortcut(("//nodes/node", "//nodes/node[@uname='{0}']")),
    "nodeattr": _Shortcut(("//nodes/node/instance_attributes",
                           "//nodes/node/instance_attributes/nvpair[@name='{0}']")),
    "nodeutil": _Shortcut(("//nodes/node/utilization", "//nodes/node/utilization[@uname='{0}']")),
    "status": _Shortcut(("/cib/status",)),
    "cib": _Shortcut(("/cib",)),
}  # fmt: skip
_ARGUMENT = r"([\w.-]+)"
_PATTERNS: Final = tuple(
    (re.compile(re.escape(path).replace(r"\{0\}", _ARGUMENT, 1).replace(r"\{0\}", r"\1").replace(r"\{1\}", _ARGUMENT)),
     word)
    for word, shortcut in SHORTCUTS.items()
    for path in shortcut.paths
    if path
)  # fmt: skip


def read_role(cursor: Cursor) -> Define:
    """Read one role."""
    at = cursor.peek()
    id_ = cursor.id("the role's id")
    assert at is not None
    cursor.mark("acl_role", id_, at=at)
    description = _description(cursor)
    role = AclRole(id_, _permissions(cursor, id_), description)
    return _define(cursor, role)


def read_target(cursor: Cursor) -> Define:
    """Read `acl_target USER ROLE...`."""
    id_, name = _account(cursor, "acl_target", "a user")
    return _define(cursor, AclTarget(id_, _roles(cursor, "acl_target", id_), name))


def read_acl_group(cursor: Cursor) -> Define:
    """Read `acl_group GROUP ROLE...`."""
    id_, name = _account(cursor, "acl_group", "a group of users")
    return _define(cursor, AclGroup(id_, _roles(cursor, "acl_group", id_), name))


def read_user(cursor: Cursor) -> Sequence[Define]:
    """Read `user NAME {role:ROLE...|PERMISSIONS}`, as older CIBs had it."""
    id_, _ = _account(cursor, "acl_target", "a user")
    roles: list[str] = []
    while (token := cursor.peek()) is not None and token.text.lower().startswith(_ROLE):
        cursor.take(_ROLE)
        roles.append(_role(cursor, token, token.text[len(_ROLE) :], "acl_target", id_))
    if cursor.is_at_end:
        return (_define(cursor, AclTarget(id_, tuple(dict.fromkeys(roles)))),)
    own = own_role_of(id_)
    head = cursor.line.tokens[1]
    if not NCNAME.match(own):
        raise cursor.refuse(Code.BAD_ID, head, id=own)
    cursor.mark("acl_role", own, at=head)
    role = _define(cursor, AclRole(own, _permissions(cursor, own)))
    return role, replace(role, object=AclTarget(id_, tuple(dict.fromkeys((*roles, own)))))


def _define(cursor: Cursor, made: AclObject) -> Define:
    return Define(made, cursor.line.place, cursor.places, cursor.line.comments)


def _description(cursor: Cursor) -> str:
    token = cursor.peek()
    if token is None or not token.text.startswith(_DESCRIPTION):
        return ""
    cursor.take(_DESCRIPTION)
    pair = cursor.pair(token)
    assert pair is not None
    return pair[1]


def _account(cursor: Cursor, kind: str, expected: str) -> tuple[str, str]:
    """Read an id, and maybe `name=NAME` after it."""
    token = cursor.take(expected)
    if not ACCOUNT.match(token.text):
        raise cursor.refuse(Code.BAD_ID, token, id=token.text, remedy=f"write the name of {expected}")
    cursor.mark(kind, token.text, at=token)
    following = cursor.peek()
    if following is None or not following.text.startswith("name="):
        return token.text, ""
    cursor.take("name=")
    name = following.text.removeprefix("name=")
    if not ACCOUNT.match(name):
        raise cursor.refuse(Code.BAD_ID, following, id=name, remedy=f"write the name of {expected}")
    return token.text, name


def _roles(cursor: Cursor, kind: str, id_: str) -> tuple[str, ...]:
    found: list[str] = []
    while not cursor.is_at_end:
        token = cursor.take("a role")
        found.append(_role(cursor, token, token.text.removeprefix(_ROLE), kind, id_))
    return tuple(dict.fromkeys(found))


def _role(cursor: Cursor, at: Token, name: str, kind: str, id_: str) -> str:
    if not NCNAME.match(name):
        raise cursor.refuse(Code.BAD_ID, at, id=name)
    cursor.mark(kind, id_, name, at=at)
    return name


@dataclass(frozen=True, slots=True)
class _Read:
    """A permission whose id may be missing."""

    given_id: str | None
    permission: AclPermission
    at: Token


def _permissions(cursor: Cursor, role: str) -> tuple[AclPermission, ...]:
    found: list[_Read] = []
    while not cursor.is_at_end:
        token = cursor.take("read, write or deny")
        word = token.text.lower()
        if token.is_quoted or word not in set(Right):
            cursor.back()
            raise cursor.expected("read, write or deny")
        found += _of_right(cursor, Right(word))
    ids = allocate([(each.given_id, permission_base(role, number)) for number, each in enumerate(found)])
    made = []
    for number, (each, id_) in enumerate(zip(found, ids, strict=True)):
        cursor.mark("acl_role", role, "permission", str(number), at=each.at)
        made.append(replace(each.permission, id=id_))
    return tuple(made)


def _of_right(cursor: Cursor, right: Right) -> list[_Read]:
    """Read what follows `read`, `write` or `deny`: each specification makes a permission."""
    given, attribute, description = None, "", ""
    found: list[_Read] = []
    while (token := cursor.peek()) is not None and not (token.text.lower() in set(Right) and not token.is_quoted):
        cursor.take("what it is about")
        word, _, rest = token.text.partition(":")
        if not rest and token.text.endswith(":") and NCNAME.match(word) and given is None and not found:
            given = word
        elif token.text.startswith(_DESCRIPTION):
            cursor.back()
            description = _description(cursor)
        elif word in _ATTRIBUTES and rest:
            attribute = rest
        else:
            made = replace(_specified(cursor, token, word, rest), right=right)
            found.append(_Read(given, made, token))
            given = None
    if not found:
        raise cursor.expected("xpath:PATH, ref:ID, type:ELEMENT or a shortcut")
    return [_completed(cursor, each, attribute, description) for each in found]


def _completed(cursor: Cursor, read: _Read, attribute: str, description: str) -> _Read:
    if attribute and not read.permission.object_type:
        raise cursor.refuse(Code.UNEXPECTED, read.at, construct=cursor.construct, found=f"attribute:{attribute}",
                            remedy="attribute: is allowed with type: only")  # fmt: skip
    return replace(read, permission=replace(read.permission, attribute=attribute, description=description))


def _specified(cursor: Cursor, token: Token, word: str, rest: str) -> AclPermission:
    made = AclPermission("", Right.READ)
    if word == _XPATH and rest:
        return replace(made, xpath=_unquoted(rest))
    if word == _REFERENCE and rest:
        return replace(made, reference=rest)
    if word in _TYPES and rest:
        return replace(made, object_type=rest)
    shortcut = SHORTCUTS.get(word)
    if shortcut is None:
        known = (_XPATH, _REFERENCE, *_TYPES, *SHORTCUTS)
        raise cursor.refuse(Code.UNEXPECTED, token, construct=cursor.construct, found=token.text,
                            remedy=did_you_mean(word, known, f"one of: {', '.join(known)}"))  # fmt: skip
    words = token.text.split(":")[1:]
    if len(words) >= len(shortcut.paths) or not shortcut.paths[len(words)] or not all(map(_is_plain, words)):
        forms = [":".join((word, *("NAME",) * count)) for count, path in enumerate(shortcut.paths) if path]
        raise cursor.refuse(Code.UNEXPECTED, token, construct=cursor.construct, found=token.text,
                            remedy=f"write {' or '.join(forms)}")  # fmt: skip
    return replace(made, xpath=shortcut.paths[len(words)].format(*words))


def _is_plain(word: str) -> bool:
    return bool(word) and "'" not in word


def _unquoted(text: str) -> str:
    is_quoted = len(text) >= 2 and text[0] == text[-1] == '"'
    return text[1:-1] if is_quoted else text


def write_access(made: AclObject) -> str:
    """Write one object."""
    match made:
        case AclRole():
            return _written_role(made)
        case AclTarget():
            return _written_holder("acl_target", made)
        case AclGroup():
            return _written_holder("acl_group", made)


def _written_holder(head: str, holder: AclTarget | AclGroup) -> str:
    name = f" name={quote_value(holder.name)}" if holder.name else ""
    return f"{head} {quote(holder.id)}{name}" + "".join(NEXT + quote(role) for role in holder.roles)


def _written_role(role: AclRole) -> str:
    text = f"role {role.id}" + (f"{NEXT}{_DESCRIPTION}{quote_value(role.description)}" if role.description else "")
    bases = [permission_base(role.id, number) for number in range(len(role.permissions))]
    with_ids = [each.id for each in role.permissions] != bases
    return text + "".join(NEXT + _written(each, with_id=with_ids) for each in role.permissions)


def _written(permission: AclPermission, *, with_id: bool) -> str:
    words = [str(permission.right), *([f"{permission.id}:"] if with_id else [])]
    if permission.xpath:
        words.append(_shortened(permission.xpath))
    elif permission.reference:
        words.append(f"{_REFERENCE}:{quote(permission.reference)}")
    else:
        words += [f"attr:{permission.attribute}"] if permission.attribute else []
        words.append(f"type:{permission.object_type}")
    words += [f"{_DESCRIPTION}{quote_value(permission.description)}"] if permission.description else []
    return " ".join(words)


def _shortened(xpath: str) -> str:
    """Return the shortcut for a path, or the path."""
    for pattern, word in _PATTERNS:
        found = pattern.fullmatch(xpath)
        if found is not None:
            return ":".join((word, *found.groups()))
    return f"{_XPATH}:{quoted(xpath)}"
