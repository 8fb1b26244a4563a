"""Writes 0004-rules-and-scenarios.md from the program: rules, the scenarios that need them, the checkers that object.

`make reference` runs it; tests/house/test_documents.py fails when the page is not what it would write.
"""

import ast
import inspect
import sys
from pathlib import Path

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
sys.path.insert(0, str(CHECKOUT))

from haclusterd.model import rules_in_force  # noqa: E402 (found on the path above)
from haclusterd.simulator.checks.checkers import WATCHING  # noqa: E402 (found on the path above)
from tests.simulation import store_guards, test_rules, test_store_guards  # noqa: E402 (found on the path above)

HEAD = """# 0004 Rules and scenarios

Made from `haclusterd/model/rules_in_force.py`, `haclusterd/simulator/checks/` and `tests/simulation` by
`make reference`; do not edit.

Each rule of [safety.md](safety.md) was written against a concrete way to lose data. A rule that can be switched off
without being missed is either not implemented or not needed. So each rule is a switch (`SafetyRules`; the real daemon
has no way to switch one off), and has a scenario in the simulator, which runs twice: with all rules it must end well,
and without the rule a checker must object. Checkers know the truth of the simulated world, not what the nodes believe.

| without the rule | this scenario | is caught by |
|---|---|---|
"""

RULES = """
## The rules

| rule | meaning |
|---|---|"""

CHECKERS = """
## The checkers

They watch every scenario and every seed of the swarm.

| checker | what must hold |
|---|---|"""

GUARDS = """
## The store's guards

The same for the store ([0002-store.md](0002-store.md)). What a test switches off (`tests/simulation/store_guards.py`)
is replaced by what the library does as shipped, or by what a naive program would do. Then the world objects, in which
equal indexes have equal entries, one node leads a term, and nothing acknowledged is ever missing; or the scenario does.
That a raising `apply` is no end (S8) is the rule `raising_apply_is_a_refusal` above.

| guard | meaning | without it, this scenario ends badly |
|---|---|---|"""


def rules_page() -> str:
    """Return the page."""
    rows = [_row(*need) for need in test_rules.NEEDED]
    meanings = [f"| `{name}` | {text} |" for name, text in _attribute_docs(rules_in_force).items()]
    watching = [
        f"| `{kind.__name__}` | {_doc(kind)} |"
        for kind in WATCHING
    ]
    guarded = _attribute_docs(store_guards)
    guards = [f"| `{guard}` | {guarded[guard]} | {_doc(scenario)} |" for guard, scenario in test_store_guards.NEEDED]
    return "\n".join((HEAD.rstrip("\n"), *rows, RULES, *meanings, CHECKERS, *watching, GUARDS, *guards, ""))


def _row(off: tuple[str, ...], scenario: object, objectors: frozenset[str]) -> str:
    rules = ", ".join(f"`{rule}`" for rule in off)
    return f"| {rules} | {_doc(scenario)} | {', '.join(sorted(map(_checker, objectors)))} |"


def _doc(documented: object) -> str:
    return " ".join((inspect.getdoc(documented) or "").split())


def _checker(name: str) -> str:
    return "the scenario's own check" if name == "AssertionError" else f"`{name}`"


def _attribute_docs(module: object) -> dict[str, str]:
    """Return the documented attributes of SafetyRules; the text is in a literal after each."""
    tree = ast.parse(inspect.getsource(module))
    (rules,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    docs: dict[str, str] = {}
    for field, text in zip(rules.body, rules.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            assert isinstance(field.target, ast.Name)
            docs[field.target.id] = " ".join(str(text.value.value).split())
    return docs


PAGES = {"0004-rules-and-scenarios.md": rules_page}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page())
