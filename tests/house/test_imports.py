"""What a file of the program or of its tests imports from another one is there, also where no test runs the file."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.house.statements import statements

ROOT = Path(__file__).parents[2]
PACKAGES = ("haclusterd", "tests")


def file_of(module: str) -> Path | None:
    """Return a module's file; None for what is not of this repository."""
    if module.partition(".")[0] not in PACKAGES:
        return None
    path = ROOT / Path(*module.split("."))
    return next((each for each in (path.with_suffix(".py"), path / "__init__.py") if each.is_file()), path)


@cache
def facts(path: Path) -> tuple[frozenset[str] | None, tuple[ast.ImportFrom, ...]]:
    """Return the names of a file's module, and what it imports anywhere; the tree itself is not kept."""
    tree = ast.parse(path.read_text())
    return names_in(tree), tuple(imports_in(tree))


def names_in(tree: ast.Module) -> frozenset[str] | None:
    """Return what a module defines or imports at its top, also under conditions; None: it makes names as it runs."""
    found: set[str] = set()
    for node in statements(tree.body, ast.If | ast.Try | ast.With):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            if node.name == "__getattr__":
                return None
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        else:
            found.update(
                each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            )
    return frozenset(found)


def imports_in(tree: ast.Module) -> Iterator[ast.ImportFrom]:
    """Yield every `from MODULE import NAMES`, however deep: imports are statements, so no expression is looked into."""
    return (node for node in statements(tree.body) if isinstance(node, ast.ImportFrom))


def missing(imports: Iterable[ast.ImportFrom], name: str) -> list[str]:
    """Return what is imported from files of this repository, and is not in them."""
    found = []
    for node in imports:
        path = None if node.module is None or node.level else file_of(node.module)
        if path is None:
            continue
        known = facts(path)[0] if path.is_file() else frozenset[str]()
        for alias in node.names:
            submodule = file_of(f"{node.module}.{alias.name}")
            is_there = known is None or alias.name in known or (submodule is not None and submodule.exists())
            if not is_there and alias.name != "*":
                found.append(f"{name}:{node.lineno}: {node.module} has no {alias.name}")
    return found


def test_whatever_is_imported_is_there() -> None:
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    assert [each for file in files for each in missing(facts(file)[1], str(file.relative_to(ROOT)))] == []


def test_what_is_not_there_is_named() -> None:
    source = "from tests.house.test_imports import missing, gone\ndef f():\n from haclusterd.nowhere import anything\n"
    assert missing(imports_in(ast.parse(source)), "here.py") == [
        "here.py:1: tests.house.test_imports has no gone",
        "here.py:3: haclusterd.nowhere has no anything",
    ]
