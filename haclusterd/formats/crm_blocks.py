"""Blocks of attributes in crm statements: `[$id=ID] [SCORE:] {name=value}`, and the section words that open them.

(cli.md §4.2.) A block's id is made later, when all blocks of its owner are read: a generated id must not collide with a
given one.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from haclusterd.formats.crm_cursor import Cursor
from haclusterd.formats.crm_tokens import Token
from haclusterd.formats.generated_ids import allocate, block_base
from haclusterd.model import scores
from haclusterd.model.configuration import AttributeSet
from haclusterd.model.ids import NCNAME
from haclusterd.reports.codes import Code

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
    pairs: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    """Where each pair stands."""


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


def read_block(cursor: Cursor, section: str) -> Block:
    """Read the body of a block, up to a section word or the end."""
    block = open_block(cursor, section)
    while True:
        token = cursor.peek()
        word = section_word(token)
        if word == "rule":
            assert token is not None
            raise cursor.not_yet("rule", token)
        if token is None or word is not None:
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
    score = read_score(token) if token else None
    if score is not None:
        cursor.take("a score")
        block.score, block.has_score = score, True
    return block


def read_given_id(cursor: Cursor, token: Token) -> str:
    """Return the id in `$id=ID`."""
    given = token.text.partition("=")[2]
    if not NCNAME.match(given):
        raise cursor.refuse(Code.BAD_ID, token, id=given)
    return given


def read_pair(cursor: Cursor, block: Block, token: Token) -> None:
    """Put one `name=value` into the block; refuse the forms that cannot be used yet."""
    if token.text.lower().startswith("$id-ref="):
        raise cursor.not_yet("$id-ref", token)
    if token.text.startswith("$"):
        raise cursor.not_yet("a pair with an id of its own ($ID:NAME=VALUE)", token)
    if token.text.startswith("@"):
        raise cursor.not_yet("a reference to a pair (@ID)", token)
    pair = cursor.pair(token)
    if pair is None:
        if token.text.startswith(("{", "(", "[")):
            raise cursor.refuse(Code.UNEXPECTED, token, construct=cursor.construct, found=token.text)
        raise cursor.not_yet(f"an attribute without a value ({token.text})", token)
    name, value = pair
    if name in block.pairs:
        cursor.note(Code.DUPLICATE_NAME, token, name=name)
    block.pairs[name] = value
    block.tokens[name] = token


def finish(cursor: Cursor, owner: str, blocks: Sequence[Block], *path: str) -> Mapping[str, tuple[AttributeSet, ...]]:
    """Give the owner's blocks their ids and return them by section; their pairs' places are noted under `path`."""
    ids = allocate([(block.given_id, block_base(owner, block.section)) for block in blocks])
    made: dict[str, tuple[AttributeSet, ...]] = dict.fromkeys(_ATTRIBUTE_SECTIONS, ())
    for block, id_ in zip(blocks, ids, strict=True):
        for name, token in block.tokens.items():
            cursor.mark(*path, block.section, name, at=token)
        made[block.section] += (AttributeSet(id_, tuple(block.pairs.items()), block.score),)
    return made
