"""Every row of the tables of settings is walked by the test that demands an answer to each, and read by the program."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import haclusterd
import haclusterd.model
from haclusterd.model.rows import Row
from tests.walked_settings import WALKED

PACKAGE = Path(haclusterd.__file__).parent
OUTSIDE = ("simulator", "verbs")
"""What these read, a running cluster need not obey."""
COMPOSED = ("pcmk_", "node-health-", "gpu-recovery-")
"""How names begin that are put together by f-strings."""


def tables(module: ModuleType) -> Iterator[tuple[str, Row]]:
    """Yield the rows of a module's tables, in mappings too, with the table's name."""
    for name, value in vars(module).items():
        held = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else (value,)
        yield from ((f"{module.__name__}.{name}", each) for each in held if isinstance(each, Row))


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(haclusterd.model.__path__, "haclusterd.model."):
        yield importlib.import_module(found.name)


def unwalked(rows: Iterable[tuple[str, Row]]) -> list[str]:
    walked = {id(row) for table in WALKED for row in table}
    return [f"{table}: {row.name}" for table, row in rows if id(row) not in walked]


def unread(names: Iterable[str]) -> list[str]:
    """Return the names that no text or f-string of the program means, outside the definitions of rows.

    A file is parsed only while it may mean one that is still looked for.
    """
    wanted = set(names)
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text()
        is_outside = path.relative_to(PACKAGE).parts[0] in OUTSIDE or path.name == "property_tables.py"
        if is_outside or not any(name in source for name in (*wanted, *COMPOSED)):
            continue
        tree = ast.parse(source)
        own = {id(each.args[0]) for each in ast.walk(tree) if isinstance(each, ast.Call) and is_row(each)}
        for each in ast.walk(tree):
            if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in own:
                wanted.discard(each.value)
            elif isinstance(each, ast.JoinedStr) and id(each) not in own:
                form = re.compile("".join(map(form_of, each.values)))
                if form.pattern.startswith(tuple(map(re.escape, COMPOSED))):
                    wanted -= set(filter(form.fullmatch, wanted))
    return sorted(wanted)


def form_of(piece: ast.expr) -> str:
    return re.escape(str(piece.value)) if isinstance(piece, ast.Constant) else "[a-z]+"


def is_row(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "Row" and bool(call.args)


def test_every_row_is_walked() -> None:
    assert unwalked(each for module in modules() for each in tables(module)) == []


def test_a_row_that_nobody_walks_is_found() -> None:
    new = Row("new-setting", next(iter(WALKED[0])).type, "", "A new one.")
    assert unwalked([("table", new)]) == ["table: new-setting"]


def test_every_row_is_read_by_the_program() -> None:
    assert unread(row.name for table in WALKED for row in table if row.live != ()) == []


def test_a_row_that_nobody_reads_is_found() -> None:
    assert unread(("stonith-of-nowhere", "priority")) == ["stonith-of-nowhere"]
