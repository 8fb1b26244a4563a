"""Every thread of the daemon takes its turn before ordinary processes.

One that does not, and has the interpreter when a busy machine takes the CPU from it, holds up the main loop and Raft
for as long as the machine likes: elections are the consequence. A new thread is such a one until it first runs, so
none is made for a piece of work: ready_threads.py has them made before.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("adapters", "runtime", "raft", "machines")
OF_CRM = {"adapters/agents/survey.py", "adapters/network/cluster_probe.py"}
"""Threads of a command that a person typed: no daemon has them."""
LIVE_LONG = {
    "adapters/agents/systemd_bus.py",
    "adapters/history/event_log.py",
    "adapters/history/sqlite.py",
    "adapters/machine/ready_threads.py",
    "adapters/processes/worker_process.py",
    "adapters/raft/thread.py",
}
"""Who makes threads: for the whole life of the daemon, or of a worker process."""
STARTERS = {"start_new_thread", "Thread", "ThreadPoolExecutor"}
NAMED = re.compile(rf"\b(?:{'|'.join(sorted(STARTERS))})\b")


def started(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls that start threads."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and name_of(node) in STARTERS:
            yield node


def name_of(call: ast.Call) -> str:
    """Return the last word of what is called."""
    return ast.unparse(call.func).rpartition(".")[2] if isinstance(call.func, ast.Name | ast.Attribute) else ""


def body_of(call: ast.Call) -> ast.expr | None:
    """Return what the thread runs; None for a pool without an initializer."""
    name = name_of(call)
    keywords = {each.arg: each.value for each in call.keywords}
    if name == "start_new_thread":
        return call.args[0]
    return keywords.get("target" if name == "Thread" else "initializer")


def takes_its_turn_first(body: ast.expr | None, tree: ast.Module) -> bool:
    """Tell whether a function, or one of this file that it calls, calls `run_first`."""
    functions = {node.name: ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    name = ast.unparse(body).rpartition(".")[2] if body is not None else ""
    if name == "run_first":
        return True
    text = functions.get(name, "")
    called = [other for other in functions if f"self.{other}(" in text]
    return any("run_first(" in each for each in (text, *(functions[other] for other in called)))


def starts_threads(text: str) -> bool:
    """Tell whether a program starts any; it is parsed only where it names what starts one."""
    return NAMED.search(text) is not None and any(started(ast.parse(text)))


FILES = sorted(
    path
    for room in ROOMS
    for path in (ROOT / "haclusterd" / room).rglob("*.py")
    if str(path.relative_to(ROOT / "haclusterd")) not in OF_CRM and starts_threads(path.read_text())
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT / "haclusterd")))
def test_a_thread_takes_its_turn_before_ordinary_processes(path: Path) -> None:
    tree = ast.parse(path.read_text())
    late = [ast.unparse(call) for call in started(tree) if not takes_its_turn_first(body_of(call), tree)]
    assert late == []


def test_no_thread_is_made_for_a_piece_of_work() -> None:
    assert {str(path.relative_to(ROOT / "haclusterd")) for path in FILES} == LIVE_LONG


def test_a_thread_that_does_not_is_found() -> None:
    tree = ast.parse("def look(): pass\n_thread.start_new_thread(look, ())\nThreadPoolExecutor(2)\n")
    assert [takes_its_turn_first(body_of(call), tree) for call in started(tree)] == [False, False]
