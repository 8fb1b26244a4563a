"""Alerts in crm statements (crmsh 4.4, "configure alert"; Pacemaker Explained, "Alerts").

`alert ID PATH [description=TEXT] {attributes ... | meta ... | select KIND... | to RECIPIENT ...}`, where a recipient is
a value, or `{ VALUE [description=TEXT] [attributes ...] [meta ...] }`. What follows a recipient without braces belongs
to it. Beyond crmsh, an id may come before the value: `to { $id=ID VALUE }`.
"""

from haclusterd.formats.crm.blocks import Block, finish, read_block, read_given_id, section_word
from haclusterd.formats.crm.cursor import Cursor
from haclusterd.formats.crm.tokens import Token
from haclusterd.formats.generated_ids import allocate, recipient_base
from haclusterd.formats.statements import Define
from haclusterd.model.configuration import Alert, AlertKind, AlertRecipient
from haclusterd.model.records import dataclass, field
from haclusterd.model.words import ATTRIBUTE_NAME, bad_character
from haclusterd.reports.codes import Code

OPENING, CLOSING = "{", "}"
_SELECT, _TO = "select", "to"
_ENDS = frozenset({OPENING, CLOSING, _SELECT, _TO})
_SECTIONS = frozenset({"attributes", "params", "meta"})
_DESCRIPTION = "description="


@dataclass(slots=True)
class _Open:
    """An alert, or one of its recipients, while it is read."""

    value: str
    given_id: str | None = None
    description: str = ""
    blocks: list[Block] = field(default_factory=list)


@dataclass(slots=True)
class _Selected:
    """What `select` names."""

    kinds: set[AlertKind] = field(default_factory=set)
    attributes: list[str] = field(default_factory=list)


def read_alert(cursor: Cursor) -> Define:
    """Read one alert with its recipients."""
    at = cursor.peek()
    id_ = cursor.id("the alert's id")
    assert at is not None
    cursor.mark("alert", id_, at=at)
    alert = _Open(_text(cursor, "the path of a program", "alert", id_, "path"))
    recipients: list[_Open] = []
    selected: _Selected | None = None
    _read_description(cursor, alert)
    while not cursor.is_at_end:
        token = cursor.take("a section")
        word = _word(token)
        if word == _SELECT:
            selected = selected or _Selected()
            _read_select(cursor, selected)
        elif word == _TO:
            recipients.append(_read_recipient(cursor, id_, len(recipients)))
        elif word in _SECTIONS:
            cursor.back()
            _read_section(cursor, alert)
        else:
            raise cursor.refuse(Code.UNEXPECTED, token, construct=cursor.construct, found=token.text)
    return Define(
        _made(cursor, id_, alert, selected, recipients),
        cursor.line.place, cursor.places, cursor.line.comments, cursor.pairs,
    )  # fmt: skip


def _made(cursor: Cursor, id_: str, alert: _Open, selected: _Selected | None, recipients: list[_Open]) -> Alert:
    own = finish(cursor, id_, alert.blocks, "alert", id_)
    ids = allocate([(each.given_id, recipient_base(id_)) for each in recipients])
    made: list[AlertRecipient] = []
    for number, (each, name) in enumerate(zip(recipients, ids, strict=True)):
        blocks = finish(cursor, name, each.blocks, "alert", id_, "recipient", str(number))
        made.append(AlertRecipient(name, each.value, each.description, blocks["attributes"], blocks["meta"]))
    select = None if selected is None else tuple(kind for kind in AlertKind if kind in selected.kinds)
    attributes = () if selected is None else tuple(dict.fromkeys(selected.attributes))
    return Alert(
        id_, alert.value, alert.description, select, attributes, own["attributes"], own["meta"], tuple(made)
    )


def _word(token: Token | None) -> str | None:
    return None if token is None or token.is_quoted else token.text.lower()


def _text(cursor: Cursor, expected: str, *path: str) -> str:
    token = cursor.take(expected)
    character = bad_character(token.text)
    if character:
        raise cursor.refuse(Code.BAD_CHARACTER, token, name=path[-1], character=character)
    if not token.text:
        cursor.back()
        raise cursor.expected(expected)
    cursor.mark(*path, at=token)
    return token.text


def _read_description(cursor: Cursor, owner: _Open) -> None:
    token = cursor.peek()
    if token is None or not token.text.startswith(_DESCRIPTION):
        return
    cursor.take(_DESCRIPTION)
    pair = cursor.pair(token)
    assert pair is not None
    owner.description = pair[1]


def _read_section(cursor: Cursor, owner: _Open) -> None:
    token = cursor.take("a section")
    section = "attributes" if _word(token) == "params" else token.text.lower()
    owner.blocks.append(read_block(cursor, section, _ENDS))


def _read_select(cursor: Cursor, selected: _Selected) -> None:
    before = len(selected.kinds)
    while True:
        token = cursor.peek()
        word = _word(token)
        if word not in set(AlertKind):
            break
        cursor.take("a kind of event")
        if word == AlertKind.ATTRIBUTES:
            follower = _word(cursor.peek())
            if follower is not None and "=" in follower:  # A section of pairs.
                cursor.back()
                break
            if follower == OPENING:
                cursor.take(OPENING)
                _read_names(cursor, selected)
        selected.kinds.add(AlertKind(str(word)))
    if len(selected.kinds) == before:
        raise cursor.expected("nodes, fencing, resources or attributes")


def _read_names(cursor: Cursor, selected: _Selected) -> None:
    while True:
        token = cursor.take(CLOSING)
        if _word(token) == CLOSING:
            return
        if not ATTRIBUTE_NAME.match(token.text):
            raise cursor.refuse(
                Code.BAD_VALUE, token, name="attribute name", problem=f"{token.text!r} cannot be a name"
            )
        selected.attributes.append(token.text)


def _read_recipient(cursor: Cursor, alert: str, number: int) -> _Open:
    is_braced = _word(cursor.peek()) == OPENING
    if is_braced:
        cursor.take(OPENING)
    token = cursor.peek()
    given = None
    if token is not None and token.text.lower().startswith("$id=") and not token.is_quoted:
        cursor.take("$id=")
        given = read_given_id(cursor, token)
    recipient = _Open(_text(cursor, "a recipient", "alert", alert, "recipient", str(number)), given)
    _read_description(cursor, recipient)
    while section_word(cursor.peek()) in _SECTIONS:
        _read_section(cursor, recipient)
    if is_braced and _word(cursor.peek()) != CLOSING:
        raise cursor.expected(CLOSING)
    if is_braced:
        cursor.take(CLOSING)
    return recipient
