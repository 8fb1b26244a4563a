"""Fencing topology in crm statements (cli.md §4.4; Pacemaker Explained, "Fencing Topologies").

`fencing_topology {TARGET LEVEL...}`: a level is devices joined by commas, the levels of a target count from 1. Beyond
crmsh, a level may name its index (`3:f1,f2`), and an id may come before it (`$id=x 3:f1`).
"""

import re

from haclusterd.formats.crm.blocks import read_given_id
from haclusterd.formats.crm.cursor import Cursor
from haclusterd.formats.crm.tokens import Token
from haclusterd.formats.statements import DefineLevels
from haclusterd.model.configuration import FencingLevel
from haclusterd.model.ids import NCNAME, ResourceId
from haclusterd.model.records import replace
from haclusterd.model.words import ATTRIBUTE_NAME, bad_character
from haclusterd.reports.codes import Code

ATTRIBUTE, PATTERN = "attr:", "pattern:"
MAX_INDEX = 9
"""Pacemaker knows no more levels of one target."""

_LEVEL = re.compile(r"(?:(?P<index>\d{1,9}):)?(?P<devices>[^:]+)\Z")


def read_topology(cursor: Cursor) -> DefineLevels:
    """Read `fencing_topology LEVEL...` (for every node) or `fencing_topology {TARGET LEVEL...}`."""
    levels: list[FencingLevel] = []
    target: FencingLevel | None = None
    index, count = 0, 0
    is_for_all = False
    while not cursor.is_at_end:
        given = _read_id(cursor)
        token = cursor.take("NODE: or the ids of devices, joined by commas")
        found = _read_target(cursor, token) if not given else None
        if found is not None:
            _check_end_of_target(cursor, target, count)
            target, index, count = found, 0, 0
            continue
        if target is None:
            is_for_all, target = True, FencingLevel("", 0, ())
        index, devices = _read_level(cursor, token, index + 1)
        levels.append(replace(target, id=given, index=index, devices=devices))
        cursor.mark("fencing_level", str(len(levels) - 1), at=token)
        count += 1
    _check_end_of_target(cursor, target, count)
    if not levels:
        raise cursor.expected("NODE: and the ids of devices")
    return DefineLevels(tuple(levels), cursor.line.place, is_for_all, cursor.places, cursor.line.comments)


def _check_end_of_target(cursor: Cursor, target: FencingLevel | None, count: int) -> None:
    if target is not None and not count:
        raise cursor.expected("the ids of devices")


def _read_id(cursor: Cursor) -> str:
    token = cursor.peek()
    if token is None or not token.text.lower().startswith("$id="):
        return ""
    cursor.take("$id=")
    return read_given_id(cursor, token)


def _read_target(cursor: Cursor, token: Token) -> FencingLevel | None:
    """Return a level that has only a target; None when the token names none."""
    text = token.text
    if text.startswith(ATTRIBUTE) and "=" in text:
        name, _, value = text.removeprefix(ATTRIBUTE).partition("=")
        if not ATTRIBUTE_NAME.match(name) or bad_character(value):
            problem = f"{name!r} cannot be a name"
            raise cursor.refuse(Code.BAD_VALUE, token, name="attribute name", problem=problem)
        return FencingLevel("", 0, (), target_attribute=name, target_value=value)
    if text.startswith(PATTERN) and text != PATTERN:
        character = bad_character(text)
        if character:
            raise cursor.refuse(Code.BAD_CHARACTER, token, name="pattern", character=character)
        return FencingLevel("", 0, (), target_pattern=text.removeprefix(PATTERN))
    if not text.endswith(":"):
        return None
    cursor.check_node_name(text[:-1], token)
    return FencingLevel("", 0, (), target=text[:-1])


def _read_level(cursor: Cursor, token: Token, natural: int) -> tuple[int, tuple[ResourceId, ...]]:
    found = _LEVEL.match(token.text)
    devices = found["devices"].split(",") if found else [token.text]
    for device in devices:
        if not NCNAME.match(device):
            raise cursor.refuse(Code.BAD_ID, token, id=device)
    return (int(found["index"]) if found and found["index"] else natural), tuple(map(ResourceId, devices))
