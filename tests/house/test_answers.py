"""Every answer has a type in `haclusterd/verbs/answers/`: no other place writes its schema; renderers take the type."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from haclusterd.cli.render.answers import Typed, renderer
from haclusterd.cli.render.tables import render_nothing
from haclusterd.verbs.answers.answer import hints_of, name_of, parts_of, records_in
from haclusterd.verbs.answers.table import ANSWERS
from haclusterd.verbs.table import VERBS

PACKAGE = Path(__file__).parents[2] / "haclusterd"
SCHEMA = re.compile(r"haclusterd\.[a-z_-]+/[0-9]+\Z")
WRITTEN = re.compile(r"haclusterd\.[a-z_-]+/")
"""Files without it need not be parsed."""
FRAMES = {"reports", "operation", "session"}
"""What is no answer of a verb: the frame of one that has nothing but reports, and what haclusterd-api adds."""


def breaches(source: str, place: str) -> Iterator[str]:
    """Yield what makes an answer, or takes one, without a type."""
    if not WRITTEN.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SCHEMA.match(node.value):
            name = name_of(node.value)
            if not place.startswith("verbs/answers/") and name not in FRAMES:
                yield f"{place}:{node.lineno}: {node.value}"


def test_no_answer_is_made_without_its_type() -> None:
    files = [(path, str(path.relative_to(PACKAGE))) for path in sorted(PACKAGE.rglob("*.py"))]
    assert [found for path, place in files for found in breaches(path.read_text(), place)] == []


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("commands/ticket.py", 'data = {"schema": "haclusterd.tickets/1", "tickets": []}'),
        ("entry_points/crm_setup.py", 'return_ = answer([], {"schema": "haclusterd.setup/1"})'),
        ("cli/shadows.py", 'SCHEMA = "haclusterd.new-thing/1"'),
    ],
)
def test_an_answer_without_a_type_is_found(place: str, source: str) -> None:
    assert len(list(breaches(source, place))) == 1


def test_every_answer_of_a_verb_is_known() -> None:
    named = {name for verb in VERBS.values() for name in verb.answers}
    assert named <= {name_of(schema) for schema in ANSWERS}


FREE = {("ConfigurationText", "configuration"), ("Preview", "change")}
"""Fields that hold any object: the configuration is spelled as in the log, by the codec; a change is another answer."""


def test_every_field_of_an_answer_says_what_it_is() -> None:
    free = {
        (record.__name__, name)
        for kind in ANSWERS.values()
        for record in records_in(kind)
        for name, hint in hints_of(record).items()
        if is_free(hint)
    }
    assert free == FREE


def is_free(hint: object) -> bool:
    origin, arguments, _ = parts_of(hint)
    return origin in (object, Any) or any(is_free(each) for each in arguments if each is not Ellipsis)


SHOWN_AS_JSON = {"backup", "followed", "metrics", "names", "simulations", "state", "tool"}
"""Answers that no person is shown as one: programs ask for them, they are written to a file, or each part is shown."""


@pytest.mark.parametrize("schema", sorted(ANSWERS))
def test_a_renderer_takes_the_type_of_its_answer(schema: str) -> None:
    found = renderer(schema)
    assert (found is None) == (name_of(schema) in SHOWN_AS_JSON)
    assert not isinstance(found, Typed) or found.kind is ANSWERS[schema]
    assert isinstance(found, Typed) or found in (None, render_nothing)
