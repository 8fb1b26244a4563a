"""What follows the head of an object in a crm statement: description, blocks, operations (cli.md §4.4)."""

from collections.abc import Collection
from dataclasses import dataclass, field

from haclusterd.formats.crm.blocks import (
    Block,
    open_block,
    read_block,
    read_block_rule,
    read_given_id,
    read_pair,
    section_word,
)
from haclusterd.formats.crm.cursor import Cursor
from haclusterd.formats.crm.operations import Op, read_op
from haclusterd.formats.crm.tokens import Token
from haclusterd.formats.statements import REFERENCE
from haclusterd.model.words import bad_character
from haclusterd.reports.codes import Code


@dataclass(slots=True)
class Tail:
    """Everything after an object's head."""

    description: str = ""
    blocks: list[Block] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)


def read_tail(cursor: Cursor, sections: Collection[str], *, implicit: str, has_operations: bool = False) -> Tail:
    """Read up to the end; what stands before the first section word is a block of the section `implicit`."""
    tail = Tail()
    _read_implicit(cursor, tail, implicit)
    while not cursor.is_at_end:
        token = cursor.take("a section")
        word = section_word(token)
        if word == "op" and has_operations:
            tail.ops.append(read_op(cursor))
        elif word == "operations" and has_operations:
            _read_operations_id(cursor, tail)
        elif word in sections:
            assert word is not None
            tail.blocks.append(read_block(cursor, word))
        else:
            raise cursor.refuse(Code.UNEXPECTED, token, construct=cursor.construct, found=token.text)
    return tail


def _read_implicit(cursor: Cursor, tail: Tail, implicit: str) -> None:
    """Read what stands before the first section word: the description, and a block that no word opens."""
    block: Block | None = None
    while True:
        token = cursor.peek()
        word = section_word(token)
        if token is None or word not in (None, "rule"):
            return
        if token.text.startswith("description="):
            cursor.take("a description")
            tail.description = _description(cursor, token)
        elif block is None:
            block = open_block(cursor, implicit)
            tail.blocks.append(block)
        elif word == "rule":
            read_block_rule(cursor, block)
        else:
            cursor.take("a pair")
            read_pair(cursor, block, token)


def _read_operations_id(cursor: Cursor, tail: Tail) -> None:
    """Read `operations $id=ID`, a name for references, or `operations $id-ref=ID`, those of another resource."""
    token = cursor.take("$id=ID or $id-ref=ID")
    text = token.text.lower()
    if text.startswith(REFERENCE):
        tail.ops.append(Op(token, given_id=REFERENCE + read_given_id(cursor, token)))
    elif text.startswith("$id="):
        cursor.operations_id = read_given_id(cursor, token)
    else:
        cursor.back()
        raise cursor.expected("$id=ID or $id-ref=ID")


def _description(cursor: Cursor, token: Token) -> str:
    text = token.text.partition("=")[2]
    character = bad_character(text)
    if character:
        cursor.note(Code.BAD_CHARACTER, token, name="description", character=character)
    return text
