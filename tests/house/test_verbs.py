"""A verb is described in one place, `haclusterd/verbs/`; what else speaks of verbs is derived from there."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from haclusterd.cib.commands import TicketChange
from haclusterd.commands import registry
from haclusterd.commands.tools.tools import TOOLS
from haclusterd.formats.cib_xml.tree import MAX_LENGTH
from haclusterd.verbs.table import VERBS

PACKAGE = Path(__file__).parents[2] / "haclusterd"
DESCRIBE = {"Verb", "Argument", "Words", "Family"}
"""What a description is made of."""
OF_CRM = "cli/command_table.py"
"""Where commands stand that `crm` carries out by itself."""


def descriptions(source: str, place: str) -> Iterator[str]:
    """Yield what describes a verb, or a part of one, outside its place."""
    if "haclusterd.verbs" not in source and "haclusterd.cli.grammar" not in source:
        return
    tree = ast.parse(source)
    known = {
        name.asname or name.name: node.module or ""
        for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
        for name in node.names
    }  # fmt: skip
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        name, module = node.func.id, known.get(node.func.id, "")
        is_description = name in DESCRIBE and module.startswith("haclusterd.verbs") and not place.startswith("verbs/")
        is_command = name == "Command" and module == "haclusterd.cli.grammar"
        if is_description or (is_command and (place != OF_CRM or _verb_of(node) in VERBS)):
            yield f"{place}:{node.lineno}: {name}"


def _verb_of(command: ast.Call) -> object:
    """Return the verb of a command that is written out."""
    verb = command.args[2] if len(command.args) > 2 else None
    return verb.value if isinstance(verb, ast.Constant) else None


def test_verbs_are_described_in_one_place() -> None:
    files = [(path, str(path.relative_to(PACKAGE))) for path in sorted(PACKAGE.rglob("*.py"))]
    assert [found for path, place in files for found in descriptions(path.read_text(), place)] == []


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("commands/ticket.py", "from haclusterd.verbs.verb import Verb\nX = Verb('ticket.show', READ, 'Show')"),
        ("commands/ticket.py", "from haclusterd.verbs.arguments import Argument\nX = Argument('a', WORD, 'x')"),
        ("cli/help.py", "from haclusterd.cli.grammar import Command\nX = Command('show', 'Show', 'ticket.show')"),
        ("cli/command_table.py", "from haclusterd.cli.grammar import Command\nX = Command('a', 'Do', 'ticket.show')"),
        ("api/routes.py", "from haclusterd.verbs.words import Words\nX = Words(('crm ticket show',))"),
    ],
)
def test_a_description_at_another_place_is_found(place: str, source: str) -> None:
    assert [found.partition(": ")[0] for found in descriptions(source, place)] == [f"{place}:2"]


def test_every_verb_is_carried_out_by_one_function() -> None:
    assert registry.VERBS.keys() == VERBS.keys()
    assert {name for name, verb in registry.VERBS.items() if verb.arguments is not VERBS[name].arguments} == set()


def _choices(verb: str, name: str) -> set[str]:
    return {choice for each in VERBS[verb].arguments if each.name == name for choice in each.choices}


def test_what_the_descriptions_repeat_is_what_the_program_knows() -> None:
    assert _choices("tool.run", "tool") == set(TOOLS)
    assert _choices("ticket.change", "action") == {str(each) for each in TicketChange}
    assert next(each.longest for each in VERBS["simulate"].arguments if each.name == "text") == MAX_LENGTH
