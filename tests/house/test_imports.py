"""What a file of the program or of its tests imports from another one is there, also where no test runs the file."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("haclusterd", "tests")


def file_of(module: str) -> Path | None:
    """Return a module's file; None for what is not of this repository."""
    if module.partition(".")[0] not in PACKAGES:
        return None
    path = ROOT / Path(*module.split("."))
    return next((each for each in (path.with_suffix(".py"), path / "__init__.py") if each.is_file()), path)


@cache
def names_in(path: Path) -> frozenset[str] | None:
    """Return what a module defines or imports at its top, also under conditions; None: it makes names as it runs."""
    if path.is_dir():
        return frozenset()
    found: set[str] = set()
    for node in _statements(ast.parse(path.read_text()).body):
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


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody"):
            if isinstance(node, ast.If | ast.Try | ast.With):
                yield from _statements(getattr(node, part, []))
        for handler in node.handlers if isinstance(node, ast.Try) else ():
            yield from _statements(handler.body)


def missing(source: str, name: str) -> list[str]:
    """Return what is imported in a source from files of this repository, and is not in them."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ImportFrom) or node.module is None or node.level:
            continue
        path = file_of(node.module)
        if path is None:
            continue
        known = names_in(path) if path.exists() else frozenset[str]()
        for alias in node.names:
            submodule = file_of(f"{node.module}.{alias.name}")
            is_there = known is None or alias.name in known or (submodule is not None and submodule.exists())
            if not is_there and alias.name != "*":
                found.append(f"{name}:{node.lineno}: {node.module} has no {alias.name}")
    return found


def test_whatever_is_imported_is_there() -> None:
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    assert [each for file in files for each in missing(file.read_text(), str(file.relative_to(ROOT)))] == []


def test_what_is_not_there_is_named() -> None:
    source = "from tests.house.test_imports import missing, gone\nfrom haclusterd.nowhere import anything\nimport os\n"
    assert missing(source, "here.py") == [
        "here.py:1: tests.house.test_imports has no gone",
        "here.py:2: haclusterd.nowhere has no anything",
    ]
