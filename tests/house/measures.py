"""Measures of the code, as a table: `python -m tests.house.measures`.

What they mean: a module with one importer and few lines is a fragment that its reader may as well hold; a large package
without rooms has no way in; an attribute that several packages write has no owner.
"""

import ast
import statistics
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.house.writers import all_breaches, attributes

CHECKOUT = Path(__file__).parents[2]
PACKAGE = CHECKOUT / "haclusterd"
SMALL_LINES = 90
TABLES = frozenset({
    "cib.apply", "cli.dispatch", "cli.render.answers", "commands.registry", "commands.verify.configuration",
    "runtime.ports", "scheduler.schedule", "verbs.answers.table", "verbs.table",
})  # fmt: skip
"""Modules that list others and nothing else uses: handlers, verbs, phases, renderers."""


def modules() -> Mapping[str, Path]:
    """Return the modules of the package by their dotted names."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(CHECKOUT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(tree: ast.AST, names: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules of the package that one imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in names else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def comment_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(token.type == tokenize.COMMENT for token in tokenize.tokenize(file.readline))


def is_listed(importer: str) -> bool:
    """Whether a module is imported to be listed only."""
    name = importer.removeprefix("haclusterd.")
    return name in TABLES or name.startswith("entry_points.")


def measures() -> Iterator[tuple[str, str]]:
    """Yield a name and a value, row by row."""
    names = modules()
    trees = {name: ast.parse(path.read_text()) for name, path in names.items()}
    lines = {name: path.read_text().count("\n") for name, path in names.items()}
    importers: dict[str, set[str]] = defaultdict(set)
    for name, tree in trees.items():
        for each in imported(tree, names):
            if each in names:
                importers[each].add(name)
    plain = [name for name, path in names.items() if path.name not in ("__init__.py", "__main__.py")]
    single = [name for name in plain if len(importers[name]) == 1]
    functions = [
        node.end_lineno - node.lineno + 1
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno is not None
    ]
    rooms = Counter(str(path.parent.relative_to(PACKAGE)) for path in names.values())
    (largest, size), *_ = rooms.most_common(1)
    comments = sum(comment_lines(path) for path in names.values())
    yield "modules", str(len(plain))
    yield "lines", str(sum(lines.values()))
    yield "lines of a module, median and largest", f"{statistics.median(lines.values()):.0f}, {max(lines.values())}"
    yield "lines of a function, median and largest", f"{statistics.median(functions):.0f}, {max(functions)}"
    yield "comments per 100 lines", f"{100 * comments / sum(lines.values()):.1f}"
    yield "packages", str(len(rooms))
    yield "largest package", f"{largest}, {size} files"
    yield "modules with one importer", f"{len(single)} ({100 * len(single) / len(plain):.0f} %)"
    listed = [name for name in single if is_listed(*importers[name])]
    yield "of these named in a table, or where a program is put together", str(len(listed))
    single = [name for name in single if name not in listed]
    yield f"of the others with less than {SMALL_LINES} lines", str(sum(lines[each] < SMALL_LINES for each in single))
    for name, own in attributes().items():
        yield f"attributes of the scheduler's {name}", str(len(own))
    yield "attributes written outside their stage", str(len(set(all_breaches())))


def main() -> None:
    """Print the table."""
    rows = list(measures())
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:{width}}  {value}")


if __name__ == "__main__":
    main()
