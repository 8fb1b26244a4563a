"""Where in the package a mutant is made: by the name of a function and the code in it, never by file or line.

So a mutant follows its function through renamed and divided files. What is looked for is compared as a syntax tree:
line breaks and parentheses do not matter. Code that is not there, or stands there twice, is an error.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from haclusterd.model.records import dataclass

PACKAGE = Path(__file__).parents[2] / "haclusterd"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of the program that must not go unnoticed."""

    where: str
    """The function, qualified within its module (`Class.method`); `module:function` where several have that name."""
    before: str
    """An expression or a statement in that function, as Python source; `if x` without a body: that condition."""
    after: str
    """What stands there instead."""
    breaks: str
    """What this makes possible, for people."""
    survives: str = ""
    """Why nothing can notice it, where that is known."""

    @property
    def name(self) -> str:
        """The mutant in one line."""
        return f"{self.where}: {_short(self.before)} -> {_short(self.after)}"


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a file."""

    path: Path
    """Relative to the package."""
    begin: int
    end: int
    """Offsets in the bytes of the file."""


class MissingCodeError(Exception):
    """The code of a mutant is not there, or not only once."""


def find(mutant: Mutant) -> Place:
    """Return where a mutant's code stands; raise MissingCodeError."""
    found = [(path, node) for path, function in _named(mutant.where) for node in _equal_to(mutant.before, function)]
    if len(found) != 1:
        raise MissingCodeError(f"{mutant.where}: {len(found)} places have `{mutant.before}`; one is wanted")
    path, node = found[0]
    return place_of(path, node)


def place_of(path: Path, node: ast.AST) -> Place:
    """Return the bytes of a node of a file."""
    assert isinstance(node, ast.expr | ast.stmt)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    lines = source_of(path).splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    return Place(path, starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset)


def mutated(place: Place, after: str) -> bytes:
    """Return the whole file with `after` at a place; it compiles, or SyntaxError is raised."""
    source = source_of(place.path)
    is_expression = _parsed(after)[1]
    text = f"({after})" if is_expression else after
    changed = source[: place.begin] + text.encode() + source[place.end :]
    compile(changed, str(place.path), "exec")
    return changed


def functions() -> Iterator[tuple[Path, str, Function]]:
    """Yield every function of the package with its file and its qualified name."""
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE)
        for name, function in functions_in(relative):
            yield relative, name, function


def first_line(function: Function) -> int:
    """Return the line at which Python has a function begin: that of its first decorator, if it has one."""
    return min(node.lineno for node in (function, *function.decorator_list))


@cache
def source_of(path: Path) -> bytes:
    """Return a file of the package, by its relative path."""
    return (PACKAGE / path).read_bytes()


@cache
def _tree_of(path: Path) -> ast.Module:
    return ast.parse(source_of(path))


@cache
def functions_in(path: Path) -> tuple[tuple[str, Function], ...]:
    """Return the functions of a file, by its relative path, with their qualified names: the outer ones first."""
    return tuple(_below(_tree_of(path), ""))


def _below(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _below(child, f"{prefix}{child.name}.")
        elif isinstance(child, Function):
            yield f"{prefix}{child.name}", child
            yield from _below(child, f"{prefix}{child.name}.")


@cache
def _by_name() -> Mapping[str, tuple[tuple[Path, Function], ...]]:
    table: dict[str, list[tuple[Path, Function]]] = {}
    for path, name, function in functions():
        table.setdefault(name, []).append((path, function))
        table.setdefault(f"{path.stem}:{name}", []).append((path, function))
    return {name: tuple(found) for name, found in table.items()}


def _named(where: str) -> tuple[tuple[Path, Function], ...]:
    found = _by_name().get(where, ())
    if not found:
        raise MissingCodeError(f"{where}: there is no such function in the package")
    return found


def _equal_to(source: str, function: Function) -> Iterator[ast.AST]:
    if source.startswith("if ") and not source.endswith(":") and "\n" not in source:
        condition, _ = _parsed(source.removeprefix("if "))
        tests = (node.test for node in ast.walk(function) if isinstance(node, ast.If))
        yield from (test for test in tests if _shape(test) == _shape(condition))
        return
    wanted, _ = _parsed(source)
    for node in ast.walk(function):
        if type(node) is type(wanted) and _shape(node) == _shape(wanted):
            yield node


@cache
def _parsed(source: str) -> tuple[ast.AST, bool]:
    """Return the one statement or expression in a source, and whether it is an expression."""
    (statement,) = ast.parse(f"def _():\n{_indented(source)}").body[0].body
    if isinstance(statement, ast.Expr):
        return statement.value, True
    assert isinstance(statement, ast.stmt)
    return statement, False


def _indented(source: str) -> str:
    return "\n".join(f"    {line}" for line in source.splitlines())


def _shape(node: ast.AST) -> str:
    return ast.dump(node)


def _short(source: str) -> str:
    line = " ".join(source.split())
    return line if len(line) <= 60 else f"{line[:57]}..."
