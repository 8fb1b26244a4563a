"""Blocks of attributes in crm statements: `[$id=ID] [SCORE:] [rule ...] {name=value}`, and the words that open them.

(cli.md §4.2.) Or, instead, `$id-ref=ID`. Pairs may have ids or be references to such (`$ID:NAME=VALUE`, `@ID[:NAME]`).
A block's id is made later, when all blocks of its owner are read: a generated id must not collide with a
given one.
"""

import re
from collections.abc import Collection, Mapping, Sequence

from haclusterd.formats.crm.cursor import Cursor
from haclusterd.formats.crm.rules import OpenRule, finish_rules, read_rule
from haclusterd.formats.crm.tokens import Token
from haclusterd.formats.generated_ids import allocate, block_base
from haclusterd.formats.statements import PAIR_REFERENCE, REFERENCE
from haclusterd.model import scores
from haclusterd.model.configuration import AttributeSet, PairNote
from haclusterd.model.ids import NCNAME
from haclusterd.model.records import dataclass, field
from haclusterd.model.words import ATTRIBUTE_NAME
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.suggestions import nearest

SECTION_WORDS = frozenset(
    {"params", "meta", "utilization", "operations", "op", "op_params", "op_meta", "rule", "attributes"}
)

_ATTRIBUTE_SECTIONS = ("params", "meta", "utilization", "attributes")

_SCORE = re.compile(r"(?P<score>[+-]?(\d+|inf|infinity)|mandatory|advisory):\Z", re.IGNORECASE)


@dataclass(slots=True)
class Block:
    """A block as it is being read."""

    section: str
    """params, meta, utilization or attributes."""
    given_id: str | None = None
    score: int = 0
    has_score: bool = False
    reference: str = ""
    """What stands instead of a block: the id that it refers to."""
    rule: OpenRule | None = None
    pairs: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    """Where each pair stands."""
    notes: dict[str, PairNote] = field(default_factory=dict)
    """Of pairs with ids, by name."""
    valueless: list[str] = field(default_factory=list)


def section_word(token: Token | None) -> str | None:
    """Return the section word that a token is, in lower case; quoted words are none."""
    if token is None or token.is_quoted:
        return None
    word = token.text.lower()
    return word if word in SECTION_WORDS else None


def read_score(token: Token) -> int | None:
    """Return the score that a token such as `100:` or `-inf:` is; None when it is none."""
    found = _SCORE.match(token.text)
    if found is None or token.is_quoted:
        return None
    try:
        return scores.parse(found["score"])
    except ValueError:
        return None


def read_block(cursor: Cursor, section: str, ends: Collection[str] = ()) -> Block:
    """Read the body of a block, up to a section word, one of the words `ends`, or the end."""
    block = open_block(cursor, section)
    while True:
        token = cursor.peek()
        word = section_word(token)
        if word == "rule":
            read_block_rule(cursor, block)
            continue
        if token is None or word is not None or (token.text.lower() in ends and not token.is_quoted):
            return block
        cursor.take("a pair")
        read_pair(cursor, block, token)


def open_block(cursor: Cursor, section: str) -> Block:
    """Begin a block: read its id and score, when they are there."""
    block = Block(section)
    token = cursor.peek()
    if token is not None and token.text.lower().startswith("$id="):
        cursor.take("$id=")
        block.given_id = read_given_id(cursor, token)
        token = cursor.peek()
    elif token is not None and token.text.lower().startswith(REFERENCE):
        cursor.take(REFERENCE)
        block.reference = read_given_id(cursor, token)
        return block
    score = read_score(token) if token else None
    if score is not None:
        cursor.take("a score")
        block.score, block.has_score = score, True
    return block


def read_block_rule(cursor: Cursor, block: Block) -> None:
    """Read the rule of a block; there is one at most, and it comes before the pairs."""
    token = cursor.take("rule")
    if block.rule is not None or block.reference:
        raise cursor.refuse(
            Code.UNEXPECTED, token, remedy="a block has one rule at most: join their conditions with and, or",
            construct=block.section, found=token.text,
        )  # fmt: skip
    block.rule = read_rule(cursor)


def read_given_id(cursor: Cursor, token: Token) -> str:
    """Return the id in `$id=ID` or `$id-ref=ID`."""
    given = token.text.partition("=")[2]
    if not NCNAME.match(given):
        raise cursor.refuse(Code.BAD_ID, token, id=given)
    return given


