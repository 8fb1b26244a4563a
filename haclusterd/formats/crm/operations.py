"""Operations in crm statements: `op ACTION {name=value} {op_params ... | op_meta ...}` (cli.md §4.4).

What the table of operation attributes names is the operation's own; every other pair is a parameter for the agent.
"""

import re
from collections.abc import Sequence

from haclusterd.formats.crm.blocks import Block, finish, read_block, read_given_id, read_pair, section_word
from haclusterd.formats.crm.cursor import Cursor
from haclusterd.formats.crm.tokens import Token
from haclusterd.formats.generated_ids import allocate, operation_base
from haclusterd.formats.stated import stated_enabled
from haclusterd.model import durations
from haclusterd.model.configuration import Operation
from haclusterd.model.operations import operation_row, read_role
from haclusterd.model.properties import read_boolean
from haclusterd.model.records import dataclass, field
from haclusterd.reports.codes import Code

OTHER_ATTRIBUTES = frozenset({"interval-origin", "description"})
"""Attributes of an operation beside those of the table; a description is not kept."""

ACTION = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


@dataclass(slots=True)
class Op:
    """An operation as it is being read."""

    action: Token
    given_id: str | None = None
    inline: Block = field(default_factory=lambda: Block("params"))
    blocks: list[Block] = field(default_factory=list)
    attributes: dict[str, Token] = field(default_factory=dict)


def read_op(cursor: Cursor) -> Op:
    """Read what follows the word `op`."""
    token = cursor.take("an action")
    if not ACTION.match(token.text) or section_word(token):
        cursor.back()
        raise cursor.expected("the name of an action")
    op = Op(token)
    while True:
        following = cursor.peek()
        word = section_word(following)
        if following is None or word not in (None, "op_params", "op_meta", "rule", "attributes"):
            return op
        cursor.take("an attribute")
        if word in ("op_params", "op_meta"):
            op.blocks.append(read_block(cursor, "params" if word == "op_params" else "meta"))
        elif word is not None:
            raise cursor.refuse(Code.UNEXPECTED, following, construct="op", found=following.text)
        else:
            _read_attribute(cursor, op, following)


def _read_attribute(cursor: Cursor, op: Op, token: Token) -> None:
    name, equals, _ = token.text.partition("=")
    if name.lower() == "$id" and equals:
        op.given_id = read_given_id(cursor, token)
    elif (operation_row(name) is None and name not in OTHER_ATTRIBUTES) or not equals:
        read_pair(cursor, op.inline, token)
    else:
        cursor.pair(token)
        if name in op.attributes:
            cursor.note(Code.DUPLICATE_NAME, token, name=name)
        op.attributes[name] = token


def finish_operations(cursor: Cursor, resource: str, ops: Sequence[Op], kind: str) -> tuple[Operation, ...]:
    """Make the operations of a resource or template (`kind`), with ids."""
    intervals = [_duration(cursor, op, "interval") or 0 for op in ops]
    bases = [operation_base(resource, op.action.text, _text(op, "interval") or "") for op in ops]
    ids = allocate([(op.given_id, base) for op, base in zip(ops, bases, strict=True)])
    return tuple(
        _finish(cursor, op, id_, interval, kind, resource, "operation", str(index))
        for index, (op, id_, interval) in enumerate(zip(ops, ids, intervals, strict=True))
    )


def _finish(cursor: Cursor, op: Op, id_: str, interval_ms: int, *path: str) -> Operation:
    cursor.mark(*path, at=op.action)
    for name, token in op.attributes.items():
        cursor.mark(*path, name, at=token)
    inline = [op.inline] if op.inline.pairs else []
    blocks = finish(cursor, id_, inline + op.blocks, *path)
    role, enabled, pending = (op.attributes.get(name) for name in ("role", "enabled", "record-pending"))
    description = op.attributes.get("description")
    if description is not None:
        cursor.note(Code.LEFT_OUT, description, problem="the description of an operation")
    return Operation(
        id=id_,
        name=op.action.text,
        interval_ms=interval_ms,
        timeout_ms=_duration(cursor, op, "timeout"),
        role=cursor.value("role", _value(role), role, read_role, "") if role else None,
        on_fail=_text(op, "on-fail"),
        start_delay_ms=_duration(cursor, op, "start-delay"),
        is_enabled=cursor.value("enabled", _value(enabled), enabled, read_boolean, otherwise=True) if enabled else True,
        requires=_text(op, "requires"),
        parameters=blocks["params"],
        meta=blocks["meta"],
        interval_origin=_text(op, "interval-origin"),
        record_pending=cursor.value("record-pending", _value(pending), pending, read_boolean, otherwise=True)
        if pending
        else None,
        spelled=(
            *durations.spellings(
                interval=_text(op, "interval"), timeout=_text(op, "timeout"), start_delay=_text(op, "start-delay")
            ),
            *stated_enabled(_text(op, "enabled")),
        ),
    )


def _value(token: Token) -> str:
    return token.text.partition("=")[2]


def _text(op: Op, name: str) -> str | None:
    token = op.attributes.get(name)
    return None if token is None else _value(token)


def _duration(cursor: Cursor, op: Op, name: str) -> int | None:
    token = op.attributes.get(name)
    return None if token is None else cursor.value(name, _value(token), token, durations.parse, 0)
