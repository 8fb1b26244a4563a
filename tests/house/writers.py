"""Who writes the attributes of the scheduler's entities: one package of the scheduler for each.

An assignment, a deletion, and a call that changes a list, set or table in place are writes. What a target belongs to is
worked out from annotations and from the names of the products (`resource.found.…`); where that says nothing, every
entity that has such an attribute may be meant.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

SCHEDULER = Path(__file__).parents[2] / "haclusterd" / "scheduler"
ENTITIES = tuple(
    SCHEDULER / "model" / f"{name}.py" for name in ("definition", "node_scores", "entities", "inventory")
)
"""Those that others inherit from come first."""
WRITERS = {
    "Definition": "unpack",
    "BaseScores": "unpack",
    "Found": "unpack",
    "OwnScores": "scores",
    "Assignment": "assign",
    "Resource": "unpack",
    "Node": "unpack",
    "Replica": "unpack",
    "Inventory": "unpack",
    "Action": "actions",
    "Relation": "order",
}
"""The package that writes what an entity has."""
EXCEPTIONS = {
    ("Resource", "timings"): "model",
    ("Resource", "actions"): "actions",
    ("Resource", "has_given_up_migration"): "actions",
    ("Resource", "is_reloading"): "actions",
    ("Resource", "is_restarting"): "actions",
    ("Resource", "stops_unexpected_only"): "actions",
    ("Node", "assigned"): "assign",
    ("Node", "free"): "assign",
    ("Node", "resources_assigned"): "assign",
    ("Action", "is_graphed"): "graph",
    ("Action", "runnable_before"): "order",
}
"""Attributes that another package writes than the rest of their entity."""
_PRODUCTS = {
    "base_scores": "BaseScores",
    "definition": "Definition",
    "found": "Found",
    "scores": "OwnScores",
    "assignment": "Assignment",
}
_CHANGING = frozenset(
    {"add", "append", "clear", "difference_update", "discard", "extend", "insert", "intersection_update", "pop",
     "popitem", "remove", "reverse", "setdefault", "sort", "update"}
)  # fmt: skip


def attributes() -> Mapping[str, frozenset[str]]:
    """Return the attributes of each entity."""
    found: dict[str, frozenset[str]] = {}
    for node in (node for path in ENTITIES for node in ast.parse(path.read_text()).body):
        if not isinstance(node, ast.ClassDef):
            continue
        slots = [
            part.value
            for part in node.body
            if isinstance(part, ast.Assign) and ast.unparse(part.targets[0]) == "__slots__"
        ]
        own = {name for each in slots for name in ast.literal_eval(each)}
        fields = [part.target for part in node.body if isinstance(part, ast.AnnAssign)]
        own |= {field.id for field in fields if isinstance(field, ast.Name)}
        inherited = [found[base.id] for base in node.bases if isinstance(base, ast.Name) and base.id in found]
        found[node.name] = frozenset(own.union(*inherited))
    return {name: found[name] for name in WRITERS}


def writes_of(tree: ast.AST) -> Iterator[tuple[ast.Attribute, ast.AST]]:
    """Yield the attributes that a module writes, and the function around each."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                yield from ((target, function) for target in _written(node))


def _written(node: ast.AST) -> Iterator[ast.Attribute]:
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        yield node
        return
    held: ast.expr | None = None
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        held = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
        held = node.func.value
    if isinstance(held, ast.Attribute):
        yield held


def _entities_of(node: ast.expr, function: ast.AST) -> frozenset[str]:
    """Return which entities an expression may be; none of them: any, an empty name: nothing of the scheduler's."""
    if isinstance(node, ast.Attribute):
        return frozenset({_PRODUCTS[node.attr]}) if node.attr in _PRODUCTS else frozenset()
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.lstrip("_")[:1].isupper():
        return frozenset({node.func.id}) & WRITERS.keys() or frozenset({""})
    if not isinstance(node, ast.Name):
        return frozenset()
    for part in ast.walk(function):
        if isinstance(part, ast.arg) and part.arg == node.id and part.annotation is not None:
            named = {each.id for each in ast.walk(part.annotation) if isinstance(each, ast.Name)}
            return frozenset(named & WRITERS.keys()) or frozenset({""})
        if isinstance(part, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == node.id for target in part.targets
        ):
            return _entities_of(part.value, function)
    return frozenset()


def _is_product(target: ast.Attribute) -> bool:
    """Whether it is a product itself that is changed, by a method of its own: `resource.scores.add(…)`."""
    is_of_product = isinstance(target.value, ast.Attribute) and target.value.attr in _PRODUCTS
    return target.attr in _PRODUCTS and isinstance(target.ctx, ast.Load) and not is_of_product


def breaches(package: str, tree: ast.AST) -> Iterator[str]:
    """Yield what a module of a package writes that is another's."""
    known = attributes()
    for target, function in writes_of(tree):
        meant = _entities_of(target.value, function)
        if isinstance(target.value, ast.Name) and target.value.id == "self":
            continue
        if _is_product(target):
            writers = {WRITERS[_PRODUCTS[target.attr]]}
        else:
            owners = [name for name, own in known.items() if target.attr in own and (not meant or name in meant)]
            writers = {EXCEPTIONS.get((name, target.attr), WRITERS[name]) for name in owners}
        if writers and package not in writers:
            yield f"{ast.unparse(target)} in line {target.lineno} ({' or '.join(sorted(writers))})"


def all_breaches() -> Iterator[str]:
    """Yield the breaches of the scheduler."""
    for path in sorted(SCHEDULER.rglob("*.py")):
        if path not in ENTITIES:
            package = path.relative_to(SCHEDULER).parts[0]
            for each in breaches(package, ast.parse(path.read_text())):
                yield f"{path.relative_to(SCHEDULER)}: {each}"
