"""The statements of a program, at whatever depth: an expression holds none, so none is looked into."""

import ast
from collections.abc import Iterator, Sequence
from types import UnionType


def statements(body: Sequence[ast.stmt], within: type | UnionType = ast.stmt) -> Iterator[ast.stmt]:
    """Yield statements, and those inside of such as are one of `within`."""
    for node in body:
        yield node
        if isinstance(node, within):
            parts = [getattr(node, part, []) for part in ("body", "orelse", "finalbody")]
            parts += [each.body for each in (*getattr(node, "handlers", ()), *getattr(node, "cases", ()))]
            for part in parts:
                yield from statements(part, within)
