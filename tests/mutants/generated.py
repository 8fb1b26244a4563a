"""Mutants that nobody thought of: comparisons, bounds, connectives and guards of the safety-relevant rooms.

Each is named by its function, its kind and its number among those of that kind there, so that it can be made again.
"""

import ast
import copy
import random
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from haclusterd.model.records import dataclass
from tests.mutants.sites import Function, Place, functions, place_of

ROOMS = (
    "machines/*.py",
    "cib/apply*.py",
    "cib/activity.py",
    "model/activity.py",
    "model/copies.py",
    "model/timing.py",
    "runtime/replica.py",
    "raft/core.py",
    "raft/consensus.py",
    "raft/journal.py",
    "raft/snapshot.py",
    "raft/snapshot_installation.py",
    "raft/voter_sets.py",
    "adapters/raft/library.py",
)
"""The files that decide whether something may run, and what is durable."""

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_BOUNDS = {"max": "min", "min": "max"}
_LEAVES = ast.Return | ast.Raise | ast.Continue


@dataclass(frozen=True, slots=True)
class Generated:
    """One mutant by rule."""

    name: str
    place: Place
    after: str


def sample(count: int, seed: int) -> Sequence[Generated]:
    """Return `count` of all mutants by rule, chosen by the seed, in the order of the code."""
    everything = all_generated()
    if count >= len(everything):
        return everything
    chosen = sorted(random.Random(seed).sample(range(len(everything)), count))
    return [everything[number] for number in chosen]


@cache
def all_generated() -> Sequence[Generated]:
    """Return every mutant by rule."""
    return tuple(
        each
        for path, name, function in functions()
        if any(fnmatch(str(path), pattern) for pattern in ROOMS)
        for each in _of_function(path, name, function)
    )


def _of_function(path: Path, name: str, function: Function) -> Iterator[Generated]:
    numbers: dict[str, int] = {}
    for node in _own_nodes(function):
        for kind, after in _changes_of(node):
            number = numbers[kind] = numbers.get(kind, 0) + 1
            yield Generated(f"{path.stem}:{name} {kind} {number}: {after}"[:110], place_of(path, node), after)


def _own_nodes(function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of functions in it and without annotations."""
    pending: list[ast.AST] = list(reversed(function.body))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.JoinedStr | ast.Assert):
            continue
        yield node
        pending.extend(reversed(list(ast.iter_child_nodes(node))))


def _changes_of(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        changed = copy.deepcopy(node)
        changed.ops = [_COMPARISONS[type(node.ops[0])]()]
        yield "comparison", ast.unparse(changed)
    elif isinstance(node, ast.BoolOp):
        other = copy.deepcopy(node)
        other.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        yield "connective", ast.unparse(other)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _BOUNDS:
        bound = copy.deepcopy(node)
        bound.func = ast.Name(_BOUNDS[node.func.id], ast.Load())
        yield "bound", ast.unparse(bound)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "negation", ast.unparse(node.operand)
    elif isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], _LEAVES):
        yield "guard", "pass"