def read_pair(cursor: Cursor, block: Block, token: Token) -> None:
    """Put one pair into the block, or a reference to one."""
    if block.reference:
        raise cursor.refuse(Code.UNEXPECTED, token, construct=cursor.construct, found=token.text)
    if token.text.startswith(PAIR_REFERENCE):
        pair: tuple[str, str] | None = (token.text, "")
        _check_reference(cursor, token)
    elif token.text.startswith("$"):
        pair = _named_pair(cursor, block, token)
    else:
        pair = cursor.pair(token)
    if pair is None:
        _leave_out(cursor, token)
        block.valueless.append(token.text)
        return
    name, value = pair
    if name in block.pairs:
        # The same twice says nothing else than once; of two values either could be meant.
        severity = Severity.WARNING if block.pairs[name] == value else None
        cursor.note(Code.DUPLICATE_NAME, token, severity=severity, name=name)
    block.pairs[name] = value
    block.tokens[name] = token


def _named_pair(cursor: Cursor, block: Block, token: Token) -> tuple[str, str] | None:
    """Read `$ID:NAME=VALUE` or `$NAME=VALUE`, and remember the pair by its id."""
    text = token.text.removeprefix("$")
    head, _, _ = text.partition("=")
    given, colon, _ = head.partition(":")
    if not NCNAME.match(given):
        raise cursor.refuse(Code.BAD_ID, token, id=given)
    rest = text.removeprefix(f"{given}:") if colon else text
    pair = cursor.pair(Token(rest, token.place, token.is_quoted))
    if pair is None:
        raise cursor.refuse(Code.UNEXPECTED, token, construct=cursor.construct, found=token.text)
    cursor.pairs[given] = pair
    block.notes[pair[0]] = PairNote(pair[0], given)
    return pair


def _check_reference(cursor: Cursor, token: Token) -> None:
    target, colon, name = token.text.removeprefix(PAIR_REFERENCE).partition(":")
    if not NCNAME.match(target) or (colon and not ATTRIBUTE_NAME.match(name)):
        raise cursor.refuse(Code.BAD_ID, token, id=target)


def _leave_out(cursor: Cursor, token: Token) -> None:
    """Warn of a name without a value: it says as much as no name at all.

    A misspelled section word is refused: what comes after it would be read as pairs of the section before.
    """
    if not ATTRIBUTE_NAME.match(token.text) or token.text[0].isdecimal():
        raise cursor.refuse(Code.UNEXPECTED, token, construct=cursor.construct, found=token.text)
    section = None if token.is_quoted else nearest(token.text, SECTION_WORDS)
    if section is not None:
        raise cursor.refuse(Code.UNEXPECTED, token, construct=cursor.construct, found=token.text,
                            remedy=f'did you mean {section}? A name without a value is written {token.text}=""')
    problem = f"{token.text} has no value"
    remedy = f'write {token.text}="" for an empty one'
    if token.place.column == 1:
        remedy += "; if a statement begins there, take the backslash from the end of the line before"
    cursor.note(Code.LEFT_OUT, token, severity=Severity.WARNING, remedy=remedy, problem=problem)


def finish(cursor: Cursor, owner: str, blocks: Sequence[Block], *path: str) -> Mapping[str, tuple[AttributeSet, ...]]:
    """Give the owner's blocks their ids and return them by section; their pairs' places are noted under `path`."""
    given = [REFERENCE + block.reference if block.reference else block.given_id for block in blocks]
    ids = allocate([(id_, block_base(owner, block.section)) for id_, block in zip(given, blocks, strict=True)])
    made: dict[str, tuple[AttributeSet, ...]] = dict.fromkeys(_ATTRIBUTE_SECTIONS, ())
    for block, id_ in zip(blocks, ids, strict=True):
        for name, token in block.tokens.items():
            cursor.mark(*path, block.section, name, at=token)
        made[block.section] += (attribute_set(block, id_),)
    return made


def attribute_set(block: Block, id_: str) -> AttributeSet:
    """Return a block that has been read, under its id."""
    rule = finish_rules(id_, [block.rule])[0] if block.rule is not None else None
    return AttributeSet(
        id_, tuple(block.pairs.items()), block.score, rule, tuple(block.notes.values()), tuple(block.valueless)
    )
