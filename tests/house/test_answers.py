"""Every answer has a type in `haclusterd/verbs/answers/`: no other place writes its schema; renderers take the type."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from haclusterd.cli.render.answers import Typed, renderer
from haclusterd.cli.render.tables import render_nothing
from haclusterd.verbs.answers.answer import name_of
from haclusterd.verbs.answers.table import ANSWERS
from haclusterd.verbs.table import VERBS

PACKAGE = Path(__file__).parents[2] / "haclusterd"
SCHEMA = re.compile(r"haclusterd\.[a-z_-]+/[0-9]+\Z")
UNTYPED = {
    "simulate", "simulate_dot", "simulations", "migration_check",
    "agent", "agents", "agent_classes", "agent_new", "agent_environment", "agent_run", "agent_lint", "agent_test",
}  # fmt: skip
"""Answers that are still made as JSON, by name; each that gets its type leaves this list."""
FRAMES = {"reports", "operation", "session"}
"""What is no answer of a verb: the frame of one that has nothing but reports, and what haclusterd-api adds."""
PASSES_ON = {"commands/outcome.py", "commands/planning/preview.py", "runtime/control.py"}
"""Where an untyped answer is handed on, not made."""
MAKES_UNTYPED = {"commands/simulate.py", "commands/migration_check.py"}


def breaches(source: str, place: str) -> Iterator[str]:
    """Yield what makes an answer, or takes one, without a type."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SCHEMA.match(node.value):
            name = name_of(node.value)
            if not place.startswith("verbs/answers/") and name not in UNTYPED | FRAMES:
                yield f"{place}:{node.lineno}: {node.value}"
        is_answer = isinstance(node, ast.keyword) and node.arg == "untyped"
        if is_answer and place not in PASSES_ON | MAKES_UNTYPED:
            yield f"{place}:{node.lineno}: untyped"


def test_no_answer_is_made_without_its_type() -> None:
    files = [(path, str(path.relative_to(PACKAGE))) for path in sorted(PACKAGE.rglob("*.py"))]
    assert [found for path, place in files for found in breaches(path.read_text(), place)] == []


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("commands/ticket.py", 'outcome = Outcome(untyped={"tickets": []})'),
        ("commands/ticket.py", 'data = {"schema": "haclusterd.tickets/1", "tickets": []}'),
        ("entry_points/crm_setup.py", 'return_ = answer([], {"schema": "haclusterd.setup/1"})'),
        ("cli/shadows.py", 'SCHEMA = "haclusterd.new-thing/1"'),
    ],
)
def test_an_answer_without_a_type_is_found(place: str, source: str) -> None:
    assert len(list(breaches(source, place))) == 1


def test_the_list_of_what_has_no_type_yet_is_not_longer_than_needed() -> None:
    typed = {name_of(schema) for schema in ANSWERS}
    assert not typed & (UNTYPED | FRAMES)
    written = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    assert [name for name in sorted(UNTYPED) if f'"haclusterd.{name}/1"' not in written] == []


def test_every_answer_of_a_verb_is_known() -> None:
    named = {name for verb in VERBS.values() for name in verb.answers}
    assert named - {name_of(schema) for schema in ANSWERS} == {"simulate"}


SHOWN_AS_JSON = {"backup", "followed", "metrics", "names", "state", "tool"}
"""Answers that no person is shown: programs ask for them, or they are written to a file."""


@pytest.mark.parametrize("schema", sorted(ANSWERS))
def test_a_renderer_takes_the_type_of_its_answer(schema: str) -> None:
    found = renderer(schema)
    assert (found is None) == (name_of(schema) in SHOWN_AS_JSON)
    assert not isinstance(found, Typed) or found.kind is ANSWERS[schema]
    assert isinstance(found, Typed) or found in (None, render_nothing)
